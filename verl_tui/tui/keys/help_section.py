"""How a screen, a panel or a list declares its section of the help: `HELP_SECTION` of its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.tui.keys.tasks import MOVE

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.dom import DOMNode


class HelpSection(NamedTuple):
    """The title over a class's own keys, and what else stands with them."""

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
