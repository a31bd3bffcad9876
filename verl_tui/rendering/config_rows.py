"""Rows of the configuration screen: a run's identity and settings, or the settings that differ."""

from __future__ import annotations

import json
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

from verl_tui.comparison.settings import ABSENT, difference, differing_facts
from verl_tui.rendering.text.piece import (
    ELLIPSIS,
    Pieces,
    TextRows,
    fit,
    fit_left,
    middle,
    paragraph,
    printable,
)
from verl_tui.rendering.text.table import GAP, WIDEST, FittedTable, TextColumn
from verl_tui.runs.settings import SettingsLayer, is_open, layer_of
from verl_tui.runs.views.identity import Fact, identity, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.runs.run import Run


_LEAST_VALUE = 14
"""Smallest width of a run's column, in cells."""
_WITH_ORIGIN = 70
"""Width from which each setting shows where it was read, in cells."""
_NOT_STATED = "–"
_NOTHING = (
    "This run's settings are unknown. They are read from what verl prints at its start (a "
    "console log that contains standard output), from .hydra/overrides.yaml or config.yaml beside "
    "the log, and from W&B's files: name the run's directory rather than one file of it."
)
_ALONE = (
    "There is no other run to compare with: name several paths, or a directory of runs."
)
_GROUPS = ("at a glance", "differences", "set in some runs only", "names and places")
_NO_MATCH = "No setting matches “{}”, {} clears the filter."
_SAME = "All known settings are the same."


class SettingEntry(NamedTuple):
    """One setting, or one fact about a run."""

    label: str
    values: tuple[Any, ...]
    """One for each run that is shown."""
    note: str
    """Short name of its origin."""
    about: str
    """Its origin in full."""
    role: str = "setting"

    @property
    def text(self) -> str:
        """The text to copy: the setting as an override on the command line."""
        return f"{self.label}={_plain(self.values[0])}"

    def has(self, words: Iterable[str]) -> bool:
        """Return whether its name, values or origin contain all of some words."""
        text = " ".join((self.label, *map(_plain, self.values), self.note)).lower()
        return all(word in text for word in words)


class SettingSection(NamedTuple):
    """Entries below one heading, or a sentence in their place."""

    heading: str
    entries: tuple[SettingEntry, ...]
    otherwise: str = ""


class SettingsPage(NamedTuple):
    """The content of the screen."""

    columns: tuple[str, ...]
    """Names of the compared runs, empty for a single run."""
    sections: tuple[SettingSection, ...]

    @property
    def entries(self) -> tuple[SettingEntry, ...]:
        """All entries from top to bottom."""
        return tuple(entry for section in self.sections for entry in section.entries)


# -- content ---------------------------------------------------------------------------------------


def settings_page(run: Run | None) -> SettingsPage:
    """Return the identity and the settings of a run."""
    if not run:
        nothing = SettingSection("", (), "No run yet, so there are no settings.")
        return SettingsPage((), (nothing,))
    facts = tuple(_fact(run, fact) for fact in identity(run).values())
    stated = tuple(_setting(run, key) for key in sorted(run.settings))
    settings = SettingSection(f"settings: {len(stated)}", stated, _NOTHING)
    return SettingsPage((), (*[SettingSection("run", facts)] * bool(facts), settings))


def matching(page: SettingsPage, query: str, *, clear: str) -> SettingsPage:
    """Return what a filter leaves of a page: the entries whose name, values or origin contain every
    word of it; `clear` is the key that clears it.
    """
    words = query.lower().split()
    if not words or not page.entries:
        return page
    sections = []
    for heading, entries, _ in page.sections:
        found = tuple(entry for entry in entries if entry.has(words))
        count = f"{heading.partition(':')[0]}: {len(found)} of {len(entries)}"
        sections += [SettingSection(count, found)] * bool(found)
    nothing = SettingSection("", (), _NO_MATCH.format(query, clear))
    return page._replace(sections=tuple(sections) or (nothing,))


def _fact(run: Run, fact: Fact) -> SettingEntry:
    """Return a fact with where its settings were read; metrics are read from the log."""
    words = [_origin(run, key) for key in fact.key.split(", ")]
    origins = ", ".join(dict.fromkeys(filter(None, words))) or "the log"
    return SettingEntry(fact.label, (fact.value,), fact.key, f"{fact.key} ({origins})")


def difference_page(runs: Sequence[Run]) -> SettingsPage:
    """Return the settings that differ between runs, mere names and paths last."""
    reason = _incomparable(runs)
    groups = {} if reason else _differences(runs)
    sections = [
        SettingSection(f"{name}: {len(one)}", tuple(one))
        for name, one in groups.items()
        if one
    ]
    nothing = SettingSection("", (), reason or _SAME)
    return SettingsPage(tuple(run.name for run in runs), tuple(sections) or (nothing,))


def _incomparable(runs: Sequence[Run]) -> str:
    """Return why the settings of runs cannot be compared, empty if they can."""
    unknown = [run.name for run in runs if not run.settings]
    if len(runs) < 2:
        return _ALONE
    few = len(runs) - len(unknown) < 2
    return f"The settings of {', '.join(unknown)} are unknown." if few else ""


