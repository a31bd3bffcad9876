"""How a class declares its actions: one row each, for keys, help, palette, footer and `[keys]`."""

from __future__ import annotations

from textual.binding import Binding


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
