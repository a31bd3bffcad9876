"""The charts of a run in their order, and below them one row each for metrics that need no chart:
counters, and metrics that have had only one value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.metrics import counts
from verl_tui.rendering.charts.overlaid_runs import counterpart

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from verl_tui.rendering.charts.plan import PlannedChart
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run


def keys_in_rows(view: View) -> frozenset[str]:
    """Return the metrics of the shown run for which a row is enough, unless a finding is about
    them: counters, and those that have had only one value, the same in all runs laid over each
    other.
    """
    run = view.run
    if run is None:
        return frozenset()
    judged = {finding.key for finding in view.verdict.findings}
    # While logs are being read, a metric of one point may have had only its first one read.
    same = run.constants if view.loading else run.constants | run.logged_once
    for other in view.selected:
        if other is not run:
            same = _same(run, other, same)
    return frozenset(same.union(filter(counts, run.keys)) - judged)


def _same(run: Run, other: Run, single: frozenset[str]) -> frozenset[str]:
    """Return the metrics of one value that have the same in another run, or are not in it."""
    single_there = other.constants | other.logged_once

    def is_same(key: str) -> bool:
        own = run.series(key)
        theirs = counterpart(run, key, run.meanings.get(key), other)
        if own is None or theirs is None or not len(theirs):
            return True
        return theirs.key in single_there and theirs.values[0] == own.values[0]

    return frozenset(filter(is_same, single))


def rows_last(
    charts: Sequence[PlannedChart], in_rows: Container[str], kept: Container[str]
) -> tuple[PlannedChart, ...]:
    """Return charts with those that are one row each moved to the end; unchanged if all would be
    rows.

    Args:
        charts: The charts in their order.
        in_rows: Keys of metrics for which a row is enough.
        kept: Keys and indicators that stay charts in their place all the same.
    """
    varying: list[PlannedChart] = []
    rows: list[PlannedChart] = []
    for chart in charts:
        (rows if _takes_a_row(chart, in_rows, kept) else varying).append(chart)
    if not rows or not varying:
        return tuple(charts)
    return (*varying, *(chart._replace(in_row=True) for chart in rows))


def _takes_a_row(
    chart: PlannedChart, in_rows: Container[str], kept: Container[str]
) -> bool:
    if chart.key in kept or chart.indicator in kept:
        return False
    return all(key in in_rows for key in chart.keys)
