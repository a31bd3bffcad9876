"""A report for programs: JSON."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

from verl_tui.comparison.written import as_data as comparison_data
from verl_tui.plain_data import plain

if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.report.record import Report, ReportedRun
    from verl_tui.report.run_charts import ReportChart, RunCurve

VERSION = 1
"""Version of the schema: grows when a field is removed or changes its meaning."""
_MOST_POINTS, _MOST_OF_GREY = 200, 50
"""Most stretches of steps that a curve is summed up in, for runs with a colour and without."""


def as_data(report: Report) -> dict[str, Any]:
    """Return a report ready for JSON: no value is NaN or infinite."""
    origin = report.origin
    return {
        "version": VERSION,
        "title": report.title,
        "made": {
            "verl_tui": origin.version,
            "time": origin.made,
            "command": origin.command,
            "not_read": list(origin.sentences),
            "left_out": list(report.left_out),
        },
        "runs": [_run(run) for run in report.runs],
        "comparison": comparison_data(report.comparison),
        "charts": [_chart(chart) for chart in report.charts],
    }


def _run(run: ReportedRun) -> dict[str, Any]:
    same = {name: run.described[name] for name in ("id", "verdict", "why", "next")}
    bests = [one._asdict() for one in run.bests]
    for one in bests:
        del one["lowest"]
        for name in ("checkpoint", "nearest", "latest"):
            suffix = "" if name == "checkpoint" else "_checkpoint"
            one[f"{name}{suffix}"] = one.pop(name)
    rest = {"bests": plain(bests), "samples": plain(run.excerpts)}
    rest["hours"] = run.hours
    rest["notes"] = [{"step": step, "text": text} for step, text in run.notes]
    return {"name": run.name, **same, "check": run.described, **rest}


def _chart(chart: ReportChart) -> dict[str, Any]:
    return {
        "family": chart.family,
        "title": chart.title,
        "unit": chart.unit or None,
        "indicator": chart.indicator,
        "notes": list(chart.notes),
        "curves": [_curve(one) for one in chart.curves],
    }


def _curve(curve: RunCurve) -> dict[str, Any]:
    main = curve.data.main
    found = {"run": curve.run, "key": curve.data.key}
    if main is None or not main.points.steps:
        return found | {"steps": [], "least": [], "greatest": [], "not_finite": []}
    most = _MOST_OF_GREY if curve.place is None else _MOST_POINTS
    return found | _stretches(main.points, most)


def _stretches(points: Points, most: int) -> dict[str, Any]:
    """Return the least and the greatest value of each stretch of steps, by its first step."""
    first, last = points.steps[0], points.steps[-1]
    per = -(-(last - first + 1) // most)
    lows, highs, odds = points.pyramid.query(first, per, most)
    steps = range(first, first + most * per, per)
    known = [
        (step, low, high)
        for step, low, high in zip(steps, lows, highs, strict=True)
        if low is not None and high is not None
    ]
    return {
        "steps": [step for step, _, _ in known],
        # in six digits, which is more than a curve can show
        "least": [float(f"{low:.6g}") for _, low, _ in known],
        "greatest": [float(f"{high:.6g}") for _, _, high in known],
        "not_finite": list(compress(steps, odds)),
    }
