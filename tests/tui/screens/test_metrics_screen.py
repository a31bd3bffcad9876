"""All metrics on a screen: charts and table, filter, sorting, pins, shapes."""

from __future__ import annotations

import re

from jsonl import write_jsonl
from watching import (
    NOW,
    Typed,
    check_layout,
    dashboard,
    lines,
    loaded,
    press,
    settle,
    showing,
    text,
    until,
    write_run,
)

from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.rendering.session.preferences import StateFile, UserState
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.screens.metric_grid import MetricGrid
from verl_tui.tui.screens.metrics import MetricsScreen
from verl_tui.tui.screens.zoom import ZoomScreen
from verl_tui.tui.widgets.chart import Chart

KEYS = tuple(
    f"{prefix}/m{n}"
    for prefix in ("actor", "critic", "val-core/gsm8k")
    for n in range(12)
)


def write_metrics(directory, keys=KEYS):
    rows = [
        {"step": n, "data": {key: float(n * at % 97) for at, key in enumerate(keys, 1)}}
        for n in range(1, 21)
    ]
    return write_jsonl(directory / "run" / "log.jsonl", rows)


def screen(app):
    assert isinstance(app.screen, MetricsScreen)
    return app.screen


def tiles(app):
    """Return the keys of the charts on the page, in order."""
    return [one.data.key for one in app.screen.query_one(MetricGrid).page_charts]


async def opened(pilot, *keys):
    await press(pilot, "m", *keys)
    await drawn(pilot)


async def drawn(pilot):
    """Wait for what there was no time to draw at once."""
    app = pilot.app
    assert isinstance(app.screen, MetricsScreen)
    await until(
        pilot, lambda: not any(grid.waiting for grid in app.screen.query(MetricGrid))
    )
    await settle(pilot)


async def test_opens_and_closes(demo):
    app = showing(demo)
    async with app.run_test(size=(140, 45)) as pilot:
        for key in ("escape", "q", "m"):
            await opened(pilot)
            assert "run_grpo_gsm8k" in lines(app)[0]
            assert "page 1/" in lines(app)[0]
            await press(pilot, key)
            assert app.screen is dashboard(app), key
        # A chart is opened over the full screen, from the charts and from the table.
        for view in ("", "v"):
            await opened(pilot, *view, "j")
            await press(pilot, "enter")
            assert isinstance(app.screen, ZoomScreen)
            await press(pilot, "escape")
            assert isinstance(app.screen, MetricsScreen)
            await press(pilot, "escape")
        # What was pinned is unpinned again; the table is remembered.
        await opened(pilot, "space", "space")
        assert app.state_file.state == UserState(metrics_table=True)
        assert "★" not in text(app)
        # A pinned indicator keeps what belongs to it.
        key = demo.runs["run_grpo_gsm8k"].indicators["policy_kl"]
        await press(pilot, "escape")
        app.state_file.change(lambda state: state.with_pin(key))
        app.paint()
        await settle(pilot)
        plans = dashboard(app).query_one(ChartsPanel).listed(app.view_at(NOW))
        assert (plans[0].key, plans[0].indicator) == (key, "policy_kl")
        assert [found.key for found in plans].count(key) == 1


async def test_columns_and_rows(tmp_path):
    file = StateFile(tmp_path / "state.json")
    app = loaded(write_metrics(tmp_path), state_file=file)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        grid = app.screen.query_one(MetricGrid)
        columns, rows = grid.shape
        assert lines(app)[2].count("m0") == 1, "a heading has the rest of its key"
        for keys, shape in [
            (("greater_than_sign",), (columns + 1, rows)),
            (("less_than_sign", "less_than_sign"), (columns - 1, rows)),
            (("right_parenthesis",), (columns - 1, rows + 1)),
            (("left_parenthesis", "left_parenthesis"), (columns - 1, rows - 1)),
            (("less_than_sign",) * 9, (1, rows - 1)),
            (("left_parenthesis",) * 9, (1, 1)),
        ]:
            await pilot.press(*keys)
            await drawn(pilot)
            assert grid.shape == shape
            assert len(tiles(app)) == shape[0] * shape[1]
            check_layout(app)
        await pilot.press("v")
    again = loaded(tmp_path / "run", state_file=StateFile(tmp_path / "state.json"))
    async with again.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        assert again.screen.query_one("#metrics-rows").display, "as it was left"
        await press(pilot, "v")
        await drawn(pilot)
        assert again.screen.query_one(MetricGrid).shape == (1, 1)
        await press(pilot, "0")
        await drawn(pilot)
        assert again.screen.query_one(MetricGrid).shape == (columns, rows)


async def test_filter(tmp_path):
    app = loaded(write_metrics(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, "slash", Typed("critic m1|m2 !m10"))
        await drawn(pilot)
        assert "3 of 36" in lines(app)[0]
        assert tiles(app) == ["critic/m1", "critic/m2", "critic/m11"]
        await press(pilot, "enter", "g", "l")
        assert screen(app).chosen == "critic/m2"
        assert "filter: critic m1|m2 !m10" in lines(app)[0]
        await press(pilot, "escape")
        assert "36 metrics" in lines(app)[0]
        await press(pilot, "escape")
        assert app.screen is dashboard(app)
        # A bad expression says so and keeps what is shown.
        await opened(pilot, "slash", *"critic /(/")
        assert "/(/" in lines(app)[0]
        assert tiles(app)[0] == "critic/m0"
        await press(pilot, *["backspace"] * 4)
        assert "12 of 36" in lines(app)[0]
        # A click chooses.
        await press(pilot, "escape")
        await drawn(pilot)
        other = app.screen.query_one(MetricGrid).page_charts[1]
        await pilot.click(other, offset=(3, 3))
        await settle(pilot)
        assert screen(app).chosen == other.data.key


async def test_says_one_number_of_metrics(demo):
    app = showing(demo)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, "slash", Typed("e"))
        said = set(re.findall(r"\d of (\d+)(?:  filter| metrics)", text(app)))
        await press(pilot, "escape")
        await drawn(pilot)
        assert {*re.findall(r"  (\d+) metrics", text(app))} == said


