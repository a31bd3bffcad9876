"""Distributions on the screen: one chart with a band, the histogram at the cursor, one metric among
all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from watching import dashboard, loaded, press, settle, text

from verl_tui.distributions import QUANTILES
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.rows import FewRows

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 40


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A run with rewards as lists, lengths as bins, lists of zeros and ones, and a plain metric."""
    rows = [
        {
            "step": step,
            "data": {
                "rewards": [step / 100 + at / 100 for at in range(50)],
                "response_lengths": {
                    "bins": [0, 100, 200, 400],
                    "counts": [step, 30, 3],
                },
                "correct": [0, 1, 1] if step % 2 else [0, 0, 1],
                "actor/pg_loss": 0.1 / step,
            },
        }
        for step in range(1, STEPS + 1)
    ]
    path = tmp_path / "run" / "log.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


async def test_a_distribution_is_one_chart_with_a_band(log: Path) -> None:
    app = loaded(log)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        charts = dashboard(app).query_one(ChartsPanel).charts
        data = {chart.data.key: chart.data for chart in charts}
        assert list(data) == [
            "rewards/mean",
            "actor/pg_loss",
            "response_lengths/p50",
            "correct/mean",
        ]
        assert [len(one.shades) for one in data.values()] == [3, 0, 3, 3]
        assert data["rewards/mean"].title == "reward"
        middle = data["rewards/mean"].shades[0].low
        assert (middle.steps[-1], middle.values[-1]) == (
            STEPS,
            pytest.approx(0.4 + 0.245),
        )
        for key, one in data.items():
            rows = ChartRenderer().rows(one, 60, 12)
            shaded = "quartiles" in {role for row in rows for _, role in row}
            assert shaded is bool(one.shades), key


async def test_the_histogram_at_the_cursor(log: Path) -> None:
    app = loaded(log)
    async with app.run_test(size=(80, 24)) as pilot:
        # All metrics list a distribution once.
        await press(pilot, "m")
        assert "run  4 metrics" in text(app)
        await press(pilot, "v")
        for key in (
            "rewards/mean",
            "response_lengths/p50",
            "correct/mean",
            "actor/pg_loss",
        ):
            assert key in text(app)
        assert not [
            name
            for name in (*QUANTILES, "min", "max")
            if name != "p50" and f"/{name} " in text(app)
        ]
        # The histogram is that of the cursor's step.
        await press(pilot, "escape", "enter")
        assert isinstance(app.screen, ZoomScreen)
        assert "step 40 · 50 values from 0.4 to 0.89, 4% of them" in text(app)
        assert "█" in text(app)
        app.screen.query_one(Chart).focus()
        await press(pilot, "home")
        assert "step 1 · 50 values from 0.01 to 0.5" in text(app)
        assert "median 0.255" in app.screen.query_one("#reading", FewRows).plain
        assert "25–75% 0.133 to 0.378" in text(app)
        await press(pilot, "escape", "j")
        assert "values from" not in text(app), "the policy loss is no distribution"
