"""A comparison for programs: JSON, and a table with one row per run."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from verl_tui.comparison.outcomes import KINDS
from verl_tui.comparison.setting_differences import ABSENT
from verl_tui.plain_data import plain
from verl_tui.runs.run_id import run_id
from verl_tui.text import cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.comparison.compare import ComparedRun, Comparison
    from verl_tui.comparison.correlations import Correlation
    from verl_tui.comparison.differences import Difference
    from verl_tui.comparison.outcomes import Figure
    from verl_tui.comparison.seeds import RunGroup
    from verl_tui.comparison.setting_differences import DifferingSetting

VERSION = 1
"""Version of the JSON's schema: grows when a field is removed or changes its meaning."""


def as_data(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison ready for JSON: no value is NaN or infinite."""
    association = comparison.association
    found: dict[str, Any] = plain(
        {
            "version": VERSION,
            "baseline": comparison.groups[0].name,
            "align": comparison.alignment.name.lower(),
            "last": comparison.last,
            "runs": map(_run, comparison.runs),
            "settings": [
                _setting(setting, comparison.runs) for setting in comparison.settings
            ],
            "groups": map(_group, comparison.groups),
            "differences": map(_difference, comparison.differences),
            "correlations": map(_correlation, association.found),
            "confounded": association.confounded,
            "not_ranked": association.unranked,
            "notes": comparison.notes,
        }
    )
    return found


def _run(one: ComparedRun) -> dict[str, Any]:
    figures = _figures(one.measured.figures)
    return {
        **_head(one),
        "id": run_id(one.run),
        "paths": one.run.paths,
        "figures": figures,
    }


def _setting(setting: DifferingSetting, runs: Sequence[ComparedRun]) -> dict[str, Any]:
    values = zip(runs, setting.values, strict=True)
    stated = {run.name: value for run, value in values if value is not ABSENT}
    return {"label": setting.label, "values": stated}


def _group(group: RunGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "runs": [member.run.name for member in group.members],
        "by": group.by or None,
        "figures": _figures(group.figures),
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "group": one.group,
        "figure": one.figure,
        "baseline": one.baseline,
        "value": one.value,
        "difference": one.change,
        "low": one.interval and one.interval.low,
        "high": one.interval and one.interval.high,
        "basis": one.basis and one.basis.value,
        "n": one.runs,
        "verdict": one.verdict or None,
        "reason": one.reason or None,
    }


def _correlation(one: Correlation) -> dict[str, Any]:
    return {
        "settings": one.settings,
        "figure": one.figure,
        "kind": "spearman" if one.levels is None else "rank-biserial",
        "coefficient": one.coefficient,
        "n": one.groups,
        "beyond_chance": one.beyond_chance,
        "levels": one.levels,
    }


def _head(one: ComparedRun) -> dict[str, Any]:
    """Return what stands beside a run's figures."""
    return {
        "name": one.name,
        "group": one.group,
        "state": one.state,
        "step": one.measured.stop.step,
        "total_steps": one.run.total_steps,
        "findings": one.findings,
        "worst": one.worst and one.worst.word,
    }


def _figures(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """Return figures by id, None for those without a value."""
    return {
        id: one.value
        if one.value is None
        else {
            "value": one.value,
            "sd": one.spread,
            "n": one.size,
            "not_finite": one.not_finite,
            "step": one.step,
            "key": one.key or None,
            "unit": one.unit or None,
            "outside_band": one.outside,
        }
        for id, one in figures.items()
    }


def as_csv(comparison: Comparison) -> str:
    """Return a table with one row per run: names and figures first, then the settings that
    differ.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for at, one in enumerate(comparison.runs):
        row = dict(_cells(one))
        for setting in comparison.settings:
            value = setting.values[at]
            row[f"setting:{setting.label}"] = "" if value is ABSENT else value
        if at == 0:
            writer.writerow(row)
        writer.writerow(
            [cell(value) if isinstance(value, str) else value for value in row.values()]
        )
    return out.getvalue()


def _cells(one: ComparedRun) -> Iterator[tuple[str, Any]]:
    head = _head(one)
    yield "run", head.pop("name")
    yield from head.items()
    for id, figure in one.measured.figures.items():
        if id == "steps":
            continue
        yield id, plain(figure.value)
        if KINDS[id].is_mean:
            yield f"{id}_sd", plain(figure.spread)
            yield f"{id}_n", figure.size or None
        if KINDS[id].has_step:
            yield f"{id}_step", figure.step
