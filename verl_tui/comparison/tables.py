"""The tables of a comparison as text cells, the same in a terminal, in Markdown and in reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.comparison.outcomes import KINDS
from verl_tui.comparison.seeds import is_own, is_seed
from verl_tui.comparison.setting_differences import ABSENT
from verl_tui.comparison.statistic_tables import (
    LONGEST,
    UNKNOWN,
    TextTable,
    correlation_table,
    difference_table,
    left_out,
)
from verl_tui.runs.views.alignment import Alignment
from verl_tui.runs.views.identity import short
from verl_tui.text import one_line
from verl_tui.times import duration
from verl_tui.words import counted, number, with_spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.comparison.compare import ComparedRun, Comparison
    from verl_tui.comparison.outcomes import Figure
    from verl_tui.comparison.setting_differences import DifferingSetting

_OUTCOME = (
    "final_reward",
    "best_reward",
    "final_loss",
    "last_validation",
    "best_validation",
)
_COURSE = (
    *(
        "highest_policy_kl",
        "highest_reference_kl",
        "response_length",
        "throughput",
        "step_time",
    ),
    "time",
)
_MOST_SETTINGS = 30
_MOST_COLUMNS = 7
"""Most columns of settings, or of runs beside them."""
_TYPOGRAPHIC_UNITS: Mapping[str, str] = {"percent": "%", "share": ""}


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
    yield _figures("outcome", comparison, _OUTCOME, ends=True)
    yield _figures("course", comparison, _COURSE)
    if comparison.has_seeds:
        yield _groups(comparison)
    if len(comparison.groups) > 1:
        yield difference_table(comparison)
        yield correlation_table(comparison)


# -- settings --------------------------------------------------------------------------------------


def telling(settings: Iterable[DifferingSetting]) -> list[DifferingSetting]:
    """Return the settings that distinguish the runs: seeds, but neither names nor places."""
    return [setting for setting in settings if _tells_apart(setting)]


def _tells_apart(setting: DifferingSetting) -> bool:
    keys = setting.keys.values()
    return not keys or any(is_seed(key) or not is_own(key) for key in keys)


def _settings(comparison: Comparison) -> TextTable:
    heading = "settings that differ"
    found = telling(comparison.settings)
    runs = comparison.runs
    if not found:
        return TextTable(heading, note=_no_settings(runs))
    rows: list[tuple[str, ...]] = []
    if len(runs) <= min(len(found), _MOST_COLUMNS):
        columns = ("setting", *(one_line(run.name) for run in runs))
        for setting in found[:_MOST_SETTINGS]:
            values = [_setting(value) for value in setting.values]
            rows.append((one_line(setting.label), *values))
    else:
        first = found[:_MOST_COLUMNS]
        columns = ("run", *(one_line(setting.label) for setting in first))
        for at, run in enumerate(runs):
            values = [_setting(setting.values[at]) for setting in first]
            rows.append((one_line(run.name), *values))
    shown = min(
        len(found), _MOST_SETTINGS if columns[0] == "setting" else len(columns) - 1
    )
    return TextTable(
        heading, columns, tuple(rows), left_out(len(found) - shown), numbers=False
    )


def _no_settings(runs: Sequence[ComparedRun]) -> str:
    if len(runs) == 1:
        return "there is only one run, so nothing differs"
    known = sum(bool(one.run.settings) for one in runs)
    return (
        "all settings that are known are the same"
        if known > 1
        else "no settings are known"
    )


def _setting(value: object) -> str:
    if value is ABSENT:
        return UNKNOWN
    if value is None:
        return "null"
    return one_line(short(value), LONGEST)


# -- figures ---------------------------------------------------------------------------------------


def _figures(
    heading: str, comparison: Comparison, ids: Sequence[str], *, ends: bool = False
) -> TextTable:
    """Return a table with one row per run.

    Args:
        heading: Its title.
        comparison: The comparison.
        ids: Figures, one column each; unknown ones are left out.
        ends: Whether to show how far each run got, and its findings.
    """
    known = [id for id in ids if _is_known(id, comparison)]
    units = {id: _unit(id, comparison) for id in known}
    columns = [_heading(id, units[id]) for id in known]
    rows = []
    for run in comparison.runs:
        cells = [_figure(id, run.measured.figures[id], units[id]) for id in known]
        cells = [run.state, _steps(run), *cells, _findings(run)] if ends else cells
        rows.append((one_line(run.name), *cells))
    if ends:
        columns = ["state", "steps", *columns, "findings"]
    if columns:
        return TextTable(heading, ("run", *columns), tuple(rows))
    return TextTable(heading)


def _is_known(id: str, comparison: Comparison) -> bool:
    return any(run.measured.figures[id].value is not None for run in comparison.runs)


def _heading(id: str, unit: str) -> str:
    label = KINDS[id].label
    shown = "" if id == "time" else _TYPOGRAPHIC_UNITS.get(unit, unit)
    return f"{label}, {shown}" if shown else label


def _unit(id: str, comparison: Comparison) -> str:
    """Return the unit that all runs have in common, empty if they have none."""
    found = (run.measured.figures[id] for run in comparison.runs)
    units = {
        figure.unit or KINDS[id].unit for figure in found if figure.value is not None
    }
    if len(units) != 1:
        return ""
    return units.pop()


def _figure(id: str, figure: Figure, unit: str) -> str:
    """Write a figure with its spread or its step, and its unit if the column does not say it."""
    if figure.value is None:
        return UNKNOWN
    if id == "time":
        return duration(figure.value)
    text = _with_spread(figure)
    if figure.unit != unit and figure.unit and not unit:
        text += f" {_TYPOGRAPHIC_UNITS.get(figure.unit, figure.unit)}"
    if figure.step is not None:
        text += f" at {figure.step}"
    return text + " (above its band)" if figure.outside else text


def _steps(one: ComparedRun) -> str:
    step = one.measured.stop.step
    total = one.run.total_steps
    if step is None:
        return UNKNOWN
    if total and step == one.run.step:
        return f"{step}/{total}"
    return str(step)


def _findings(one: ComparedRun) -> str:
    return f"{one.findings} ({one.worst.word})" if one.worst is not None else "0"


def _groups(comparison: Comparison) -> TextTable:
    """Return the means over seeds."""
    ids = [
        id
        for id in (*_OUTCOME, *_COURSE)
        if any(group.figures[id].value is not None for group in comparison.groups)
    ]
    units = {id: _unit(id, comparison) for id in ids}
    rows: list[tuple[str, ...]] = []
    for group in comparison.groups:
        runs = len(group.members)
        if runs > 1:
            means = [_mean(id, group.figures[id], runs) for id in ids]
            rows.append((one_line(group.name), str(runs), *means))
    columns = ("group", "runs", *(_heading(id, units[id]) for id in ids))
    note = "mean over the runs of a group ± standard deviation between them"
    return TextTable("seeds together", columns, tuple(rows), note)


def _mean(id: str, figure: Figure, runs: int) -> str:
    if figure.value is None:
        return UNKNOWN
    if id == "time":
        return duration(figure.value)
    if runs == 1:
        return number(figure.value)
    return _with_spread(figure) + (
        f" (n = {figure.size})" if figure.size < runs else ""
    )


def _with_spread(figure: Figure) -> str:
    if figure.value is None:
        return UNKNOWN
    if figure.spread is None:
        return number(figure.value)
    return with_spread(figure.value, figure.spread)
