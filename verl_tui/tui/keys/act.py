"""How a class declares its actions: one row each, for keys, help, palette, footer and `[keys]`; and
the section that they stand in in the help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from textual.binding import Binding

if TYPE_CHECKING:
    from textual.dom import DOMNode

LEARN = Binding.Group("see whether it learns")
WHY = Binding.Group("find out why it broke")
SAMPLES = Binding.Group("read samples")
COMPARE = Binding.Group("compare runs")
SPEED = Binding.Group("see how fast it goes")
TAKE = Binding.Group("take something away")
MOVE = Binding.Group("move and look")

TASKS = (LEARN, WHY, SAMPLES, COMPARE, SPEED, TAKE, MOVE)
"""What keys are for, in the order of the help."""


class HelpSection(NamedTuple):
    """The title over a class's own keys, and what else stands with them: `HELP_SECTION` of it."""

    title: str
    """Where the keys hold."""
    also: tuple[type[DOMNode], ...] = ()
    """Classes that it is a kind of, or made of, whose keys are listed too."""
    rank: int = 100
    """Place among the sections of the screens, or of the panels, from 0."""
    notes: tuple[str, ...] = ()
    """Further lines below the keys."""
    charts: bool = False
    """True if it shows charts: the first such section is followed by their signs."""
    task: Binding.Group = MOVE
    """What the keys are for, one of `TASKS`."""


def act(
    keys: str,
    does: str,
    name: str | None = None,
    words: str = "",
    task: Binding.Group | None = None,
    *,
    show: bool = False,
    everywhere: bool = False,
) -> Binding:
    """Return a row of a class's `BINDINGS`.

    Args:
        keys: Its keys, separated by commas, as Textual names them.
        does: The method, as Textual names actions.
        name: Its name in the configuration.
        words: What it does; without them it is neither in the help nor in the palette.
        task: What it is for, where it holds everywhere; else the section of its class says that.
        show: Whether the last row has it, where no `FOOTER` names it.
        everywhere: Whether it holds over every screen, whatever has the focus.
    """
    return Binding(
        keys, does, words, show=show, id=name, priority=everywhere, group=task
    )