def _differences(runs: Sequence[Run]) -> dict[str, list[SettingEntry]]:
    """Return the differences by heading, in the order to show."""
    groups: list[list[SettingEntry]] = [[] for _ in _GROUPS]
    glance, plain, some, names = groups
    for fact in differing_facts(runs):
        glance.append(_difference(fact.label, fact.values, fact.keys))
    for row in difference([run.settings for run in runs]):
        stating = [run for run in runs if row.key in run.settings]
        origins = {run.name: _origin(run, row.key) for run in stating}
        group = names if row.naming else some if row.silent else plain
        group.append(_difference(row.key, row.values, origins))
    return dict(zip(_GROUPS, groups, strict=True))


def _difference(
    label: str, values: tuple[Any, ...], origins: Mapping[str, str]
) -> SettingEntry:
    about = ", ".join(f"{name}: {origin}" for name, origin in origins.items())
    return SettingEntry(label, values, "", about, "differs")


def _setting(run: Run, key: str) -> SettingEntry:
    value = run.settings[key]
    origin = run.config.origins.get(key, "")
    about = [origin or "unknown"]
    note = origin_word(origin)
    role = "setting"
    for where, other in run.config.statements(key):
        if where != origin:
            about.append(f"{origin_word(where)} says {_plain(other)}")
        if layer_of(where) is SettingsLayer.OVERRIDES:
            role = "override"
    if role == "override" and layer_of(origin) is not SettingsLayer.OVERRIDES:
        note += ", override"
    if value is None or is_open(value):
        role = "dim"
    return SettingEntry(key, (value,), note, "; ".join(about), role)


def _origin(run: Run, key: str) -> str:
    return origin_word(run.config.origins.get(key, ""))


def origin_word(origin: str) -> str:
    """Return the short name of a settings origin."""
    if not origin or origin == "console":
        return origin
    if layer_of(origin) is SettingsLayer.WANDB:
        return "W&B"
    path = PurePath(origin)
    if path.parent.name == ".hydra":
        return f".hydra/{path.name}"
    return path.name


def _plain(value: object) -> str:
    """Return a value as a configuration file spells it."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "" if value is ABSENT else str(value)


# -- rows ------------------------------------------------------------------------------------------


def compared(width: int) -> int:
    """Return how many runs a list of this width can compare."""
    return max(2, (width - _label(width)) // (_LEAST_VALUE + GAP))


def _label(width: int) -> int:
    """Return the largest width of the settings' names beside several values."""
    return max(6, width * 2 // 5)


def _table(
    entries: Sequence[SettingEntry], runs: Sequence[str], width: int
) -> FittedTable[SettingEntry]:
    """Choose the columns of entries below each other, of several runs one for each."""
    longest = max((cell_len(entry.label) for entry in entries), default=0)
    label = min(longest, _label(width) if runs else max(6, width // 2))
    columns = [TextColumn("setting", _setting_name, label, 9)]
    value = max(1, (width - label) // max(1, len(runs)) - GAP)
    least = WIDEST if not runs and width >= _WITH_ORIGIN else value
    most = value * 3 // 5 if least == WIDEST else value
    columns += [
        TextColumn(middle(name, value), partial(_value, at, most), least, 8)
        for at, name in enumerate(runs or [""])
    ]
    if not runs:
        columns.append(TextColumn("", _note, _LEAST_VALUE, 1, most=width))
    return FittedTable(columns, width, entries)


def _setting_name(entry: SettingEntry, cells: int) -> Pieces:
    return [(fit_left(printable(entry.label), cells), "label")]


def _note(entry: SettingEntry, cells: int) -> Pieces:
    return [(fit_left(printable(entry.note), cells), "dim")]


def _value(at: int, most: int, entry: SettingEntry, cells: int) -> Pieces:
    """Write one run's value; only values unlike the first run's stand out."""
    value, role = entry.values[at], entry.role
    if value is ABSENT or (at and value == entry.values[0]):
        role = "dim"
    elif not at and role == "differs":
        role = "setting"
    text = _NOT_STATED if value is ABSENT else short(value)
    return [(middle(text, min(most, cells)), role)]


def page_rows(page: SettingsPage, width: int) -> tuple[TextRows, list[int], TextRows]:
    """Return the rows of the list, the indices of those that are entries, and what stands above
    columns of several runs: their names.
    """
    rows: TextRows = []
    heads: list[int] = []
    for section in page.sections:
        # The columns of compared runs are the same in all sections.
        entries = page.entries if page.columns else section.entries
        columns = _table(entries, page.columns, width)
        rows += [[]] * bool(rows)
        if section.heading and page.entries:
            rows.append([(fit(section.heading, width), "heading")])
        heads += range(len(rows), len(rows) + len(section.entries))
        rows += map(columns.row, section.entries)
        if not section.entries:
            rows += paragraph(section.otherwise, "dim", width)
    return rows, heads, [columns.heading("dim")] * bool(page.columns and page.entries)


def full_entry(entry: SettingEntry | None, width: int, height: int) -> TextRows:
    """Return an entry in full, as far as there is room."""
    if not entry or height < 1:
        return []
    values = [_NOT_STATED if one is ABSENT else _plain(one) for one in entry.values]
    rows = paragraph(f"{entry.label}: {' | '.join(values)}", "setting", width)
    rows += paragraph(f"read from {entry.about}", "dim", width)
    if len(rows) > height:
        last, role = rows[height - 1][0]
        rows[height - 1] = [(fit(f"{last} {ELLIPSIS}", width), role)]
    return rows[:height]
