"""A comparison for programs: JSON, and a table with one row per run."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

from verl_tui.comparison.outcomes import FIGURES, KINDS
from verl_tui.comparison.setting_differences import ABSENT
from verl_tui.runs.run_id import run_id
from verl_tui.text import cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.comparison.compare import ComparedRun, Comparison
    from verl_tui.comparison.correlations import Correlation
    from verl_tui.comparison.differences import Difference
    from verl_tui.comparison.outcomes import Figure
    from verl_tui.comparison.seeds import RunGroup
    from verl_tui.comparison.setting_differences import DifferingSetting

VERSION = 1
"""Version of the JSON's schema: grows when a field is removed or changes its meaning."""
_STEPPED = frozenset(
    {"best_reward", "best_validation", "highest_policy_kl", "highest_reference_kl"}
)
"""Figures of a single step, which has a column of its own."""


def as_data(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison ready for JSON: no value is NaN or infinite."""
    association = comparison.association
    return {
        "version": VERSION,
        "baseline": comparison.groups[0].name,
        "align": comparison.alignment.name.lower(),
        "last": comparison.last,
        "runs": [_run(run) for run in comparison.runs],
        "settings": [
            _setting(setting, comparison.runs) for setting in comparison.settings
        ],
        "groups": [_group(group) for group in comparison.groups],
        "differences": list(map(_difference, comparison.differences)),
        "correlations": list(map(_correlation, association.found)),
        "confounded": [list(keys) for keys in association.confounded],
        "not_ranked": list(association.unranked),
        "notes": list(comparison.notes),
    }


def _setting(setting: DifferingSetting, runs: Sequence[ComparedRun]) -> dict[str, Any]:
    values = zip(runs, setting.values, strict=True)
    stated = {run.name: _stated(value) for run, value in values if value is not ABSENT}
    return {"label": setting.label, "values": stated}


def _run(one: ComparedRun) -> dict[str, Any]:
    return {
        "name": one.name,
        "id": run_id(one.run),
        "paths": list(one.run.paths),
        "group": one.group,
        "state": one.state,
        "step": one.measured.stop.step,
        "total_steps": one.run.total_steps,
        "findings": one.findings,
        "worst": None if one.worst is None else one.worst.word,
        "figures": {
            id: figure_data(figure) for id, figure in one.measured.figures.items()
        },
    }


def figure_data(figure: Figure) -> dict[str, Any] | None:
    """Return a figure ready for JSON, None without a value."""
    if figure.value is None:
        return None
    return {
        "value": json_number(figure.value),
        "sd": json_number(figure.spread),
        "n": figure.size,
        "not_finite": figure.not_finite,
        "step": figure.step,
        "key": figure.key or None,
        "unit": figure.unit or None,
        "outside_band": figure.outside,
    }


def _group(group: RunGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "runs": [member.run.name for member in group.members],
        "by": group.by or None,
        "figures": {id: figure_data(figure) for id, figure in group.figures.items()},
    }


def _difference(one: Difference) -> dict[str, Any]:
    found = one.interval
    return {
        "group": one.group,
        "figure": one.figure,
        "baseline": json_number(one.baseline),
        "value": json_number(one.value),
        "difference": json_number(one.change),
        "low": None if found is None else json_number(found.low),
        "high": None if found is None else json_number(found.high),
        "basis": None if one.basis is None else one.basis.value,
        "n": list(one.runs),
        "verdict": one.verdict or None,
        "reason": one.reason or None,
    }


def _correlation(one: Correlation) -> dict[str, Any]:
    return {
        "settings": list(one.settings),
        "figure": one.figure,
        "kind": "spearman" if one.levels is None else "rank-biserial",
        "coefficient": one.coefficient,
        "n": one.groups,
        "beyond_chance": one.beyond_chance,
        "levels": None if one.levels is None else list(one.levels),
    }


def _stated(value: object) -> object:
    """Return a setting's value for JSON."""
    if isinstance(value, float):
        return json_number(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def json_number(value: float | None) -> float | None:
    """Return a number for JSON, which knows neither NaN nor infinity."""
    if value is not None and math.isfinite(value):
        return value
    return None


def as_csv(comparison: Comparison) -> str:
    """Return a table with one row per run: names and figures first, then the settings that
    differ.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    settings = comparison.settings
    labels = [f"setting:{setting.label}" for setting in settings]
    writer.writerow([*_columns(), *labels])
    for at, one in enumerate(comparison.runs):
        stated = (setting.values[at] for setting in settings)
        values = [*_cells(one), *("" if value is ABSENT else value for value in stated)]
        writer.writerow(
            [cell(value) if isinstance(value, str) else value for value in values]
        )
    return out.getvalue()


def _columns() -> Iterator[str]:
    yield from ("run", "group", "state", "step", "total_steps", "findings", "worst")
    for kind in FIGURES:
        if kind.id != "steps":
            yield from _columns_of(kind.id)


def _columns_of(id: str) -> Iterator[str]:
    yield id
    if KINDS[id].is_mean:
        yield from (f"{id}_sd", f"{id}_n")
    if id in _STEPPED:
        yield f"{id}_step"


def _cells(one: ComparedRun) -> Iterator[Any]:
    yield from (
        one.name,
        one.group,
        one.state,
        one.measured.stop.step,
        one.run.total_steps,
    )
    yield from (one.findings, None if one.worst is None else one.worst.word)
    for id, figure in one.measured.figures.items():
        if id == "steps":
            continue
        yield json_number(figure.value)
        if KINDS[id].is_mean:
            yield from (json_number(figure.spread), figure.size or None)
        if id in _STEPPED:
            yield figure.step
