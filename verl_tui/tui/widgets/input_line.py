"""A line to type in."""

from __future__ import annotations

from textual.widgets import Input

from verl_tui.rendering.text.wrap import fit
from verl_tui.tui.terminal.net import ContainedWidget

_SEPARATOR = " · "


class InputLine(ContainedWidget, Input):
    """A line to type in; while empty it says what can be typed."""

    def __init__(self, hint: str, *, id: str | None = None) -> None:
        """Make the line.

        Args:
            hint: What may be typed; parts of it after a dot are left out where there is no room.
            id: ID of the widget.
        """
        super().__init__(id=id, placeholder=hint, compact=True)
        self._hints = hint.split(_SEPARATOR)

    def hint(self, words: str) -> None:
        """Show another hint."""
        self._hints = words.split(_SEPARATOR)
        self.on_resize()

    def on_resize(self) -> None:
        """Show as much of the hint as fits."""
        room = self.content_size.width
        hints = (
            _SEPARATOR.join(self._hints[:count])
            for count in range(len(self._hints), 0, -1)
        )
        self.placeholder = next(
            (hint for hint in hints if len(hint) <= room), fit(self._hints[0], room)
        )
