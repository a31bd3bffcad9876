"""The charts of a run in their order: those that vary, then a row each for what is constant."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.rendering.charts.overlay import counterpart

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from verl_tui.rendering.charts.plan import PlannedChart
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run


def constant_keys(view: View) -> frozenset[str]:
    """Return the metrics of the shown run that a row says all about: they have had only one value,
    the same in all runs laid over each other, and no finding is about them.
    """
    run = view.run
    if run is None:
        return frozenset()
    judged = {finding.key for finding in view.verdict.findings}
    others = [other for other in view.selected if other is not run]
    return frozenset(
        key for key in run.constants - judged if all(_same(run, other, key) for other in others)
    )


def _same(run: Run, other: Run, key: str) -> bool:
    """Return whether a metric has one value in two runs, or is in the first one only."""
    indicator = next((name for name, of in run.indicators.items() if of == key), None)
    own, theirs = run.series(key), counterpart(run, key, indicator, other)
    if own is None or theirs is None or not len(theirs):
        return True
    return theirs.key in other.constants and theirs.values[0] == own.values[0]


def _is_constant(chart: PlannedChart, constant: Container[str]) -> bool:
    return all(key in constant for key in chart.keys)


def constants_last(
    charts: Sequence[PlannedChart], constant: Container[str], kept: Container[str]
) -> tuple[PlannedChart, ...]:
    """Return charts with the constant ones last, a row each; as they are where none varies.

    Args:
        charts: The charts in their order.
        constant: Keys of metrics that have had only one value.
        kept: Keys and indicators that stay charts in their place all the same.
    """
    rows = [
        chart
        for chart in charts
        if chart.key not in kept and chart.indicator not in kept and _is_constant(chart, constant)
    ]
    if not rows or len(rows) == len(charts):
        return tuple(charts)
    varying = [chart for chart in charts if chart not in rows]
    return (*varying, *(replace(chart, constant=True) for chart in rows))
