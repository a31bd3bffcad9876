"""Charts to work with: one zoom, one cursor and one look, on the dashboard and over the full
screen.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from inside_textual import notices
from textual.widgets import Input
from watching import (
    NOW,
    Typed,
    check_layout,
    dashboard,
    lines,
    loaded,
    names,
    press,
    sample,
    settle,
    text,
)

from verl_tui.health.finding import Episode, Severity
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.panels.samples import SamplesPanel
from verl_tui.tui.screens.pick_metric import PickMetric, matching
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.widgets.footer import Keys
from verl_tui.tui.widgets.read_out import ReadOut
from verl_tui.tui.widgets.zoomed_chart import ZoomedChart

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.tui.app import VerlApp
    from verl_tui.tui.widgets.chart import Chart

SIZES = [(140, 45), (80, 24), (40, 12), (20, 6)]
STEPS = 400
SPIKE = 200


@pytest.fixture
def log(tmp_path: Path) -> Path:
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
    path = tmp_path / "run" / "verl_logs.jsonl"
    path.parent.mkdir()
    samples = "".join(
        sample(step, f"answer {step}") for step in range(10, STEPS + 1, 10)
    )
    path.write_text(
        "".join(json.dumps(row) + "\n" for row in rows) + samples, encoding="utf-8"
    )
    return path


def charts(app: VerlApp) -> list[Chart]:
    return [
        chart for chart in dashboard(app).query_one(ChartsPanel).charts if chart.display
    ]


def windows(app: VerlApp) -> set[tuple[int | None, int | None]]:
    return {(chart.data.first_step, chart.data.last_step) for chart in charts(app)}


def zoomed(app: VerlApp) -> ZoomedChart:
    return app.screen.query_one(ZoomedChart)


def displayed(app: VerlApp) -> str:
    return "\n".join(app.screen.query_one(ReadOut).rows)


def chart_of(app: VerlApp, word: str) -> Chart:
    return next(chart for chart in charts(app) if word in chart.data.key)


# -- the window ------------------------------------------------------------------------------------


async def test_all_charts_show_one_window(log: Path) -> None:
    app = loaded(log)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        # Without a zoom there is nothing to move.
        await press(pilot, "L")
        assert any(words.endswith("+ zooms in") for words in notices(app))
        assert windows(app) == {(None, None)}
        # What is zoomed in on the dashboard is so over the full screen, and the other way round.
        await press(pilot, "plus")
        assert windows(app) == {(200, None)}
        assert "from step 200" in text(app)
        await press(pilot, "plus", "H", "H")
        ((first, last),) = windows(app)
        assert first is not None
        assert last == first + 100
        assert f"steps {first}–{last}" in text(app)
        await press(pilot, "enter")
        assert isinstance(app.screen, ZoomScreen)
        assert (zoomed(app).data.first_step, zoomed(app).data.last_step) == (
            first,
            last,
        )
        assert f"steps {first}–{last}" in text(app)
        await press(pilot, "minus", "y", "escape")
        assert app.screen is dashboard(app)
        ((wider, _),) = windows(app)
        assert wider is not None
        assert wider < first, "what was done over the full screen holds for all"
        assert all(chart.data.log_y for chart in charts(app))
        await press(pilot, "0")
        assert windows(app) == {(None, None)}


async def test_the_window_on_other_axes_with_the_cursor_and_with_new_steps(
    log: Path,
) -> None:
    app = loaded(log)
    async with app.run_test(size=(140, 45)) as pilot:
        # On an axis of time the window is that of the steps.
        await press(pilot, "plus", "plus", "H", "x")
        ((first, last),) = windows(app)
        await press(pilot, "x", "x", "x")
        ((begin, end),) = windows(app)
        assert begin is not None
        assert end is not None
        assert (first, last) == (
            int(NOW - 10 * (STEPS - begin)),
            int(NOW - 10 * (STEPS - end)),
        )
        # It goes with the cursor.
        await press(pilot, "0", "f3", "plus", "plus", "plus", "home", *["left"] * 5)
        ((first, _),) = windows(app)
        assert app.cursor is not None
        assert first is not None
        assert first <= app.cursor
        dashboard(app).follow_episode(Episode("gone", Severity.INFO, 30, 31))
        await settle(pilot)
        ((first, last),) = windows(app)
        assert first is not None
        assert last is not None
        assert first <= 30 <= last
        assert {chart.cursor for chart in charts(app)} == {30}
        # The newest step is followed while it is in sight.
        await press(pilot, "escape", "escape", "0", "plus", "plus")
        (begin,) = {first for first, _ in windows(app)}
        _grow(app, range(STEPS + 1, STEPS + 60))
        await settle(pilot)
        ((first, last),) = windows(app)
        assert last is None
        assert first is not None
        assert begin is not None
        assert first > begin
        await press(pilot, "H")
        past = windows(app)
        _grow(app, range(STEPS + 60, STEPS + 120))
        await settle(pilot)
        assert windows(app) == past


def _grow(app: VerlApp, steps: range) -> None:
    (name,) = names(app)
    status = SourceStatus("/more.jsonl", "tutorial JSONL", 5, 1)
    rows = MetricRows(
        ("rollout/reward_mean",),
        [*steps],
        [[2.0] * len(steps)],
        [0] * len(steps),
        [NOW] * len(steps),
    )
    app.monitor.apply(Batch(name, status, (rows,), live=True), NOW)
    app.tick()


async def test_another_run_without_these_steps_shows_its_newest(
    log: Path, tmp_path: Path
) -> None:
    short = tmp_path / "short" / "verl_logs.jsonl"
    short.parent.mkdir()
    short.write_text(
        "".join(log.read_text().splitlines(keepends=True)[:40]), encoding="utf-8"
    )
    app = loaded(log, short)
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, "plus", "plus", "right_square_bracket")
        ((first, last),) = windows(app)
        assert first is not None
        assert first <= 40
        assert last is None


# -- the cursor ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "axes",
    [
        ["x", "x", "x"],
        *(
            pytest.param(["x"] * count, marks=pytest.mark.thorough)
            for count in (0, 1, 2)
        ),
    ],
)
async def test_there_is_one_cursor_on_every_axis(log: Path, axes: list[str]) -> None:
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
        assert chosen.shown is not None
        assert chosen.shown[0].step == STEPS
        await press(pilot, "escape", "escape")
        assert app.cursor is None or app.screen is dashboard(app)


async def test_the_cursor_says_step_and_moment_exactly(log: Path) -> None:
    app = loaded(log)
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, "enter", "x", "x", "left", "left")
        since = 10 * (STEPS - 2)
        assert displayed(app).startswith(
            f"step {STEPS - 1} · 1h {since // 60 - 60:02d}m {since % 60:02d}s"
        )
        assert "@ 1h06m20s" in lines(app)[0]
        await press(pilot, "x", "x", "x")
        for step in (STEPS - 1, STEPS - 3):
            moment = datetime.fromtimestamp(
                NOW - 10 * (STEPS - step), timezone.utc
            ).astimezone()
            assert displayed(app).startswith(f"step {step} · {moment:%H:%M:%S}   ")
            assert f"@ {moment:%H:%M:%S}" in lines(app)[0]
            await press(pilot, "left")


async def test_a_chart_comes_and_goes_with_its_cursor(log: Path) -> None:
    app = loaded(log)
    async with app.run_test(size=(80, 24)) as pilot:
        # No row stays blank below a chart without marks.
        await press(pilot, "enter")
        assert all(line.strip() for line in lines(app))
        # Escape takes the cursor first, and then the chart.
        await pilot.resize_terminal(140, 45)
        await press(pilot, "left")
        assert app.cursor == STEPS
        assert f"step {STEPS}" in displayed(app)
        await press(pilot, "escape")
        assert app.cursor is None
        assert displayed(app) == ""
        assert isinstance(app.screen, ZoomScreen)
        await press(pilot, "escape")
        assert app.screen is dashboard(app)
        # Charts out of sight are drawn when they are seen again.
        await press(pilot, "enter")
        before = [chart.rows for chart in charts(app)]
        await press(pilot, "home")
        assert [chart.rows for chart in charts(app)] == before
        await press(pilot, "q")
        assert {chart.cursor for chart in charts(app)} == {1}
        # At the end the window is full.
        await press(pilot, "escape", "escape", "0", "plus", "plus", "plus", "enter")
        frame = zoomed(app).plot_area()
        assert frame.window is not None
        assert STEPS <= frame.window.end <= STEPS + 6
        assert frame.window.column(STEPS) > frame.window.columns * 0.87


# -- outliers and smoothing ------------------------------------------------------------------------


async def test_outliers_are_left_out_and_said_to_be(log: Path) -> None:
    app = loaded(log)
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, "Y")
        assert "y without outliers" in text(app)
        kl = chart_of(app, "kl_div")
        assert "↑" in "".join(words for row in kl.rows[1:] for words, _ in row)
        await press(pilot, "slash", Typed("kl_div"), "enter", "enter", "s")
        assert "y without outliers" in text(app)
        assert "smoothing 0.6" in text(app)
        assert any("↑" in line for line in lines(app)[1:5])
        await press(pilot, "Y")
        assert not any("↑" in line for line in lines(app)[1:])


# -- a second metric -------------------------------------------------------------------------------


async def test_the_loss_gets_the_kl_beside_it(log: Path) -> None:
    app = loaded(log)
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, "slash", Typed("policy_loss"), "enter", "enter", "2")
        data = zoomed(app).data
        assert data.right is not None
        assert data.right.key == "rollout/kl_div"
        await press(pilot, "end")
        assert "policy KL" in displayed(app)
        await press(pilot, "2")
        assert zoomed(app).data.right is None


async def test_any_metric_can_be_the_second(log: Path) -> None:
    app = loaded(log)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "enter", "a")
        assert isinstance(app.screen, PickMetric)
        await press(pilot, Typed("LOSS poli"), "enter")
        assert isinstance(app.screen, ZoomScreen)
        assert zoomed(app).data.right is not None
        assert zoomed(app).data.right.key == "ppo/policy_loss"
        await press(pilot, "a", "down", "up", "escape")
        assert zoomed(app).data.right.key == "ppo/policy_loss", (
            "whoever changes their mind changes nothing"
        )
        await press(pilot, "a", Typed("not there"), "enter")
        assert zoomed(app).data.right.key == "ppo/policy_loss"
        await press(pilot, "a", "enter")
        assert zoomed(app).data.right.key == "rollout/kl_div", (
            "what goes with the reward comes first"
        )
        await press(pilot, "0")
        assert zoomed(app).data.right is None
        # It is taken once, however often enter is heard.
        await press(pilot, "a")
        for _ in range(2):
            app.screen.query_one(Input).post_message(
                Input.Submitted(app.screen.query_one(Input), "")
            )
        await settle(pilot)
        assert isinstance(app.screen, ZoomScreen)


def test_words_are_looked_for_in_key_and_label() -> None:
    one: Any = type("PlannedChart", (), {"key": "actor/ppo_kl", "label": "policy KL"})
    assert matching([one], "KL actor") == [one]
    assert matching([one], "") == [one]
    assert matching([one], "kl reward") == []


# -- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "ascii_only"),
    [
        (SIZES[::2], True),
        (SIZES[::-2], False),
        *(
            pytest.param([*SIZES, *SIZES[::-1]], ascii_only, marks=pytest.mark.thorough)
            for ascii_only in (False, True)
        ),
    ],
)
async def test_every_size_with_everything_on(
    log: Path, sizes: list[tuple[int, int]], ascii_only: bool
) -> None:
    app = loaded(log, ascii_only=ascii_only)
    async with app.run_test(size=SIZES[0]) as pilot:
        await press(pilot, "f3", "plus", "Y", "s", "left", "enter", "2")
        for size in [*sizes, (30, 10), (80, 24)]:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            check_layout(app)
            assert not ascii_only or text(app).isascii()
        await press(pilot, "a")
        for size in sizes:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            lines(app)
            assert not ascii_only or text(app).isascii()


async def test_moving_about_leaves_the_footer_alone(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = loaded(log)
    async with app.run_test(size=(140, 45)) as pilot:
        await press(pilot, "f3", "left")
        footer = dashboard(app).query_one(Keys)
        before = footer.fitting
        painted = []
        monkeypatch.setattr(footer, "refresh", lambda *_, **__: painted.append(1))
        await press(pilot, "left", "j", "right")
        assert footer.fitting == before
        assert before
        assert not painted
        assert dashboard(app).query_one(ChartsPanel).has_class("-focused")
        await press(pilot, "f4")
        assert not dashboard(app).query_one(ChartsPanel).has_class("-focused")


# -- whose chart it is -----------------------------------------------------------------------------


@pytest.fixture
def several(log: Path) -> list[Path]:
    """Three runs whose names differ in their middle only."""
    text = log.read_text(encoding="utf-8")
    paths = [
        log.parent.parent / f"qwen3_8b_grpo_gsm8k_lr{rate}_seed1" / log.name
        for rate in ("1e-6", "5e-6", "1e-5")
    ]
    for path in paths:
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    return paths


async def test_the_title_names_the_run(several: list[Path]) -> None:
    app = loaded(*several)
    async with app.run_test(size=(40, 12)) as pilot:
        await press(pilot, "enter")
        for size in ((40, 12), (80, 24), (140, 45)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert "lr1e-6" in lines(app)[0]
            await press(pilot, "right_square_bracket")
            assert "lr5e-6" in lines(app)[0]
            check_layout(app)
            assert (
                size < (140, 45) or "qwen3_8b_grpo_gsm8k_lr5e-6_seed1" in lines(app)[0]
            )
            await press(pilot, "left_square_bracket")
        # Of runs laid over each other the legend names all.
        await press(pilot, "escape", "f2", "space", "j", "space", "f3", "enter")
        title = lines(app)[0]
        assert " of " not in title
        assert [title.count(rate) for rate in ("lr1e-6", "lr5e-6", "lr1e-5")] == [
            1,
            1,
            0,
        ]
