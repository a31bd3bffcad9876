"""Where a curve ends, and where it was best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from chart_columns import Column
from run_views import make_run

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.plan import ChartLook, single_metric
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.session.snapshot import View

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

VALUES = [0.0, 0.2, 0.9, 0.4, 0.3, 0.5]
DATA = ChartData("r", lines=(ChartLine(Column(range(6), VALUES), role="reward"),))


def view_of(run: Run) -> View:
    monitor = Monitor(Config())
    monitor.runs[run.name] = run
    return View(monitor, run, 0.0)


def test_after_a_restart_the_end_is_that_of_the_present_segment():
    def at(data: ChartData) -> int:
        rows = ChartRenderer().rows(data, 50, 12)[1:-2]
        (row,) = (
            "".join(text for text, _ in row)
            for row in rows
            if any("●" in t for t, _ in row)
        )
        return row.index("●")

    present = ChartData(
        "r", lines=(ChartLine(Column(range(4), VALUES[:4])),), reach=(0, 5)
    )
    data = DATA._replace(reach=(0, 5))
    assert at(data._replace(end=3)) == at(present) < at(data)


@pytest.mark.parametrize(
    ("key", "best"),
    [
        ("critic/score/mean", "highest"),
        ("eval_loss", "lowest"),
        ("eval_accuracy", "highest"),
        ("eval_runtime", ""),
        ("eval_num_tokens", ""),
        ("eval_samples_per_second", ""),
        ("actor/pg_loss", ""),
    ],
)
def test_the_best_is_marked_where_more_or_less_is_better(key, best):
    run = make_run(steps=4, columns={key: [0.1, 0.3, 0.2, 0.2]})
    found = chart_data(single_metric(run, key), view_of(run), ChartLook())
    assert found.best == best
