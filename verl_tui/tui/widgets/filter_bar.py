"""The row that a filter is typed into: what is filtered, the text, how much matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Horizontal
from textual.widgets import Input

from verl_tui.rendering.text.search import filter_state
from verl_tui.rendering.text.wrap import fit
from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.widgets.footer import Keys
from verl_tui.tui.widgets.line import Line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import ComposeResult
    from textual.widget import Widget

    from verl_tui.rendering.text.search import Matches

_TYPED = 12
"""Cells that are left to the text at least; as many again are for the words at the right."""


class InputLine(ContainedWidget, Input):
    """A line to type in; while empty it says what can be typed."""

    def __init__(self, hint: str) -> None:
        super().__init__(placeholder=hint, compact=True)
        self._hint = hint

    def on_resize(self) -> None:
        """Show as much of the hint as fits."""
        self.placeholder = fit(self._hint, self.content_size.width)


class FilterBar(ContainedWidget, Horizontal):
    """A line to type in, between words at its left and its right; out of sight until it opens."""

    DEFAULT_CSS: ClassVar[str] = """
    FilterBar {
        height: 1;
        padding: 0 1;
        display: none;
        background: $surface;
        & > Input { width: 1fr; height: 1; border: none; padding: 0; }
    }
    """

    def __init__(self, hint: str = "", *, id: str | None = None) -> None:
        """Make the row; the hint says what may be typed, while nothing is."""
        super().__init__(id=id)
        self.input = InputLine(hint)
        self._label = Line()
        self._state = Line()
        self._words = ""
        self._before: Widget | None = None
        """What had the focus."""

    def compose(self) -> ComposeResult:
        """Words, the line to type in, words."""
        yield self._label
        yield self.input
        yield self._state

    def open(self, label: str, typed: str = "") -> None:
        """Show the row in place of the keys, at once so that fast typing loses no key, and give it
        the focus.

        Args:
            label: Words at the left, where there is room for them.
            typed: The text to begin with.
        """
        with self.input.prevent(Input.Changed):
            self.input.value = typed
        if self.screen.focused is not self.input:
            self._before = self.screen.focused
        self.display = True
        for keys in self.screen.query_children(Keys):
            keys.styles.display = "none"
        width = self.size.width or self.screen.size.width
        self._words = label if len(label) + 2 * _TYPED <= width else "/ "
        self._write(self._label, self._words, "accent")
        self.screen.set_focus(self.input, scroll_visible=False)

    def close(self) -> None:
        """Take the row away, if it is there, and give the focus back."""
        if not self.display:
            return
        self.screen.set_focus(self._before, scroll_visible=False)
        self.display = False
        for keys in self.screen.query_children(Keys):
            keys.styles.clear_rule("display")
            keys.refresh(layout=True)

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
        if not self.display:
            return
        typed = self.input.value
        width = self.size.width or self.screen.size.width
        room = max(0, width - len(self._words) - max(_TYPED, len(typed) + 1) - 2)
        words = filter_state(typed, matches, room, enter=enter, escape=escape)
        self._write(self._state, words, "dim")

    def _write(self, line: Line, words: str, role: str) -> None:
        if line.styles.width is None or line.styles.width.value != len(words):
            line.styles.width = len(words)
        line.show([(words, role)])
