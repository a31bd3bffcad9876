"""All metrics: charts by prefix, or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.tui.keys.tasks import LEARN
from verl_tui.tui.screens.spec import ScreenSpec, ScreenWithCallback

if TYPE_CHECKING:
    from verl_tui.tui.screens.spec import ScreenContext


def _open(context: ScreenContext) -> ScreenWithCallback:
    from verl_tui.tui.panels.charts import ChartsPanel
    from verl_tui.tui.screens.metrics.screen import MetricsScreen

    charts = context.dashboard.query_one(ChartsPanel)
    return ScreenWithCallback(MetricsScreen(context.view, charts, context.state_file))


SCREEN = ScreenSpec(
    "metrics",
    "m",
    "metrics",
    "All metrics",
    _open,
    rank=30,
    short="Metrics",
    task=LEARN,
)
