"""The tables of a comparison as text cells, the same in a terminal, in Markdown and in reports."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.correlations import FEW
from verl_tui.comparison.differences import Basis
from verl_tui.comparison.outcomes import KINDS
from verl_tui.comparison.seeds import is_own, is_seed
from verl_tui.comparison.setting_differences import ABSENT
from verl_tui.runs.views.alignment import Alignment
from verl_tui.runs.views.identity import short
from verl_tui.text import one_line
from verl_tui.times import duration
from verl_tui.words import counted, number, rounded, with_spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.comparison.compare import ComparedRun, Comparison
    from verl_tui.comparison.correlations import Association, Correlation
    from verl_tui.comparison.differences import Difference
    from verl_tui.comparison.outcomes import Figure
    from verl_tui.comparison.setting_differences import DifferingSetting
    from verl_tui.runs.run import Run

UNKNOWN = "–"
_LONGEST = 40
"""Most characters of a setting's value."""
_OUTCOME = (
    *(
        "final_reward",
        "best_reward",
        "final_loss",
        "last_validation",
        "best_validation",
    ),
)
_COURSE = (
    *("highest_policy_kl", "highest_reference_kl", "response_length", "throughput"),
    *("step_time", "time"),
)
_MOST_SETTINGS, _MOST_DIFFERENCES, _MOST_CORRELATIONS = 30, 60, 15
_MOST_WEAK = 5
"""Most correlations that chance alone may reach, the strongest of them."""
_MOST_COLUMNS = 7
"""Most columns of settings, or of runs beside them."""
_MOST_KEYS = 2
"""Most settings named in a row, and in a sentence three times as many."""
_SIGNS = {"percent": "%", "share": ""}
"""Units that are not written as words."""


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
    held = f"baseline: {one_line(base.name)}"
    if len(base.members) > 1:
        held += f" ({counted(len(base.members), 'run')})"
    where = str(comparison.alignment.value)
    steps = {run.measured.stop.step for run in comparison.runs} - {None}
    if comparison.alignment is Alignment.STEP and len(steps) == 1:
        where = f"at step {steps.pop()}"
    return (
        f"{counted(len(comparison.runs), 'run')}, {where}; {held}. Final values, throughput, "
        f"lengths and step times are means of the last {comparison.last} logged values, ± their "
        "standard deviation."
    )


def tables(comparison: Comparison) -> Iterator[TextTable]:
    """Yield the tables from top to bottom; those with nothing to say are left out."""
    yield _settings(comparison)
    runs = comparison.runs
    names = [one_line(run.name) for run in runs]
    figures = [run.measured.figures for run in runs]
    columns = {
        "state": [run.state for run in runs],
        "steps": [_steps(run.measured.stop.step, run.run) for run in runs],
        **_columns(_OUTCOME, figures),
        "findings": [
            "0" if run.worst is None else f"{run.findings} ({run.worst.word})"
            for run in runs
        ],
    }
    yield _transposed("outcome", {"run": names, **columns})
    course = _columns(_COURSE, figures)
    yield _transposed("course", {"run": names, **course} if course else {})
    if comparison.has_seeds:
        yield _groups(comparison)
    if len(comparison.groups) > 1:
        yield _difference_table(comparison)
        yield _correlation_table(comparison)


def _transposed(
    heading: str, columns: Mapping[str, Sequence[str]], note: str = ""
) -> TextTable:
    return TextTable(
        heading, tuple(columns), list(zip(*columns.values(), strict=True)), note
    )


def _left_out(count: int) -> str:
    """Say how many rows are not shown, nothing for none."""
    return f"{count:,} more in the JSON form" if count > 0 else ""


# -- settings --------------------------------------------------------------------------------------


def _settings(comparison: Comparison) -> TextTable:
    """Return the settings that distinguish the runs: seeds, but neither names nor places."""
    heading = "settings that differ"
    found = list(filter(_tells_apart, comparison.settings))
    if not found:
        return TextTable(heading, note=_no_settings(comparison.runs))
    names = [one_line(run.name) for run in comparison.runs]
    below = len(names) <= min(len(found), _MOST_COLUMNS)
    shown = found[: _MOST_SETTINGS if below else _MOST_COLUMNS]
    table = [["setting", *names]]
    table += [[one_line(one.label), *map(_setting, one.values)] for one in shown]
    if not below:
        table = [list(row) for row in zip(*table, strict=True)]
        table[0][0] = "run"
    note = _left_out(len(found) - len(shown))
    return TextTable(heading, table[0], table[1:], note, numbers=False)


