"""Short messages over the screen, and messages that need to be handled only once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.message import Message

from verl_tui.rendering.text.piece import fit, printable

if TYPE_CHECKING:
    from textual.app import App


class Once(Message):
    """A message that replaces its like: handling one takes in all that there is."""

    def can_replace(self, message: Message) -> bool:
        """Return True for another one of its kind."""
        return isinstance(message, type(self))


def toast(app: App[Any], sentence: str, *, rows: int = 1) -> None:
    """Show a sentence, if there is one, for some seconds in place of the one before.

    Args:
        app: The app that shows it.
        sentence: Any text; cut to the room that there is.
        rows: Rows that it may take.
    """
    if sentence:
        words = fit(printable(sentence), rows * max(12, app.size.width - 8))
        app.clear_notifications()
        app.notify(words, timeout=4 if rows == 1 else 6, markup=False)
