"""The row that a filter is typed into: what is filtered, the text, how much matches."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from textual.containers import Horizontal
from textual.widgets import Input

from verl_tui.rendering.text.piece import fit
from verl_tui.rendering.text.search import Matches, filter_state
from verl_tui.tui.keys import columns, key_name
from verl_tui.tui.terminal.net import ContainedWidget
from verl_tui.tui.widgets.rows import Line, RoleStyled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.screen import Screen
    from textual.strip import Strip
    from textual.widget import Widget


_LAST = """
    quit   Quit
    help   Help
    pause  Pause
"""
"""Keys of the app that come last."""
_NEEDED = "help"
"""Name of the key that there always has to be room for, since it lists all others."""


class _Key(NamedTuple):
    """Keys, and what they do."""

    id: str
    pressed: str
    display: str
    does: str

    @property
    def width(self) -> int:
        """Cells of both, and of a blank behind each."""
        return cell_len(self.display + self.does) + 2


class Keys(RoleStyled, can_focus=False):
    """A row of keys that leaves one out rather than cutting its name short; the help has all.

    The attribute `FOOTER` of panels, screens and the app says which: rows of the names that one or
    more keys have in the configuration, and what they do in a word or two. Those of the panel with
    the focus come first, or else those of the screen, then those of the app.

    Textual's own footer has a widget for each key, and lays out the whole screen whenever one
    changes: with each move of the focus to another panel.
    """

    ALLOW_SELECT = False
    LOOKS = "keys"
    DEFAULT_CSS = """
    Keys {
        dock: bottom;
        height: 1;
        background: $footer-background;
    }
    """

    _keys: Sequence[_Key] = ()

    def on_mount(self) -> None:
        """Watch which keys hold."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[object]) -> None:
        """Show the keys that hold now; while the terminal has no focus they stay as they are."""
        if screen.app.app_focus and screen is self.screen:
            keys = [*_named_keys(screen)]
            if keys != self._keys:
                self._keys = keys
                self.refresh()

    @property
    def fitting(self) -> list[tuple[int, _Key]]:
        """The keys there is room for, each with the column it begins at."""
        keys = [*self._keys]
        while keys and sum(key.width for key in keys) - 1 > self.size.width:
            others = (key for key in reversed(keys) if key.id != _NEEDED)
            keys.remove(next(others, keys[-1]))
        begins = accumulate((key.width for key in keys), initial=0)
        return [*zip(begins, keys, strict=False)]

    def render_line(self, y: int) -> Strip:
        """Return the row."""
        row: list[tuple[str, str]] = []
        for _, key in self.fitting if y == 0 else ():
            row += (key.display, "key"), (f" {key.does}", "does"), (" ", "")
        return self.inked(row).adjust_cell_length(self.size.width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Press the key under the mouse."""
        for x, key in self.fitting:
            if x <= event.x < x + key.width - 1:
                self.app.simulate_key(key.pressed)


def _named_keys(screen: Screen[object]) -> Iterator[_Key]:
    """Yield the keys that the focused panel, or else its screen, names, those that the app names,
    and then those of the screen around the panel: those that hold now.
    """
    holding: dict[str | None, str] = {}
    for key, one in screen.active_bindings.items():
        holding.setdefault(one.binding.id, key)
    *around, app = (screen.focused or screen).ancestors_with_self
    own = [*filter(None, (getattr(one, "FOOTER", "") for one in around))]
    tables = (*own[:1], getattr(app, "FOOTER", ""), *own[1:], _LAST)
    known: set[str] = set()
    for names, does in columns("\n".join(tables)):
        ids = names.split()
        keys = [holding[id] for id in ids if id in holding]
        if keys and known.isdisjoint(ids):
            known.update(ids)
            yield _Key(names, keys[0], " ".join(map(key_name, keys)), does)


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

    DEFAULT_CSS = """
    FilterBar {
        height: 1;
        padding: 0 1;
        display: none;
        background: $surface;
        & > Input { width: 1fr; height: 1; border: none; padding: 0; margin: 0 1 0 0; }
        & > Line { width: 0; }
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
        self._words = label if cell_len(label) + 2 * _TYPED <= width else "/ "
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
        self, matches: Mapping[str, Matches] | None, *, escape: str, **more: str
    ) -> None:
        """Write at the right how much matches and how to leave; the arguments are those of
        `filter_state`.
        """
        if not self.display:
            return
        typed = self.input.value
        width = self.size.width or self.screen.size.width
        room = width - cell_len(self._words) - max(_TYPED, cell_len(typed) + 1) - 3
        words = filter_state(typed, matches, max(0, room), escape=escape, **more)
        self._write(self._state, words, "dim")

    def _write(self, line: Line, words: str, role: str) -> None:
        line.styles.width = cell_len(words)
        line.show([(words, role)])
