"""What the configuration screen says: who the run is, its settings, and in what it differs from
others.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.text.printable import middle, printable, wrapped
from verl_tui.rendering.text.wrap import fit, fit_left
from verl_tui.runs.settings import Layer, is_open, layer
from verl_tui.runs.views.facts import short
from verl_tui.runs.views.identity import identity
from verl_tui.runs.views.settings_diff import ABSENT, alike, difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

ROLES = ("heading", "label", "value", "dim", "asked", "differs")
"""What a piece of text is for."""

_LEAST_VALUE = 14
"""Cells that a run's column takes at least where there is room for several."""
_WITH_ORIGIN = 70
"""Cells from which on each setting says where it was read."""
_GAP = 2
_NOT_STATED = "–"
_NOTHING = (
    "Nothing states this run's settings. They are read from what verl prints at its start (a "
    "console log with "
    "standard output in it), from .hydra/overrides.yaml or config.yaml beside the log, and from "
    "W&B's files: name the "
    "run's directory rather than one file of it."
)
_ALONE = "There is no other run to hold it against: name several paths, or a directory of runs."
_GLANCE = "at a glance"
_SAME = "All settings that are known are the same."


class SettingEntry(NamedTuple):
    """One setting, or one thing said of a run."""

    label: str
    values: tuple[Any, ...]
    """One for each run that is shown."""
    note: str
    """A word on where it was read."""
    about: str
    """Where it was read, in full."""
    role: str = "value"

    @property
    def text(self) -> str:
        """What is copied: as one would write it on the command line of another run."""
        return f"{self.label}={_plain(self.values[0])}"


class SettingSection(NamedTuple):
    """Entries below one heading; without entries, what is said in their place."""

    heading: str
    entries: tuple[SettingEntry, ...]
    otherwise: str = ""


class SettingsPage(NamedTuple):
    """All that is listed."""

    columns: tuple[str, ...]
    """Names of the runs whose values are shown; empty where it is one run and the heading says
    so.
    """
    sections: tuple[SettingSection, ...]

    @property
    def entries(self) -> tuple[SettingEntry, ...]:
        """All entries in the order of showing."""
        return tuple(entry for section in self.sections for entry in section.entries)


# -- what there is ---------------------------------------------------------------------------------


def settings_page(run: Run | None, query: str = "") -> SettingsPage:
    """Return who a run is, then all its settings; with a filter, those that fit it."""
    if run is None:
        return SettingsPage((), (SettingSection("", (), "No run yet, so there are no settings."),))
    facts = [
        SettingEntry(fact.label, (fact.value,), fact.key, f"{fact.key} ({_origins(run, fact.key)})")
        for fact in identity(run).facts
    ]
    stated = [_setting(run, key) for key in sorted(run.settings)]
    found = [_matching(entries, query) for entries in (facts, stated)]
    heading = (
        f"settings: {len(stated)}" if not query else f"settings: {len(found[1])} of {len(stated)}"
    )
    otherwise = f"Nothing fits “{query}”." if query and stated else _NOTHING
    first = [SettingSection("run", found[0])] if found[0] else []
    return SettingsPage((), (*first, SettingSection(heading, found[1], otherwise)))


def difference_page(runs: Sequence[Run], query: str = "") -> SettingsPage:
    """Return the settings in which runs differ, those that only name something below the others."""
    columns = tuple(run.name for run in runs)
    if len(runs) < 2:
        return SettingsPage(columns, (SettingSection("", (), _ALONE),))
    silent = [run.name for run in runs if not run.settings]
    if len(silent) > len(runs) - 2:
        words = f"Nothing states the settings of {', '.join(silent)}."
        return SettingsPage(columns, (SettingSection("", (), words),))
    groups = _differences(runs)
    found = {name: _matching(entries, query) for name, entries in groups.items()}
    sections = [SettingSection(f"{name}: {len(one)}", one) for name, one in found.items() if one]
    differ = any(groups[name] for name in groups if name != _GLANCE)
    otherwise = f"Nothing fits “{query}”." if query and differ else _SAME
    return SettingsPage(columns, tuple(sections) or (SettingSection("", (), otherwise),))


