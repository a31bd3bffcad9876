"""Help: all keys (`/` searches them), the screen in front first, then by what they are for, with
the names that `[keys]` takes, and the meaning of the signs in charts.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len

from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.search import Matches
from verl_tui.rendering.text.wrap import fit, wrap
from verl_tui.tui.keys.actions import act, user_keys
from verl_tui.tui.screens import ScreenSpec
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from textual.binding import BindingType
    from textual.dom import DOMNode

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.tui.screens.help_sections import KeySection

_WIDE = 126
"""Cells from which on there are two columns."""
_GAP = 2
"""Cells between two columns."""
_ROOMY = 56
"""Cells from which on keys stand in a wide column, and the names of actions beside what they do."""


class HelpScreen(RowsScreen[None]):
    """A list of all keys."""

    TITLE_WORDS = "keys: the names are for [keys] in the configuration"
    FILTER = ("search the keys: ", "", "lines")
    BINDINGS: ClassVar[list[BindingType]] = [
        act("escape,q,?", "back", "help.back", "Back"),
        act("/", "filter", "help.search", "Search the keys"),
    ]
    FOOTER = (("help.search", "searches"), ("help.back", "closes"))

    def title_words(self, view: View) -> str:
        """Return the title: no run is shown."""
        return self.TITLE_WORDS

    def show(self, view: View) -> None:
        """Do nothing: no new step changes a key."""

    def page(self, view: View, width: int) -> RowsPage:
        """Return the sections with the words that are searched for."""
        from verl_tui.tui.screens.help_sections import sections

        below = self.app.screen_stack[-2]
        front: Sequence[DOMNode] = [below]
        if below.id == "dashboard":
            front = below.focused.ancestors_with_self if below.focused else []
        every = sections(type(self.app), user_keys(self.app), front)
        narrowed = (one.with_words(self.wanted) for one in every)
        found = [one for one in narrowed if one.lines]
        columns = 2 if width >= _WIDE else 1
        each = max(1, (width - _GAP * (columns - 1)) // columns)
        counts = Matches(*(sum(one.lines for one in of) for of in (found, every)))
        return RowsPage([*_rows(found, each, columns)], matches=counts)


def _rows(sections: Iterable[KeySection], width: int, columns: int) -> Iterator[Pieces]:
    """Yield sections in columns of a width, each below the shortest column so far."""
    made: list[list[Pieces]] = [[] for _ in range(columns)]
    for section in sections:
        min(made, key=len).extend((*_section(section, width), []))
    for parts in zip_longest(*made, fillvalue=()):
        row: Pieces = []
        for part in parts:
            row += [*part, (" " * (width - cells_of(part) + _GAP), "")]
        yield row[:-1]


def _section(section: KeySection, width: int) -> Iterator[Pieces]:
    """Yield title, keys and notes."""
    task = fit(section.task, width)
    title = f" · {section.title}" if section.title else ""
    yield [(task, "strong"), (fit(title, width - cell_len(task)), "dim")]
    beside = width >= _ROOMY
    least = 18 if beside else 9
    for keys, words, name in section.rows:
        start = max(least, len(keys) + 1) + 2
        room = width - start - (len(name) + 2 if beside and name else 0)
        first, *more = wrap(words, max(8, room))
        said = fit(f"  {keys}".ljust(start) + first.ljust(room), width)
        yield [(said, ""), (f"  {name}" if beside and name else "", "dim")]
        yield from ([(fit(" " * start + line, width), "")] for line in more)
    yield from ([(fit(f"  {note}", width), "")] for note in section.notes)


SCREEN = ScreenSpec("help", "?", "help", "Help", HelpScreen.opened, rank=10)
