"""A comparison as text cells, the same in a terminal, in Markdown and in reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.differences import (
    SEEDS,
    WITHIN_RUN,
    Association,
    Correlation,
    Difference,
)
from verl_tui.comparison.outcomes import (
    FIGURES,
    KINDS,
    Figure,
    FigureKind,
    MeasuredRun,
    direction,
    incomparable,
)
from verl_tui.comparison.run_columns import text_of
from verl_tui.comparison.settings import (
    ABSENT,
    DifferingSetting,
    RunGroup,
    is_own,
    is_seed,
)
from verl_tui.means import gathered
from verl_tui.runs.time.step_clocks import Alignment
from verl_tui.runs.views.identity import short
from verl_tui.runs.views.state import state_words
from verl_tui.text import one_line
from verl_tui.times import duration
from verl_tui.words import (
    behind,
    counted,
    few,
    figure,
    in_percent,
    number,
    rounded,
    with_spread,
)

if TYPE_CHECKING:
    from verl_tui.comparison.compare import Comparison
    from verl_tui.plain_data import Data

UNKNOWN = "–"
_LONGEST = 40
"""Most characters of a setting's value."""
_OUTCOME = [kind for kind in FIGURES if kind.table == "outcome"]
_COURSE = [kind for kind in FIGURES if kind.table == "course"]
_HEADLINES = ("final_reward", "final_loss", "last_validation")
_MOST_ROWS = 40
"""Most rows of settings, differences and correlations."""
_MOST_WEAK = 5
"""Most correlations that are shown where chance alone may reach all, the strongest of them."""
_MOST_COLUMNS = 7
"""Most columns of settings, or of runs beside them."""
_MOST_KEYS = 4
"""Most settings that are named together."""


class TextTable(NamedTuple):
    """A table, or a sentence in its place."""

    heading: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    note: str = ""
    """A sentence below it."""
    numbers: bool = True
    """True if all columns but the first are of numbers."""
    naming: int = 1
    """Number of first columns that name what a row is about."""


def caption(comparison: Comparison) -> str:
    """Describe in one paragraph what is compared, and how."""
    base = comparison.groups[0]
    runs = f" ({counted(len(base.members), 'run')})" * (len(base.members) > 1)
    where = str(comparison.alignment.value)
    steps = {run.stop.step for run in comparison.runs} - {None}
    if comparison.alignment is Alignment.STEP and len(steps) == 1:
        where = f"at step {steps.pop()}"
    return (
        f"{counted(len(comparison.runs), 'run')}, {where}; baseline: {one_line(base.name)}{runs}. "
        "Final values, throughput, lengths and step times are means of the last "
        f"{comparison.runs[0].count} logged values, ± their standard deviation."
    )


