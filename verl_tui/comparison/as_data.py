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
    from collections.abc import Iterator, Mapping

    from verl_tui.comparison.compare import ComparedRun, Comparison
    from verl_tui.comparison.outcomes import Figure

VERSION = 1
"""Version of the JSON's schema: grows when a field is removed or changes its meaning."""


def as_data(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison ready for JSON: no value is NaN or infinite."""
    association = comparison.association
    names = [one.name for one in comparison.runs]
    runs = [
        {
            **_head(one),
            "id": run_id(one.run),
            "paths": one.run.paths,
            "figures": _known(one.measured.figures),
        }
        for one in comparison.runs
    ]
    settings = [
        {
            "label": one.label,
            "values": {
                name: value
                for name, value in zip(names, one.values, strict=True)
                if value is not ABSENT
            },
        }
        for one in comparison.settings
    ]
    groups = [
        {
            "name": group.name,
            "runs": [member.run.name for member in group.members],
            "by": group.by,
            "figures": _known(group.figures),
        }
        for group in comparison.groups
    ]
    found: dict[str, Any] = plain(
        {
            "version": VERSION,
            "baseline": comparison.groups[0].name,
            "align": comparison.alignment.name.lower(),
            "last": comparison.last,
            "runs": runs,
            "settings": settings,
            "groups": groups,
            "differences": comparison.differences,
            "correlations": association.found,
            "confounded": association.confounded,
            "not_ranked": association.unranked,
            "notes": comparison.notes,
        }
    )
    return found


def _known(figures: Mapping[str, Figure]) -> dict[str, Figure | None]:
    return {id: None if one.value is None else one for id, one in figures.items()}


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
        writer.writerow(map(_cell, row.values()))
    return out.getvalue()


def _cells(one: ComparedRun) -> Iterator[tuple[str, Any]]:
    yield "run", one.name
    yield from [*_head(one).items()][1:]
    for kind in KINDS.values():
        figure = one.measured.figures[kind.id]
        if kind.of != "steps":
            yield kind.id, plain(figure.value)
        if kind.of == "mean":
            yield f"{kind.id}_sd", plain(figure.sd)
            yield f"{kind.id}_n", figure.n or None
        if kind.of in ("best", "highest"):
            yield f"{kind.id}_step", figure.step


def _cell(value: object) -> object:
    return cell(value) if isinstance(value, str) else value
