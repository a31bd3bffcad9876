"""Charts to work with: one zoom, one cursor and one look, on the dashboard and over the full
screen.
"""

from __future__ import annotations

import pytest
from jsonl import write_jsonl
from textual.widgets import Input
from watching import NOW, Typed, dashboard, loaded, press, sample, settle

from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.palette import Palette
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.widgets.chart import Chart
from verl_tui.tui.widgets.rows import FewRows

STEPS = 400
SPIKE = 200


@pytest.fixture
def log(tmp_path):
    """A run with a spike, a step every 10 s, and samples."""
    rows = [
        {
            "scope": "rollout",
            "step": step,
            "timestamp": NOW - 10.0 * (STEPS - step),
            "reward_mean": 2.0 + 0.01 * (step % 5),
            "kl_div": 900.0 if step == SPIKE else 0.02 + 0.001 * (step % 7),
        }
        for step in range(1, STEPS + 1)
    ]
    rows += [
        {"scope": "ppo", "step": row["step"], "policy_loss": 0.1 - row["step"] / 10_000}
        for row in rows
    ]
    samples = "".join(
        sample(step, f"answer {step}") for step in range(10, STEPS + 1, 10)
    )
    return write_jsonl(tmp_path / "run" / "verl_logs.jsonl", rows, after=samples)


def charts(app):
    return [
        chart for chart in dashboard(app).query_one(ChartsPanel).charts if chart.display
    ]


def zoomed(app):
    return app.screen.query_one(Chart)


def displayed(app):
    return app.screen.query_one("#reading", FewRows).plain


# -- the cursor ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "axes",
    [
        ["x", "x", "x"],
        *(pytest.param(["x"] * count, marks=pytest.mark.thorough) for count in (0, 1, 2)),
    ],
)  # fmt: skip
async def test_there_is_one_cursor_on_every_axis(log, axes):
    app = loaded(log)
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, *axes, "f3", "home")
        assert app.cursor == 1
        assert all(chart.cursor is not None for chart in charts(app))
        assert (
            len(
                {
                    chart.cursor
                    for chart in charts(app)
                    if chart.data.key.startswith("rollout/")
                }
            )
            == 1
        )
        await press(pilot, "end", "enter")
        assert zoomed(app).cursor is not None
        await press(pilot, "home")
        assert app.cursor == 1
        assert "policy" in displayed(app) or "reward" in displayed(app)
        await press(pilot, "end")
        assert app.cursor == STEPS
        chosen = dashboard(app).query_one(SamplesPanel)
        await press(pilot, "o")
        await press(pilot, "escape")
        assert chosen.browse.shown[0].step == STEPS
        await press(pilot, "escape", "escape")
        assert app.cursor is None or app.screen is dashboard(app)


# -- a second metric -------------------------------------------------------------------------------


def right(app):
    """Return what is drawn over the y axis at the right."""
    return [line.label for line in zoomed(app).data.lines if line.right]


async def test_any_metric_can_be_the_second(log):
    app = loaded(log)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "enter", "a")
        assert isinstance(app.screen, Palette)
        await press(pilot, Typed("LOSS poli"), "enter")
        assert isinstance(app.screen, ZoomScreen)
        assert right(app) == ["policy loss"]
        await press(pilot, "a", "down", "up", "escape")
        assert right(app) == ["policy loss"], (
            "whoever changes their mind changes nothing"
        )
        await press(pilot, "a", Typed("not there"), "enter", "escape")
        assert right(app) == ["policy loss"]
        await press(pilot, "a", "enter")
        assert right(app) == ["policy KL"], "what goes with the reward comes first"
        await press(pilot, "0")
        assert right(app) == []
        # It is taken once, however often enter is heard.
        await press(pilot, "a")
        for _ in range(2):
            app.screen.query_one(Input).post_message(
                Input.Submitted(app.screen.query_one(Input), "")
            )
        await settle(pilot)
        assert isinstance(app.screen, ZoomScreen)