def _tells_apart(setting: DifferingSetting) -> bool:
    keys = setting.keys.values()
    return not keys or any(is_seed(key) or not is_own(key) for key in keys)


def _no_settings(runs: Sequence[ComparedRun]) -> str:
    if len(runs) == 1:
        return "there is only one run, so nothing differs"
    if sum(bool(one.run.settings) for one in runs) > 1:
        return "all settings that are known are the same"
    return "no settings are known"


def _setting(value: object) -> str:
    if value is ABSENT:
        return UNKNOWN
    return "null" if value is None else one_line(short(value), _LONGEST)


# -- figures ---------------------------------------------------------------------------------------


def _columns(
    ids: Sequence[str], figures: Sequence[Mapping[str, Figure]]
) -> dict[str, list[str]]:
    """Return the columns of these figures, under their headings; unknown ones are left out."""
    columns = {}
    for id in ids:
        column = [one[id] for one in figures]
        units = {one.unit or KINDS[id].unit for one in column if one.value is not None}
        if not units:
            continue
        unit = units.pop() if len(units) == 1 else ""
        shown = "" if id == "time" else _SIGNS.get(unit, unit)
        heading = ", ".join(filter(None, (KINDS[id].label, shown)))
        columns[heading] = [_figure(id, one, unit) for one in column]
    return columns


def _figure(id: str, figure: Figure, unit: str) -> str:
    """Write a figure with its spread or its step, and its unit if the column does not say it."""
    if figure.value is None:
        return UNKNOWN
    if id == "time":
        return duration(figure.value)
    if figure.spread is None:
        text = number(figure.value)
    else:
        text = with_spread(figure.value, figure.spread)
    if figure.unit and not unit:
        text += f" {_SIGNS.get(figure.unit, figure.unit)}"
    if figure.step is not None:
        text += f" at {figure.step}"
    return text + " (above its band)" if figure.outside else text


def _steps(step: int | None, run: Run) -> str:
    if step is None:
        return UNKNOWN
    total = run.total_steps
    return f"{step}/{total}" if total and step == run.step else str(step)


def _groups(comparison: Comparison) -> TextTable:
    """Return the means over seeds."""
    groups = [group for group in comparison.groups if len(group.members) > 1]
    means = [
        {id: one._replace(outside=None) for id, one in group.figures.items()}
        for group in groups
    ]
    columns = {
        "group": [one_line(group.name) for group in groups],
        "runs": [str(len(group.members)) for group in groups],
        **_columns((*_OUTCOME, *_COURSE), means),
    }
    note = "mean over the runs of a group ± standard deviation between them"
    return _transposed("seeds together", columns, note)


# -- differences -----------------------------------------------------------------------------------


def _difference_table(comparison: Comparison) -> TextTable:
    """Return the differences that have an interval, figure by figure."""
    base = one_line(comparison.groups[0].name)
    heading = f"differences to {base}, with 95% intervals"
    without = [one for one in comparison.differences if one.interval is None]
    found = [one for one in comparison.differences if one.interval is not None]
    if not found:
        note = "no figure of two runs is known well enough for an interval"
        return TextTable(heading, note=note)
    order = list(KINDS)
    found.sort(key=lambda one: order.index(one.figure))
    return TextTable(
        heading,
        (
            *("figure", "of", "baseline", "value", "difference", "interval"),
            *("from", "verdict"),
        ),
        list(map(_difference, found[:_MOST_DIFFERENCES])),
        " ".join(_on_intervals(found, without)),
        numbers=False,
        naming=2,
    )


def _difference(one: Difference) -> Sequence[str]:
    basis = "last values"
    if one.basis is Basis.SEEDS:
        basis = f"{one.runs[0]} and {one.runs[1]} seeds"
    return (
        *(KINDS[one.figure].label, one_line(one.group)),
        *(number(one.baseline), number(one.value), _signed(one.change)),
        *(_between(one), basis, one.verdict),
    )