def headlines(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence on which runs reached most, and whether that is certain, for each outcome
    that can be compared.
    """
    for kind in map(
        KINDS.__getitem__, _HEADLINES if len(comparison.groups) > 1 else ()
    ):
        if not incomparable(kind, comparison.runs):
            yield from _headline(kind, comparison)


def _headline(kind: FigureKind, comparison: Comparison) -> Iterator[str]:
    groups, up = comparison.groups, direction(kind, comparison.runs) > 0
    figures = ((one.figures[kind.id], one.name) for one in groups)
    known = [
        (one.value, name, one.unit) for one, name in figures if one.value is not None
    ]
    if known:
        value, name, unit = max(known) if up else min(known)
        said = _verdicts(kind, comparison).get(name)
        word, held = "highest" if up else "lowest", f" ({said})" if said else ""
        yield f"{word} {kind.label}: {one_line(name)}, {figure(value, unit or '')}{held}"


def _verdicts(kind: FigureKind, comparison: Comparison) -> dict[str, str]:
    """Return how each group's figure stands against the baseline's."""
    held = (one for one in comparison.differences if one.figure == kind.id)
    verdicts = {one.group: one.verdict or "no interval" for one in held}
    return {**verdicts, comparison.groups[0].name: "the baseline"}


def tables(comparison: Comparison) -> Iterator[TextTable]:
    """Yield the tables from top to bottom; those with nothing to say are left out."""
    yield _asked(comparison)
    yield _capped(_settings(comparison))
    runs, heads = comparison.runs, comparison.heads
    names = [one_line(head["name"]) for head in heads]
    figures = [run.figures for run in runs]
    columns = {
        "state": [
            state_words(one.run, head["state"])
            for one, head in zip(runs, heads, strict=True)
        ],
        "steps": [*map(steps_text, runs)],
        **_columns(_OUTCOME, figures),
        "findings": list(map(_findings, heads)),
    }
    yield _transposed("outcome", {"run": names, **columns})
    course = _columns(_COURSE, figures)
    yield _transposed("course", {"run": names, **course} if course else {})
    if len(comparison.groups) < len(runs):
        yield _seeds([one for one in comparison.groups if len(one.members) > 1])
    if len(comparison.groups) > 1:
        yield _capped(_differences(comparison))
        yield _capped(_correlations(comparison))


def _asked(comparison: Comparison) -> TextTable:
    """Return the columns that were asked for."""
    asked = comparison.asked
    rows = [
        (one_line(run), *(text_of(one) or UNKNOWN for one in values.values()))
        for run, values in asked.items()
    ]
    columns = next(iter(asked.values()), ())
    return TextTable("columns", ("run", *map(one_line, columns)), rows)


def _seeds(groups: Sequence[RunGroup]) -> TextTable:
    """Return the means over seeds."""
    columns = {
        "group": [one_line(group.name) for group in groups],
        "runs": [str(len(group.members)) for group in groups],
        **_columns(_OUTCOME + _COURSE, [group.figures for group in groups]),
    }
    note = (
        "mean over runs whose settings are the same but for seeds, names, places and dates, ± "
        "standard deviation between them"
    )
    return _transposed("seeds together", columns)._replace(note=note)


def _transposed(heading: str, columns: Mapping[str, Sequence[str]]) -> TextTable:
    return TextTable(heading, tuple(columns), list(zip(*columns.values(), strict=True)))


def _capped(table: TextTable) -> TextTable:
    """Return a table of so many rows that people read it; the note below it counts the others."""
    more = len(table.rows) - _MOST_ROWS
    left = f"{more:,} more in the JSON form." if more > 0 else ""
    note = " ".join(filter(None, (table.note, left)))
    return table._replace(rows=table.rows[:_MOST_ROWS], note=note)


# -- settings --------------------------------------------------------------------------------------


def _settings(comparison: Comparison) -> TextTable:
    """Return the settings that distinguish the runs: seeds, but neither names nor places."""
    heading = "settings that differ"
    found = list(filter(_tells_apart, comparison.settings))
    runs = comparison.runs
    if not found:
        note = "no settings are known"
        if sum(bool(one.run.settings) for one in runs) > 1:
            note = "all settings that are known are the same"
        if len(runs) == 1:
            note = "there is only one run, so nothing differs"
        return TextTable(heading, note=note)
    note = ""
    table = [["setting", *(one_line(one.run.name) for one in runs)]]
    table += [[one_line(one.label), *map(_setting, one.values)] for one in found]
    if len(runs) > min(len(found), _MOST_COLUMNS):
        table[0][0] = "run"
        table = [list(row[: _MOST_COLUMNS + 1]) for row in zip(*table, strict=True)]
        more = len(found) - _MOST_COLUMNS
        note = f"{more:,} more in the JSON form." if more > 0 else ""
    return TextTable(heading, table[0], table[1:], note, numbers=False)


def _tells_apart(setting: DifferingSetting) -> bool:
    return any(is_seed(key) or not is_own(key) for key in setting.keys.values())


def _setting(value: object) -> str:
    return one_line(setting_text(value), _LONGEST)


def setting_text(value: object) -> str:
    """Write a setting's value in full."""
    return UNKNOWN if value is ABSENT else short(value)


# -- figures ---------------------------------------------------------------------------------------


def _columns(
    kinds: Sequence[FigureKind], figures: Sequence[Mapping[str, Figure]]
) -> dict[str, list[str]]:
    """Return the columns of these figures, under their headings; unknown ones are left out."""
    columns = {}
    for kind in kinds:
        id, column = kind.id, [one[kind.id] for one in figures]
        units = {one.unit or kind.unit for one in column if one.value is not None}
        if units:
            unit = units.pop() if len(units) == 1 else ""
            shown = behind(unit) * (id != "time")
            heading = kind.label + f",{shown}" * bool(shown)
            columns[heading] = [_figure(id, one, unit) for one in column]
    return columns


def _figure(id: str, figure: Figure, unit: str) -> str:
    """Write a figure with its spread or its step, and its unit if the column does not say it."""
    if figure.value is None:
        return UNKNOWN
    if id == "time":
        return duration(figure.value)
    times, sign = in_percent(figure.unit or unit)
    text = number(times * figure.value)
    if figure.sd is not None:
        text = with_spread(times * figure.value, times * figure.sd)
    text += sign or f" {figure.unit}" * bool(figure.unit and not unit)
    if figure.step is not None:
        text += f" at {figure.step}"
        text += " (above its band)" * bool(figure.outside_band)
    return text


def _findings(head: Data) -> str:
    return f"{head['findings']} ({head['worst']})" if head["worst"] else "0"


def steps_text(one: MeasuredRun) -> str:
    """Write the steps of a run: those that count, and at its end in total."""
    step, total = one.stop.step, one.run.total_steps
    if step is None:
        return UNKNOWN
    return f"{step}/{total}" if total and step == one.run.step else str(step)


# -- differences -----------------------------------------------------------------------------------


def _differences(comparison: Comparison) -> TextTable:
    """Return the differences that have an interval, figure by figure."""
    heading = (
        f"differences to {one_line(comparison.groups[0].name)}, with 95% intervals"
    )
    found = [one for one in comparison.differences if one.basis is not None]
    if not found:
        note = "no figure of two runs is known well enough for an interval"
        return TextTable(heading, note=note)
    found.sort(key=lambda one: [*KINDS].index(one.figure))
    notes = []
    if any(one.basis == WITHIN_RUN for one in found):
        notes.append(
            "Intervals from last values hold for these runs alone: they say nothing of other "
            "seeds, which often differ more."
        )
    reasons = ((one.reason, KINDS[one.figure].label) for one in comparison.differences)
    for reason, labels in gathered(dict.fromkeys(reasons)).items():
        if reason is not None:
            notes.append(f"No interval for {', '.join(labels)}: {reason}.")
    if lucky := len(found) // 20:
        said = f"about {lucky} would exclude zero by chance alone"
        notes.append(f"Of {len(found)} intervals, {said}.")
    columns = [
        "figure",
        "of",
        "baseline",
        "value",
        "difference",
        "interval",
        "from",
        "verdict",
    ]
    rows = list(map(_difference, found))
    return TextTable(heading, columns, rows, " ".join(notes), numbers=False, naming=2)


def _difference(one: Difference) -> Sequence[str]:
    basis = "last values"
    if one.basis == SEEDS:
        basis = f"{one.n[0]} and {one.n[1]} seeds"
    between = f"{_signed(one.low or 0.0)} to {_signed(one.high or 0.0)}"
    return (
        KINDS[one.figure].label,
        one_line(one.group),
        number(one.baseline),
        number(one.value),
        _signed(one.difference),
        between,
        basis,
        one.verdict or "",
    )


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{rounded(value)}"


# -- correlations ----------------------------------------------------------------------------------


def _correlations(comparison: Comparison) -> TextTable:
    """Return the correlations beyond chance, else the strongest few."""
    heading = "which setting goes with which outcome"
    association = comparison.association
    clear = [one for one in association.found if one.beyond_chance]
    shown = clear or association.found[:_MOST_WEAK]
    columns = ("setting", "outcome", "rank correlation", "groups", "beyond chance")
    note = " ".join(_notes(association, shown))
    return TextTable(heading, columns, list(map(_correlation, shown)), note)


def _notes(association: Association, shown: Sequence[Correlation]) -> Iterator[str]:
    """Yield what to know about correlations."""
    if association.reason:
        yield f"{association.reason}."
    if shown:
        yield "1 or -1: the outcome always rises or falls with the setting; 0: it does not."
    count = len(association.found)
    if lucky := count // 20:
        yield f"Of {count} pairs, about {lucky} would be beyond it by chance alone."
    keys = set(chain.from_iterable(one.settings for one in shown))
    for together in association.confounded:
        if keys.intersection(together):
            yield f"{_listed(together)} change together: their effects cannot be told apart."
    if association.unranked:
        listed = _listed(association.unranked)
        yield f"Not ranked, as more than two values have no order: {listed}."


def _correlation(one: Correlation) -> Sequence[str]:
    label = _listed(one.settings)
    if one.levels is not None:
        first, second = (one_line(level, _LONGEST) for level in one.levels)
        label += f" ({first} → {second})"
    clear = "yes" if one.beyond_chance else "no"
    return label, KINDS[one.figure].label, f"{one.coefficient:+.2f}", str(one.n), clear


def _listed(keys: Sequence[str]) -> str:
    """Name settings by the last parts of their names, the first few of many."""
    return few((one_line(".".join(key.split(".")[-2:])) for key in keys), _MOST_KEYS)