async def test_sorting(tmp_path):
    app = loaded(write_metrics(tmp_path, keys=("b", "a", "c")))
    async with app.run_test(size=(100, 24)) as pilot:
        await opened(pilot, "v")
        assert [line.split()[0] for line in lines(app)[2:5]] == ["a", "b", "c"]
        await press(pilot, "s")
        await drawn(pilot)
        assert "last▼" in lines(app)[1]
        assert [line.split()[:2] for line in lines(app)[2:5]] == [
            ["c", "60"],
            ["a", "40"],
            ["b", "20"],
        ]
        await press(pilot, "S")
        await drawn(pilot)
        assert [line.split()[0] for line in lines(app)[2:5]] == ["b", "a", "c"]
        await press(pilot, "s")
        assert "trend▼" in lines(app)[1]
        assert "by trend" in lines(app)[0]


async def test_pinned_metrics_come_first_on_the_dashboard(demo, tmp_path):
    app = showing(demo, state_file=StateFile(tmp_path / "state.json"))
    async with app.run_test(size=(140, 45)) as pilot:
        await opened(pilot, "slash", Typed("timing_s/gen"), "enter", "space", "escape")
        await drawn(pilot)
        assert "★" in text(app)
        await press(pilot, "escape")
        plans = [
            found.key
            for found in dashboard(app).query_one(ChartsPanel).listed(app.view_at(NOW))
        ]
        assert plans[0] == "timing_s/gen"
        assert plans[1] == demo.runs["run_grpo_gsm8k"].indicators["reward"]
    assert StateFile(tmp_path / "state.json").state.pins == ("timing_s/gen",)


async def test_a_new_step_shows(tmp_path):
    app = loaded(write_metrics(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot)
        for step, value in ((21, -777.0), (22, -888.0)):
            said = f"{value:.0f}"
            assert said not in text(app)
            batch = Batch(
                "run",
                SourceStatus("more.jsonl", "verl file logger"),
                (MetricRows(KEYS, [step], [[value]] * 36, [99]),),
            )
            app.monitor.apply(batch, NOW)
            app.paint()
            await settle(pilot)
            await drawn(pilot)
            assert text(app).count(said) >= 12
            await press(pilot, "v")  # and in the table
            await drawn(pilot)


async def test_a_new_step_of_a_selected_run_shows(tmp_path):
    app = loaded(write_run(tmp_path, "a"), write_run(tmp_path, "b"))
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "f2", "space", "j", "space", "k", "escape")
        await opened(pilot)
        before = text(app)
        (key,) = (one for one in app.monitor.runs["b"].keys if "kl" in one)
        rows = MetricRows((key,), [31], [[777.0]], [99])
        log = SourceStatus("more.jsonl", "tutorial")
        app.monitor.apply(Batch("b", log, (rows,), live=True), NOW)
        app.paint()
        await drawn(pilot)
        assert text(app) != before


# -- one cursor and one window, as on the dashboard ------------------------------------------------


def cursors(app):
    return {one.cursor for one in app.screen.query_one(MetricGrid).page_charts}


async def test_one_cursor_reads_all_charts(tmp_path, monkeypatch):
    app = loaded(write_metrics(tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        # The table leaves the keys of charts to others.
        await opened(pilot, "v", "left", "plus", "home")
        assert app.cursor is None
        assert dashboard(app).query_one(ChartsPanel).look.span is None
        # The full screen hands its look, its cursor and its metric back.
        await press(pilot, "v", "enter", "j", "home", "y", "q")
        await drawn(pilot)
        assert screen(app).chosen == "val-core/gsm8k/m1"
        assert cursors(app) == {1}
        assert "log y" in lines(app)[0]
        await press(pilot, "escape", "y", "g")
        await drawn(pilot)
        assert cursors(app) == {None}
        # One cursor reads all charts.
        await press(pilot, "left", "left", "left")
        assert app.cursor == 18
        assert cursors(app) == {18}
        assert sum(line.count("@ 18") for line in lines(app)) == len(tiles(app))
        await press(pilot, "l", "home")
        assert (app.cursor, screen(app).chosen) == (1, "val-core/gsm8k/m1")
        await press(pilot, "pagedown")
        await drawn(pilot)
        assert cursors(app) == {1}, "it holds on every page"
        # A step of it draws what is in sight only.
        count = len(tiles(app))
        shown: list[str] = []
        show = Chart.show

        def noted(self, data):
            shown.extend(filter(None, [data.key]))  # not the names of groups
            show(self, data)

        with monkeypatch.context() as patch:
            patch.setattr(Chart, "show", noted)
            await press(pilot, "right")
            await drawn(pilot)
            assert sorted(shown) == sorted(tiles(app))
            assert len(shown) == count
        # It goes with escape, and the dashboard has it, too.
        await press(pilot, "escape")
        assert app.cursor is None
        assert cursors(app) == {None}
        await press(pilot, "end", "q")
        assert app.screen is dashboard(app)
        assert {
            chart.cursor for chart in dashboard(app).query_one(ChartsPanel).charts
        } == {20}
