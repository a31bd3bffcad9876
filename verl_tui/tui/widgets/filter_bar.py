"""The row that a filter is typed into: what is filtered, the text, how much matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Horizontal
from textual.widgets import Input

from verl_tui.rendering.filter_words import filter_state
from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.widgets.input_line import InputLine
from verl_tui.tui.widgets.line import Line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import ComposeResult

    from verl_tui.rendering.filter_words import Matches

_TYPED = 12
"""Cells that are left to the text at least; as many again are for the words at the right."""


class FilterBar(ContainedWidget, Horizontal):
    """A line to type in, between words at its left and its right."""

    DEFAULT_CSS: ClassVar[str] = """
    FilterBar {
        height: 1;
        background: $surface;
        & > Input { width: 1fr; height: 1; border: none; padding: 0; }
    }
    """

    def __init__(self, *, id: str, input_id: str, hint: str = "") -> None:
        """Make the row.

        Args:
            id: ID of the row.
            input_id: ID of the line to type in.
            hint: What may be typed, shown while nothing is.
        """
        super().__init__(id=id)
        self.input = InputLine(hint, id=input_id)
        self._label = Line()
        self._state = Line()
        self._words = ""

    def compose(self) -> ComposeResult:
        """Words, the line to type in, words."""
        yield self._label
        yield self.input
        yield self._state

    @property
    def room(self) -> int:
        """Cells there are for words at the right."""
        width = self.size.width or self.screen.size.width
        return max(
            0, width - len(self._words) - max(_TYPED, len(self.input.value) + 1) - 2
        )

    def open(self, label: str, typed: str = "") -> None:
        """Show the row, at once so that fast typing loses no key, and give it the focus.

        Args:
            label: Words at the left.
            typed: The text to begin with.
        """
        with self.input.prevent(Input.Changed):
            self.input.value = typed
        self.display = True
        self.label(label)
        self.screen.set_focus(self.input, scroll_visible=False)

    def label(self, words: str) -> None:
        """Write the words at the left, where there is room for them."""
        width = self.size.width or self.screen.size.width
        self._words = words if len(words) + 2 * _TYPED <= width else "/ "
        self._write(self._label, self._words, "accent")

    def say(
        self,
        matches: Mapping[str, Matches] | None,
        *,
        enter: str = "keeps it",
        escape: str = "esc",
    ) -> None:
        """Write at the right how much matches and how to leave; the arguments are those of
        `filter_state`.
        """
        typed = self.input.value
        room = self.room
        self.state(filter_state(typed, matches, room, enter=enter, escape=escape))

    def state(self, words: str) -> None:
        """Write the words at the right."""
        self._write(self._state, words, "dim")

    def _write(self, line: Line, words: str, role: str) -> None:
        if line.styles.width is None or line.styles.width.value != len(words):
            line.styles.width = len(words)
        line.show([(words, role)])