def _differences(runs: Sequence[Run]) -> dict[str, list[SettingEntry]]:
    """Return in what runs differ, by heading, in the order of showing."""
    groups: dict[str, list[SettingEntry]] = {
        _GLANCE: _facts(runs),
        "differences": [],
        "stated by some only": [],
        "names and places": [],
    }
    for row in difference([run.settings for run in runs]):
        if row.naming:
            heading = "names and places"
        else:
            heading = "stated by some only" if row.silent else "differences"
        entry = SettingEntry(row.key, row.values, "", _by_run(runs, row.key), "differs")
        groups[heading].append(entry)
    return groups


def _facts(runs: Sequence[Run]) -> list[SettingEntry]:
    """Return in what runs differ as people put it, whatever their frameworks call it."""
    known = [{fact.label: fact for fact in identity(run).facts} for run in runs]
    entries = []
    for label in dict.fromkeys(label for facts in known for label in facts):
        stated = [facts.get(label) for facts in known]
        values = tuple(fact.value if fact is not None else ABSENT for fact in stated)
        if all(alike(values[0], value) for value in values):
            continue
        pairs = zip(runs, stated, strict=True)
        about = ", ".join(f"{run.name}: {fact.key}" for run, fact in pairs if fact is not None)
        entries.append(SettingEntry(label, values, "", about, "differs"))
    return entries


def _setting(run: Run, key: str) -> SettingEntry:
    value, origin = run.settings[key], run.settings_origin.get(key, "")
    others = [
        f"{origin_word(where)} says {_plain(other)}"
        for where, other in run.config.said(key)
        if where != origin
    ]
    about = "; ".join([origin or "unknown", *others])
    asked = any(layer(where) is Layer.OVERRIDES for where, _ in run.config.said(key))
    role = "dim" if value is None or is_open(value) else "asked" if asked else "value"
    note = (
        f"{origin_word(origin)}, asked for"
        if asked and layer(origin) is not Layer.OVERRIDES
        else origin_word(origin)
    )
    return SettingEntry(key, (value,), note, about, role)


def _by_run(runs: Sequence[Run], key: str) -> str:
    words = (
        f"{run.name}: {origin_word(run.settings_origin.get(key, ''))}"
        for run in runs
        if key in run.settings
    )
    return ", ".join(words)


def _origins(run: Run, keys: str) -> str:
    """Return where the settings of a fact were read; a metric is read from the log."""
    words = (origin_word(run.settings_origin.get(key, "")) for key in keys.split(", "))
    return ", ".join(dict.fromkeys(filter(None, words))) or "the log"


def origin_word(origin: str) -> str:
    """Return in a word where settings were read."""
    if not origin or origin == "console":
        return origin
    if layer(origin) is Layer.WANDB:
        return "W&B"
    path = PurePath(origin)
    return f".hydra/{path.name}" if path.parent.name == ".hydra" else path.name


def _matching(entries: Sequence[SettingEntry], query: str) -> tuple[SettingEntry, ...]:
    """Return the entries that hold every word of the query in their name, their value or their
    origin.
    """
    words = query.lower().split()
    if not words:
        return tuple(entries)

    def text(entry: SettingEntry) -> str:
        return " ".join((entry.label, *map(_plain, entry.values), entry.note)).lower()

    return tuple(entry for entry in entries if all(word in text(entry) for word in words))


def _plain(value: object) -> str:
    """Return a value as a configuration has it."""
    if value is ABSENT:
        return ""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(value: object) -> str:
    if value is ABSENT:
        return _NOT_STATED
    return _plain(value) if isinstance(value, bool) or value is None else short(value)


# -- rows ------------------------------------------------------------------------------------------


class Widths(NamedTuple):
    """Cells of the columns."""

    label: int
    value: int
    """Of each run."""
    note: int


