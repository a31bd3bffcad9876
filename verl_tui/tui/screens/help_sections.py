"""The sections of the help, from what classes declare: keys of the screen in front come first, all
others by the task that they are for.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.screen import Screen

from verl_tui.rendering.charts.chart_data import legend
from verl_tui.tui.keys.actions import (
    MOVE,
    TASKS,
    HelpSection,
    all_kinds,
    bindings,
    shown_keys,
)
from verl_tui.tui.screens.dashboard import Dashboard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from textual.app import App
    from textual.binding import Binding
    from textual.dom import DOMNode

KeyRow = tuple[str, str, str]
"""Keys, what they do, the name of the action."""
_OTHER_RUNS = {f"run.{n}" for n in range(2, 10)}
_RUNS_ROW = ("1 … 9", "Run by its number", "run.1 … run.9")
"""The one row for the keys of all runs, which stands where that of the first would."""
_PALETTE_ROW = ("ctrl+p", "Command palette: every action by its name, themes", "")
"""Textual's own key, which is not declared here."""


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
        named = f"{self.task} {self.title}".casefold()
        words = [word for word in wanted.casefold().split() if word not in named]

        def matches(*line: str) -> bool:
            text = " ".join(line).casefold()
            return all(word in text for word in words)

        return self._replace(
            rows=tuple(row for row in self.rows if matches(*row)),
            notes=tuple(filter(matches, self.notes)),
        )


_SIGNS = KeySection("signs in charts", "", tuple((*one, "") for one in legend()))


def sections(
    app: type[App[Any]], user: Mapping[str, str], front: Sequence[DOMNode] = ()
) -> list[KeySection]:
    """Return what the screen or the panel in front declares; then by task what holds everywhere, on
    the dashboard, in the panels and in the screens. The signs in charts stand behind the first
    with charts.

    Args:
        app: The kind of app.
        user: The user's own keys.
        front: The screen in front, or what has the focus and what is around it.
    """
    declared = [*_declared()]
    first = [one for one in declared if any(isinstance(node, one[1]) for node in front)]
    where = "everywhere, unless listed above" if first else "everywhere"
    common = [
        (HelpSection(title, task), kind)
        for task in TASKS
        for title, kind in ((where, app), ("dashboard", Dashboard))
    ]
    declared.sort(key=lambda one: TASKS.index(one[0].task))
    found: dict[KeySection, None] = {}
    for place in (*first, *common, *declared):
        of = place[0].task if place in common else None
        section = _section(*place, _rows(place[0], place[1], user, of))
        if section.rows:
            found[section] = None
            found |= dict.fromkeys([_SIGNS] * place[0].charts)
    return list(found)


def _rows(
    declared: HelpSection,
    kind: type[DOMNode],
    user: Mapping[str, str],
    task: Binding.Group | None,
) -> Iterator[tuple[str, KeyRow]]:
    """Yield the name and the row of each action of a class, or those of a task."""
    for binding in chain(*map(bindings, (kind, *declared.parts))):
        name = binding.id or ""
        if name not in _OTHER_RUNS and task in (None, binding.group or MOVE):
            keys = shown_keys(user.get(name, binding.key))
            row = _RUNS_ROW if name == "run.1" else (keys, binding.description, name)
            yield name or keys, row


def _declared() -> Iterator[tuple[HelpSection, type[DOMNode]]]:
    """Yield the sections that classes declare: panels and lists, then screens."""
    found = [
        (issubclass(kind, Screen), *kind.__dict__["HELP_SECTION"], kind)
        for kind in all_kinds()
        if "HELP_SECTION" in kind.__dict__
    ]
    for _, *declared, kind in sorted(found, key=lambda one: (one[0], one[3], one[1])):
        yield HelpSection(*declared), kind


def _section(
    declared: HelpSection, _kind: object, rows: Iterable[tuple[str, KeyRow]]
) -> KeySection:
    """Return a section, each name once."""
    found: dict[str, KeyRow] = {}
    for name, row in rows:
        found.setdefault(name, row)
    if declared.title.startswith("everywhere") and declared.task == MOVE:
        found[""] = _PALETTE_ROW
    title = declared.task.description
    return KeySection(title, declared.title, (*found.values(),), declared.notes)