def _on_intervals(
    found: Sequence[Difference], without: Sequence[Difference]
) -> Iterator[str]:
    if any(difference.basis is Basis.WITHIN_RUN for difference in found):
        yield (
            "Intervals from last values hold for these runs alone: they say nothing of other "
            "seeds, which often differ more."
        )
    by_reason: dict[str, dict[str, None]] = {}
    for one in without:
        by_reason.setdefault(one.reason, {})[KINDS[one.figure].label] = None
    for reason, labels in by_reason.items():
        yield f"No interval for {', '.join(labels)}: {reason}."
    if len(found) > FEW:
        yield (
            f"Of {len(found)} intervals, about {max(1, round(len(found) / 20))} would exclude "
            "zero by chance alone."
        )
    more = _left_out(len(found) - _MOST_DIFFERENCES)
    if more:
        yield f"{more}."


def _between(one: Difference) -> str:
    assert one.interval is not None
    return f"{_signed(one.interval.low)} to {_signed(one.interval.high)}"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + rounded(value)


# -- correlations ----------------------------------------------------------------------------------


def _correlation_table(comparison: Comparison) -> TextTable:
    """Return the correlations beyond chance, else the strongest few."""
    heading = "which setting goes with which outcome"
    association = comparison.association
    found = association.found
    clear = [one for one in found if one.beyond_chance][:_MOST_CORRELATIONS]
    weak = [one for one in found if not one.beyond_chance]
    shown = [*clear, *weak][: max(_MOST_WEAK, len(clear))]
    note = " ".join(_on_correlations(association, shown))
    if not found:
        note = ". ".join(filter(None, (association.reason, note)))
        return TextTable(heading, note=note)
    columns = ("setting", "outcome", "rank correlation", "groups", "beyond chance")
    return TextTable(heading, columns, list(map(_correlation, shown)), note)


def _correlation(one: Correlation) -> Sequence[str]:
    label = _listed(one.settings, _MOST_KEYS)
    if one.levels is not None:
        first, second = (one_line(level, _LONGEST) for level in one.levels)
        label += f" ({first} → {second})"
    clear = "yes" if one.beyond_chance else "no"
    coefficient = f"{one.coefficient:+.2f}"
    return label, KINDS[one.figure].label, coefficient, str(one.groups), clear


def _on_correlations(
    association: Association, shown: Sequence[Correlation]
) -> Iterator[str]:
    count = len(association.found)
    if shown:
        yield "1 or -1: the outcome always rises or falls with the setting; 0: it does not."
        least = min(correlation.groups for correlation in shown)
        if least < FEW:
            yield (
                f"These are few: over {least} groups, chance alone makes strong "
                "correlations."
            )
    if count > FEW:
        lucky = max(1, round(count / 20))
        yield f"Of {count} pairs, about {lucky} would be beyond it by chance alone."
    if count > len(shown):
        yield f"{_left_out(count - len(shown))}."
    keys = set(chain.from_iterable(one.settings for one in shown))
    for together in association.confounded:
        if keys.intersection(together):
            yield (
                f"{_listed(together, 3 * _MOST_KEYS)} change together: their effects cannot be "
                "told apart."
            )
    if association.unranked:
        listed = _listed(association.unranked, 3 * _MOST_KEYS)
        yield f"Not ranked, as more than two values have no order: {listed}."


def _listed(keys: Sequence[str], most: int) -> str:
    """Name settings by the last parts of their names, the first few of many."""
    named = [one_line(".".join(key.split(".")[-2:])) for key in keys[:most]]
    return ", ".join(
        [*named, f"{len(keys) - most} more"] if len(keys) > most else named
    )


# -- in a sentence ---------------------------------------------------------------------------------


def headlines(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence on which runs reached most, for each outcome that can be compared."""
    if len(comparison.groups) < 2:
        return
    for id in ("final_reward", "final_loss", "last_validation"):
        if id in comparison.compared:
            yield _headline(id, comparison)


def _headline(id: str, comparison: Comparison) -> str:
    better = comparison.compared[id]
    figures = {group.name: group.figures[id].value for group in comparison.groups}
    values = {name: value for name, value in figures.items() if value is not None}
    top = max(values, key=lambda name: values[name] * better)
    word = "highest" if better > 0 else "lowest"
    start = f"{word} {KINDS[id].label}: {one_line(top)}, {number(values[top])}"
    if top == comparison.groups[0].name:
        return f"{start}, which is the baseline"
    for one in comparison.differences:
        if (one.figure, one.group) == (id, top):
            words = f"{start}, {_signed(one.change)} against the baseline"
            if one.interval is None:
                return f"{words}, without an interval"
            only = "" if one.basis is Basis.SEEDS else ", for these runs alone"
            return f"{words} ({_between(one)}{only}): {one.verdict}"
    return start