def widths(section: SettingSection, runs: int, width: int) -> Widths:
    """Return the columns of a section that fit.

    Args:
        section: What is listed.
        runs: How many runs are compared, 0 where it is one run.
        width: Cells of a row.
    """
    longest = max((cell_len(entry.label) for entry in section.entries), default=0)
    if not runs:
        label = min(longest, max(6, width // 2))
        room = max(0, width - label - _GAP)
        value = max(
            (cell_len(_shown(value)) for entry in section.entries for value in entry.values),
            default=0,
        )
        value = min(value, room * 3 // 5) if width >= _WITH_ORIGIN else room
        return Widths(label, value, max(0, room - value - _GAP))
    label = min(longest, _label(width))
    return Widths(label, max(1, (width - label) // runs - _GAP), 0)


def compared(width: int) -> int:
    """Return how many runs can be compared in a list of this width."""
    return max(2, (width - _label(width)) // (_LEAST_VALUE + _GAP))


def _label(width: int) -> int:
    """Return how wide the names of settings may be beside several values."""
    return max(6, width * 2 // 5)


def heading_row(page: SettingsPage, width: int, *, ascii_only: bool) -> Pieces:
    """Return the names of the runs above their columns."""
    size = _compared(page, width)
    cut = "~" if ascii_only else "…"
    row: Pieces = [(_sized("setting", size.label, cut), "dim")]
    for at, name in enumerate(page.columns):
        shown = _sized(middle(name, size.value, ascii_only=ascii_only), size.value, cut)
        row.append((" " * _GAP + shown, "label" if at == 0 else "dim"))
    return row


def _compared(page: SettingsPage, width: int) -> Widths:
    """Return the columns of a page that compares runs: the same in all sections."""
    return widths(SettingSection("", page.entries), len(page.columns), width)


def page_rows(
    page: SettingsPage, width: int, *, ascii_only: bool
) -> tuple[list[Pieces], list[int]]:
    """Return the rows of the list, and which of them are entries."""
    rows: list[Pieces] = []
    heads: list[int] = []
    for section in page.sections:
        size = _compared(page, width) if page.columns else widths(section, 0, width)
        rows += [[]] if rows else []
        if section.heading and (section.entries or page.entries or not section.otherwise):
            rows.append([(fit(section.heading, width), "heading")])
        heads += range(len(rows), len(rows) + len(section.entries))
        rows += [_row(entry, size, ascii_only=ascii_only) for entry in section.entries]
        if not section.entries and section.otherwise:
            rows += _wrapped(section.otherwise, "dim", width, ascii_only=ascii_only)
    return rows, heads


def _wrapped(text: str, role: str, width: int, *, ascii_only: bool) -> list[Pieces]:
    return [[(line, role)] for line in wrapped(text, width, ascii_only=ascii_only)]


def _row(entry: SettingEntry, size: Widths, *, ascii_only: bool) -> Pieces:
    cut = "~" if ascii_only else "…"
    label = fit_left(printable(entry.label, ascii_only=ascii_only), size.label, cut)
    row: Pieces = [(label + " " * (size.label - cell_len(label)), "label")]
    for at, value in enumerate(entry.values):
        text = _sized(middle(_shown(value), size.value, ascii_only=ascii_only), size.value, cut)
        same = at > 0 and value == entry.values[0]
        role = (
            "dim"
            if value is ABSENT or same
            else entry.role
            if at or entry.role != "differs"
            else "value"
        )
        row.append((" " * _GAP + text, role))
    if size.note:
        note = fit_left(printable(entry.note, ascii_only=ascii_only), size.note, cut)
        row.append((" " * _GAP + note, "dim"))
    return row


def detail_rows(
    page: SettingsPage, entry: SettingEntry | None, width: int, height: int, *, ascii_only: bool
) -> list[Pieces]:
    """Return an entry in full, as far as there is room."""
    if entry is None or height < 1:
        return []
    values = [_NOT_STATED if value is ABSENT else _plain(value) for value in entry.values]
    origin = _wrapped(f"read from {entry.about}", "dim", width, ascii_only=ascii_only)
    rows = _wrapped(entry.label, "label", width, ascii_only=ascii_only)
    for name, value in zip(page.columns or ("",), values, strict=True):
        text = f"{name}: {value}" if name else value
        rows += _wrapped(text, "value", width, ascii_only=ascii_only)
    rows += origin
    if len(rows) > height:
        text = f"{entry.label}: {' | '.join(values)}"
        rows = _wrapped(text, "value", width, ascii_only=ascii_only) + origin
    if len(rows) > height and rows[height][0][1] == rows[height - 1][0][1]:  # the sentence goes on
        last, role = rows[height - 1][0]
        cut = "~" if ascii_only else "…"
        rows[height - 1] = [(fit(f"{last} {cut}", width, cut), role)]
    return rows[:height]


def _sized(text: str, width: int, cut: str) -> str:
    """Return text in exactly so many cells."""
    shown = fit(text, max(0, width), cut)
    return shown + " " * (width - cell_len(shown))
