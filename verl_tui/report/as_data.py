"""A report for programs: JSON."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

from verl_tui.comparison.as_data import as_data as comparison_data
from verl_tui.plain_data import plain

if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.report.record import BestStep, Report, ReportedRun
    from verl_tui.report.reported_samples import ReportedSamples
    from verl_tui.report.run_charts import ReportChart, RunCurve
    from verl_tui.runs.views.checkpoints import Checkpoint

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
    return {
        "name": run.name,
        "id": run.described["id"],
        "verdict": run.verdict or None,
        "why": run.why or None,
        "next": run.next or None,
        "check": run.described,
        "bests": [_best(one) for one in run.bests],
        "samples": None if run.excerpts is None else _samples(run.excerpts),
    }


def _best(one: BestStep) -> dict[str, Any]:
    found = one.best
    return {
        "metric": found.metric,
        "key": found.key,
        "step": found.step,
        "value": plain(found.value),
        "checkpoint": _checkpoint(found.checkpoint),
        "nearest_checkpoint": _checkpoint(found.nearest),
        "latest_checkpoint": _checkpoint(found.latest),
    }


def _samples(found: ReportedSamples) -> dict[str, Any]:
    return {
        "step": found.step,
        "validation": found.validation,
        "note": found.note,
        "shown": [
            {
                "why": one.why,
                "score": plain(one.score),
                "prompt": one.prompt,
                "response": one.response,
                "ground_truth": one.ground_truth,
            }
            for one in found.shown
        ],
    }


def _chart(chart: ReportChart) -> dict[str, Any]:
    return {
        "family": chart.family,
        "title": chart.title,
        "unit": chart.unit or None,
        "indicator": chart.indicator,
        "notes": list(chart.notes),
        "curves": [_curve(one) for one in chart.curves],
    }


def _checkpoint(checkpoint: Checkpoint | None) -> dict[str, Any] | None:
    return None if checkpoint is None else checkpoint._asdict()


def _curve(curve: RunCurve) -> dict[str, Any]:
    main = curve.data.main
    found = {"run": curve.run, "key": curve.data.key}
    if main is None or not main.points.steps:
        return found | {"steps": [], "least": [], "greatest": [], "not_finite": []}
    most = _MOST_OF_GREY if curve.place is None else _MOST_POINTS
    return found | _stretches(main.points, most)


def _stretches(points: Points, most: int) -> dict[str, Any]:
    """Return the least and the greatest value of each stretch of steps, by its first step."""
    first = points.steps[0]
    last = points.steps[-1]
    per = -(-(last - first + 1) // most)
    lows, highs, odds = points.pyramid.query(first, per, most)
    steps = range(first, first + most * per, per)
    known_steps = []
    least = []
    greatest = []
    for step, low, high in zip(steps, lows, highs, strict=True):
        if low is not None and high is not None:
            known_steps.append(step)
            least.append(_short(low))
            greatest.append(_short(high))
    return {
        "steps": known_steps,
        "least": least,
        "greatest": greatest,
        "not_finite": list(compress(steps, odds)),
    }


def _short(value: float) -> float:
    """Return a number in six digits, which is more than a curve can show."""
    return float(f"{value:.6g}")
