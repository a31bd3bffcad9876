"""Distributions on the screen: one chart with a band, the histogram at the cursor, one metric among
all.
"""

from __future__ import annotations

from statistics import fmean

import pytest
from watching import check_shown, dashboard, loaded, press, settle, text

from verl_tui.distributions import QUANTILES, of_bins, of_values
from verl_tui.exporters.event_files import SUFFIX, EventFile, floats
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.rows import FewRows

STEPS = 40


@pytest.fixture
def log(tmp_path):
    """A run with histograms, of which one has its mean beside it, and a plain metric."""
    folder = tmp_path / "run"
    folder.mkdir()
    file = EventFile(folder, 0.0)
    for step in range(1, STEPS + 1):
        rewards = [step / 100 + at / 100 for at in range(50)]
        scalars = {"rewards/mean": fmean(rewards), "actor/pg_loss": 0.1 / step}
        file.scalars(step, step, [(key, floats([one])) for key, one in scalars.items()])
        distributions = {
            "rewards": of_values(rewards),
            "response_lengths": of_bins([0.0, 100.0, 200.0, 400.0], [step, 30, 3]),
            "correct": of_bins([-0.5, 0.5, 1.5], [step % 2 + 1, 2 - step % 2]),
        }
        for name, one in distributions.items():
            assert one is not None
            file.histogram(step, step, name, one.bins)
    file.flush()
    (own,) = folder.iterdir()  # verl-tui does not read what it wrote
    own.rename(own.with_name(own.name.removesuffix(SUFFIX)))
    return folder


async def test_a_distribution_is_one_chart_with_a_band_and_a_histogram(log):
    app = loaded(log)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        charts = dashboard(app).query_one(ChartsPanel).charts
        data = {chart.data.key: chart.data for chart in charts}
        assert list(data) == [
            "rewards/mean",
            "actor/pg_loss",
            "response_lengths/p50",
            "correct/p50",
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
        await pilot.resize_terminal(80, 24)
        # All metrics list a distribution once.
        await press(pilot, "m")
        assert "run  4 metrics" in text(app)
        await press(pilot, "v")
        for key in (
            "rewards/mean",
            "response_lengths/p50",
            "correct/p50",
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
        check_shown(app, "step 40 · 50 values from 0.4 to 0.89, 4% of them", "█")
        app.screen.query_one(Chart).focus()
        await press(pilot, "home")
        assert "step 1 · 50 values from 0.01 to 0.5" in text(app)
        assert "median 0.255" in app.screen.query_one("#reading", FewRows).plain
        assert "25–75%" in text(app)
        await press(pilot, "escape", "j")
        assert "values from" not in text(app), "the policy loss is no distribution"
