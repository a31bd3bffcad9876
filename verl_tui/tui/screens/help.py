"""Help: all keys (`/` searches them), the screen in front first, then by what they are for, with
the names that `[keys]` takes, and the meaning of the signs in charts.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len
from textual.screen import Screen

from verl_tui.rendering.charts.chart_data import legend
from verl_tui.rendering.text.piece import Pieces, cells_of, fit, paragraph, wrap
from verl_tui.rendering.text.search import Matches
from verl_tui.tui.keys import (
    MOVE,
    TASKS,
    HelpSection,
    actions,
    all_kinds,
    bindings,
    keymap,
    keys_of,
    user_keys,
    usual_keys,
)
from verl_tui.tui.screens.dashboard import Dashboard
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from textual.app import App
    from textual.dom import DOMNode


KeyRow = tuple[str, str, str]
"""Keys, what they do, the name of the action."""
_OTHER_RUNS = {f"run.{n}" for n in range(2, 10)}
_RUNS_ROW = ("1 … 9", "Run by its number", "run.1 … run.9")
"""The one row for the keys of all runs, which stands where that of the first would."""


class KeySection(NamedTuple):
    """Keys that are listed under one title."""

    task: str
    """What they are for."""
    title: str
    """Where they hold."""
    rows: tuple[KeyRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> int:
        """Lines below the title."""
        return len(self.rows) + len(self.notes)

    def with_words(self, wanted: str) -> KeySection:
        """Return it with the lines that contain all words, in any case; those in the title hold for
        all of them.
        """

        def matches(*line: str) -> bool:
            text = " ".join((self.task, self.title, *line)).casefold()
            return all(word in text for word in wanted.casefold().split())

        rows = tuple(row for row in self.rows if matches(*row))
        return self._replace(rows=rows, notes=tuple(filter(matches, self.notes)))


_SIGNS = KeySection("signs in charts", "", tuple((*one, "") for one in legend()))


def sections(
    app: type[App[Any]], user: Mapping[str, str], front: Sequence[DOMNode] = ()
) -> list[KeySection]:
    """Return what the screen or the panel in front declares; then by task what holds everywhere, on
    the dashboard, in the panels and in the screens. The signs in charts stand behind the first
    with charts, on the dashboard behind the very first.

    Args:
        app: The kind of app.
        user: The user's own keys.
        front: The screen in front, or what has the focus and what is around it.
    """
    declared = _declared()
    first = [one for one in declared if any(isinstance(node, one[1]) for node in front)]
    where = "everywhere, unless listed above" if first else "everywhere"
    common: list[tuple[HelpSection, type[DOMNode]]] = []
    for task in TASKS:
        common.append((HelpSection(where, task), app))
        common.append((HelpSection("dashboard", task), Dashboard))
    declared.sort(key=lambda one: TASKS.index(one[0].task))
    found: dict[KeySection, None] = {}
    for place in (*first, *common, *declared):
        section = _key_section(*place, user, narrow=place in common)
        if section.rows:
            found[section] = None
            if place[0].charts or not first:
                found[_SIGNS] = None
    return list(found)


def _declared() -> list[tuple[HelpSection, type[DOMNode]]]:
    """Return the sections that classes declare: panels and lists, then screens."""
    found = [
        (kind.__dict__["HELP_SECTION"], kind)
        for kind in all_kinds()
        if "HELP_SECTION" in kind.__dict__
    ]
    found.sort(key=lambda one: (issubclass(one[1], Screen), one[0].rank, one[0].title))
    return found


def _key_section(
    declared: HelpSection,
    kind: type[DOMNode],
    user: Mapping[str, str],
    *,
    narrow: bool,
) -> KeySection:
    """Return a section with the actions of a class, each name once; where it is narrow, those of
    its task.
    """
    found: dict[str, KeyRow] = {}
    for binding in bindings(kind):
        name = binding.id or ""
        alien = narrow and (binding.group or MOVE) != declared.task
        if name not in _OTHER_RUNS and not alien:
            keys = keys_of(binding, user)
            row = _RUNS_ROW if name == "run.1" else (keys, binding.description, name)
            found.setdefault(name or keys, row)
    rows, words = (*found.values(),), declared.task.description
    return KeySection(words, declared.title, rows, declared.notes)


_WIDE = 126
"""Cells from which there are two columns."""
_GAP = 2
"""Cells between two columns."""
_ROOMY = 56
"""Cells from which keys stand in a wide column, and the names of actions beside what they do."""


class HelpScreen(RowsScreen):
    """A list of all keys."""

    SCREEN = ("?,f1", "help", "Help")
    TITLE_WORDS = "keys: the names are for [keys] in the configuration"
    FILTER = ("search the keys: ", "", "lines")
    BINDINGS = actions("""
        escape,q,?,f1  back    help.back    Back
        /           filter  help.search  Search the keys
    """)
    FOOTER = """
        help.search  searches
        help.back    closes
    """

    def show(self, view: object) -> None:
        """Do nothing: no new step changes a key."""

    def page(self, width: int) -> RowsPage:
        """Return the sections with the words that are searched for."""
        below = self.app.screen_stack[-2]
        front: Sequence[DOMNode] = [below]
        if below is self.dashboard:
            front = below.focused.ancestors_with_self if below.focused else []
        every = sections(type(self.app), user_keys(self.app), front)
        narrowed = [one.with_words(self.wanted) for one in every]
        columns = 2 if width >= _WIDE else 1
        each = max(1, (width - _GAP * (columns - 1)) // columns)
        found, known = (sum(one.lines for one in some) for some in (narrowed, every))
        rows = _rows([one for one in narrowed if one.lines], each, columns)
        return RowsPage([*rows], title=self.TITLE_WORDS, matches=Matches(found, known))


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
    for keys, words, name in section.rows:
        start = max(18 if beside else 9, len(keys) + 1) + 2
        room = width - start - (len(name) + 2 if beside and name else 0)
        first, *more = wrap(words, max(8, room))
        said = fit(f"  {keys}".ljust(start) + first.ljust(room), width)
        yield [(said, ""), (f"  {name}" if beside and name else "", "dim")]
        yield from ([(fit(" " * start + line, width), "")] for line in more)
    for note in section.notes:
        yield from paragraph(note, "", width, ("  ", ""))


def all_keys(app: type[App[Any]], wanted: Mapping[str, str]) -> str:
    """Return all keys as a page in Markdown, with the user's own where these can be taken; a
    sentence on each other comes first.

    Args:
        app: The kind of app.
        wanted: Action's name -> keys, as the configuration has them.
    """
    from verl_tui.pages import page_table

    user = keymap(wanted, usual_keys())
    parts = ["# Keys", "Names are for `[keys]` in the configuration.", *user.refused]
    for section in sections(app, user.keys):
        title = ": ".join(filter(None, (section.task, section.title)))
        parts.append(f"## {title[0].upper()}{title[1:]}")
        parts.append(page_table(("key", "does", "name"), section.rows))
        if section.notes:
            parts.append("\n".join(("```", *section.notes, "```")))
    return "\n\n".join(parts) + "\n"
