"""The charts panel: which charts a run gets, how many fit, axes, scale, smoothing, and what a
repaint costs.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from run_views import NOW, make_run, make_view
from textual.app import App
from textual.geometry import Size

from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.records import Batch, MetricRows, Progress, SourceStatus
from verl_tui.rendering.charts.axes import fit_window
from verl_tui.rendering.charts.plan import ChartLook, plan_charts, unknown_charts
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.x_axes import on_axis
from verl_tui.tui.keys.chart_keys import why_unchanged
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.terminal.output import screen_rows
from verl_tui.tui.widgets.plot import Plot
from verl_tui.tui.widgets.tiles import Tiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import ComposeResult
    from textual.pilot import Pilot

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

VALIDATION = "val-core/gsm8k/acc/mean@1"
KEYS = (
    "actor/ppo_kl",
    "actor/pg_loss",
    "actor/entropy",
    "my/own",
    "timing_s/gen",
    VALIDATION,
)


class Charts(App[None]):
    """Nothing but the panel."""

    def __init__(self) -> None:
        super().__init__()
        self.panel = ChartsPanel()

    def compose(self) -> ComposeResult:
        yield self.panel

    @property
    def text(self) -> str:
        return "\n".join(screen_rows(self))

    @property
    def keys(self) -> list[str]:
        return [chart.data.key for chart in self.panel.charts if chart.display]


async def drawn(pilot: Pilot[None]) -> None:
    """Wait until those charts are drawn, too, that come a frame later."""
    await pilot.pause()


def rich_run(steps: int = 60, **more: Any) -> Run:
    """Return a run with a handful of metrics, validation on the reward's scale among them."""
    columns = {key: [0.1 + n % 7 for n in range(steps)] for key in KEYS}
    columns[VALIDATION] = [0.1 + n % 7 / 10 for n in range(steps)]
    return make_run(steps=steps, columns=columns, **more)


def view_of(run: Run | None, **more: Any) -> View:
    view = make_view(*([run] if run else []), **more)
    view.monitor.config = type("Config", (), {"charts": (), "targets": {}})()
    view.monitor.band = lambda *_: (0.0, 0.05)
    return view


def keys(run: Run, *wanted: str, filter_: str = "") -> list[str]:
    return [found.key for found in plan_charts(run, wanted, filter_)]


# -- which charts ----------------------------------------------------------------------------------


def test_what_tells_of_learning_comes_first_and_nothing_is_left_out() -> None:
    shown = keys(rich_run())
    assert shown[:4] == ["critic/score/mean", "actor/ppo_kl", "actor/pg_loss", "actor/entropy"]
    assert set(shown) == {"critic/score/mean", *KEYS}
    assert len(shown) == len(set(shown))


def test_wanted_charts_that_nobody_knows_are_reported() -> None:
    run = rich_run()
    assert (
        list(unknown_charts(["reward", "actor/entropy", "actor/yet_to_come", "policy_loss"], [run]))
        == []
    )
    (slip, other) = unknown_charts(["entrpy", "[bold]\nxyz"], [run])
    assert slip.endswith("nothing is called entrpy; did you mean entropy?")
    assert other.endswith("nothing is called [bold] xyz")
    assert list(unknown_charts(["entrpy"], [])) == [], "nothing has been read yet"


def test_figures_of_samples_stand_in_the_order_of_what_they_tell() -> None:
    names = (
        "count",
        "acc",
        "dead_groups",
        "distinct_2",
        "read_share",
        "repetition",
        "response_chars",
        "score",
    )
    columns = {f"samples/{name}": [0.5] * 9 for name in names} | {"timing_s/ref": [1.0] * 9}
    shown = [key.removeprefix("samples/") for key in keys(make_run(steps=9, columns=columns))[1:]]
    telling, rest = shown[:5], shown[5:]
    assert telling == ["score", "acc", "dead_groups", "repetition", "distinct_2"]
    assert rest == ["timing_s/ref", "response_chars", "count", "read_share"]


def test_a_statistic_without_its_whole_family_has_a_chart() -> None:
    names = (
        "training/rollout_probs_diff_mean",
        "training/rollout_probs_diff_max",
        "my/gap_max",
        "my/gap_mean",
    )
    run = make_run(steps=9, columns={name: [0.1] * 9 for name in names})
    plans = plan_charts(run, ())
    assert all(any(found.shows(name) for found in plans) for name in names)


def test_wanted_charts_come_first() -> None:
    assert keys(rich_run(), "my/own", "entropy", "not there")[:2] == ["my/own", "actor/entropy"]


def test_validation_points_stand_in_the_reward_chart() -> None:
    run = rich_run()
    found = plan_charts(run, ())[0]
    assert found.points == (VALIDATION,)
    assert found.shows(VALIDATION)
    assert [line.kind for line in chart_data(found, view_of(run), ChartLook()).lines] == [
        "line",
        "points",
    ]


def test_validation_on_another_scale_has_the_chart_after_the_rewards() -> None:
    run = make_run(steps=60, columns={VALIDATION: [50.0] * 60, "actor/ppo_kl": [0.1] * 60})
    shown = plan_charts(run, ())
    assert [one.key for one in shown[:3]] == ["critic/score/mean", VALIDATION, "actor/ppo_kl"]
    assert shown[0].points == ()
    assert chart_data(shown[0], view_of(run), ChartLook()).beside == ()


def test_a_family_is_one_chart_with_an_envelope() -> None:
    parts = {f"my/thing/{part}": [1.0] * 9 for part in ("max", "mean", "min")}
    run = make_run(steps=9, columns=parts)
    found = plan_charts(run, ())
    assert [(one.key, one.envelope) for one in found[1:]] == [
        ("my/thing/mean", ("my/thing/min", "my/thing/max"))
    ]
    assert chart_data(found[1], view_of(run), ChartLook()).envelope is not None


def test_filter_takes_keys_and_labels_in_any_case() -> None:
    assert keys(rich_run(), filter_="PPO_KL") == ["actor/ppo_kl"]
    assert keys(rich_run(), filter_="policy kl") == ["actor/ppo_kl"]
    assert keys(rich_run(), filter_="[red]") == []


@pytest.mark.parametrize(
    "key", ["[red]", "汉字", "k" * 300, "", "a/b/c/d", "val-x", "fault_tolerance/x", "system/gpu"]
)
def test_any_key_has_a_place(key: str) -> None:
    assert key in keys(make_run(steps=3, columns={key: [1.0, 2.0, 3.0]}))


def test_marks_stand_where_something_happened() -> None:
    run = rich_run()
    run.checkpoints[20] = "/ckpt/20"
    finding = Finding("kl-high", Severity.WARNING, "high", 60, 33, key="actor/ppo_kl")
    view = view_of(run, verdicts={run.name: Verdict((finding,))})
    kl = next(found for found in plan_charts(run, ()) if found.key == "actor/ppo_kl")
    assert [(mark.step, mark.role) for mark in chart_data(kl, view, ChartLook()).marks] == [
        (20, "checkpoint"),
        (33, "breach"),
    ]
    reward = plan_charts(run, ())[0]
    assert [mark.role for mark in chart_data(reward, view, ChartLook()).marks] == ["checkpoint"]
    assert [mark.role for mark in chart_data(reward, view, ChartLook(axis="time")).marks] == [
        "checkpoint"
    ]


# -- axes ------------------------------------------------------------------------------------------


def test_axes_of_time() -> None:
    run = rich_run(quiet=0.0)
    series = run.series("my/own")
    assert series is not None
    points = on_axis(run, "relative").points(series)
    assert list(points.steps) == [int(NOW - (60 - n) * 30) for n in range(1, 61)]
    assert on_axis(run, "relative").axis.write(points.steps[-1]) == "29m30s"
    assert on_axis(run, "step").points(series) is series


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_ticks_of_time_are_round_where_the_user_lives(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    run = make_run(steps=0)
    for step in range(60):
        add(run, step + 1, time=NOW + step * 3600)
    relative, of_day = on_axis(run, "relative").axis, on_axis(run, "time").axis
    window = fit_window(int(NOW), int(NOW) + 59 * 3600, 200)
    hours = [relative.write(tick) for tick in window.ticks(10, time=True, zero=relative.zero)]
    assert hours[:3] == ["0s", "6h", "12h"]
    days = [of_day.write(tick) for tick in window.ticks(10, time=True, zero=of_day.zero)]
    assert {"06:00", "12:00", "18:00"} < set(days)
    assert any(day.endswith(" Jan") for day in days), "a day says which it is"
    assert len(of_day.read(int(NOW))) == len("15 Jan 08:00"), (
        "on the second day a time says nothing without its date"
    )
    assert len(of_day.exact(int(NOW))) == len("15 Jan 08:00:00")
    monkeypatch.undo()
    time.tzset()


def test_ticks_of_time_and_neighbouring_steps_are_distinguished() -> None:
    for span in [8, 60, 300]:
        for pace in [0.1, 1, 7, 61, 400, 3600, 90_000]:
            for name in ["relative", "time"]:
                run = make_run(steps=0)
                for step in range(span):
                    add(run, step + 1, time=NOW + step * pace)
                axis = on_axis(run, name).axis
                for first in (0, int(span * pace * 0.9)):
                    window = fit_window(int(NOW) + first, int(NOW + span * pace), 266)
                    displayed = [
                        axis.write(tick) for tick in window.ticks(12, time=True, zero=axis.zero)
                    ]
                    assert displayed
                    # A time of day may come again on the next day, behind its date.
                    assert all(
                        displayed[i] not in displayed[i + 1 : i + 2] for i in range(len(displayed))
                    )
                    assert name == "time" or len({*displayed}) == len(displayed)
                moments = {int(NOW + step * pace) for step in range(span)}
                assert len({axis.exact(moment) for moment in moments}) == len(moments)
                if pace * span < 86_400:
                    assert len({axis.read(moment) for moment in moments}) == len(moments)


def test_ticks_say_no_more_than_they_need() -> None:
    run = make_run(steps=0)
    for step in (1, 2):
        add(run, step, time=NOW + step)
    since = on_axis(run, "relative").axis
    displayed = {
        0: "0s",
        30: "30s",
        60: "1m",
        90: "1m30s",
        3600: "1h",
        5400: "1h30m",
        3630: "1h00m30s",
        3 * 86_400: "3d",
    }
    assert {second: since.write(since.zero + second) for second in displayed} == displayed
    assert since.write(since.zero + 3 * 86_400 + 4 * 3600 + 600) == "3d4h10m"
    assert since.exact(since.zero + 297) == "4m 57s"
    assert since.write(since.zero - 90) == "-1m30s"
    of_day = on_axis(run, "time").axis
    minute = int(NOW) // 60 * 60
    assert of_day.write(minute + 30) == of_day.exact(minute + 30)
    assert of_day.exact(minute) == f"{of_day.write(minute)}:00"


def test_times_that_are_counted_back_say_so() -> None:
    run = make_run(steps=0)
    status = SourceStatus("/logs/grpo", "verl console", modified=NOW)
    for step in (1, 2, 3):
        rows = MetricRows(("critic/score/mean",), [step], [[0.5]], [0], [math.nan])
        run.apply(
            Batch(run.name, status, (Progress(step, 3, elapsed=step * 60.0), rows), live=False), NOW
        )
    series = run.series("critic/score/mean")
    assert series is not None
    axis = on_axis(run, "time")
    assert axis.estimated
    assert "progress bar" in axis.origin(series)
    assert list(ChartLook(axis="time").words(run)) == ["x: time, estimated"]
    assert list(ChartLook(axis="time").words(rich_run())) == ["x: time"]
    assert not on_axis(run, "step").origin(series)


def test_time_axis_grows_with_the_series_and_takes_no_time_twice() -> None:
    run = make_run(steps=3)
    series = run.series("critic/score/mean")
    assert series is not None
    assert len(on_axis(run, "time").points(series).steps) == 3
    add(run, 4, time=NOW + 30)
    add(run, 5, time=math.nan)
    add(run, 6, time=NOW - 900)
    assert list(on_axis(run, "time").points(series).steps)[3:] == [int(NOW + 30)]


def test_a_log_without_times_is_drawn_over_its_steps_and_says_so_once() -> None:
    run = make_run(steps=0)
    for step in (1, 2, 3):
        add(run, step, time=math.nan)
    look = ChartLook(axis="time")
    data = chart_data(plan_charts(run, ())[0], view_of(run, cursor=2), look)
    assert data.main is not None
    assert list(data.main.points.steps) == [1, 2, 3]
    assert (data.cursor, data.axis.label) == (2, "step")
    assert list(look.words(run)) == ["x: step, no times are known"]
    assert why_unchanged(ChartLook(), "axis", run) == "no times are known: x stays at steps"
    assert not why_unchanged(ChartLook(axis="kl"), "axis", run)
    assert not why_unchanged(ChartLook(), "axis", make_run())


def add(run: Run, step: int, value: float = 0.5, time: float = NOW) -> None:
    status = SourceStatus(f"/logs/{run.name}", "verl", modified=NOW)
    run.apply(
        Batch(
            run.name, status, (MetricRows(("critic/score/mean",), [step], [[value]], [0], [time]),)
        ),
        NOW,
    )


# -- the panel -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "charts"),
    [((120, 40), 7), ((78, 20), 6), ((78, 14), 4), ((40, 5), 3), ((28, 30), 7), ((1, 1), 1)],
)
async def test_as_many_charts_as_fit(size: tuple[int, int], charts: int) -> None:
    app = Charts()
    async with app.run_test(size=size) as pilot:
        app.panel.show(view_of(rich_run()))
        await drawn(pilot)
        assert len(app.keys) == charts
        regions = [chart.region for chart in app.panel.charts if chart.display]
        for at, region in enumerate(regions):
            assert not any(region.overlaps(other) for other in regions[at + 1 :])


async def test_shrinking_and_growing_at_once_keeps_all_charts() -> None:
    app = Charts()
    async with app.run_test(size=(120, 40)) as pilot:
        app.panel.show(view_of(rich_run()))
        await drawn(pilot)
        shown = app.keys
        assert len(shown) == 7
        for size in (Size(20, 4), Size(118, 38)):  # as in a quick drag of the window's edge
            app.panel.query_one(Tiles).arrange(size)
        app.panel.on_show()
        await drawn(pilot)
        assert app.keys == shown
        assert len(app.panel.query_one("Tiles").children) == 7


async def test_pages() -> None:
    app = Charts()
    async with app.run_test(size=(80, 16)) as pilot:
        app.panel.show(view_of(rich_run()))
        await drawn(pilot)
        first = app.keys
        assert "1–4 of 7" in app.text
        app.panel.charts[0].focus()
        await pilot.press("pagedown")
        await drawn(pilot)
        assert not set(app.keys) & set(first)
        assert "5–7 of 7" in app.text
        await pilot.press("pagedown", "g")
        await drawn(pilot)
        assert app.keys == first
        for _ in range(4):
            await pilot.press("j")
        await drawn(pilot)
        assert app.keys != first
        assert app.panel.focused_plan() == plan_charts(rich_run(), ())[4]
        await pilot.press("k")
        await drawn(pilot)
        assert app.panel.focused_plan() == plan_charts(rich_run(), ())[3]


async def test_looks() -> None:
    app = Charts()
    async with app.run_test(size=(120, 40)) as pilot:
        app.panel.show(view_of(rich_run()))
        for what, words in [
            *(
                ("axis", "x: time"),
                ("axis", "x: relative"),
                ("axis", "x of rewards: KL"),
                ("axis", ""),
                ("log", "log y"),
                ("log", ""),
            ),
            *(
                ("smoother", "smoothing 0.6"),
                ("smoother", "smoothing 0.9"),
                ("rougher", "smoothing 0.6"),
                ("rougher", ""),
                ("rougher", "raw values"),
                ("rougher", "raw values"),
            ),
        ]:
            app.panel.change_look(what)
            await drawn(pilot)
            assert words in app.text
            assert tuple(app.panel.look.words()) == ((words,) if words else ())
        for _ in range(9):
            app.panel.change_look("smoother")
        assert app.panel.look.smoothing == 0.97
        app.panel.change_look("reset")
        assert app.panel.look == ChartLook()


async def test_a_newer_drawing_takes_the_place_of_one_that_waits() -> None:
    app, run = Charts(), rich_run()
    async with app.run_test(size=(120, 40)) as pilot:
        app.panel.show(view_of(run))
        app.panel.show(view_of(run, cursor=20))  # while others wait for the layout
        await drawn(pilot)
        assert [chart.data.cursor for chart in app.panel.charts] == [20] * 7
        assert all(chart.rows for chart in app.panel.charts)
        app.panel.change_look("log")
        app.panel.change_look("usual")
        app.panel.show(view_of(run, cursor=30))  # while others wait for the next frame
        await drawn(pilot)
        shown = [chart.data for chart in app.panel.charts]
        assert [(one.cursor, one.log_y, one.usual_y) for one in shown] == [(30, True, True)] * 7


async def test_a_cursor_on_the_time_axis_is_gone_on_the_axis_of_steps() -> None:
    app = Charts()
    async with app.run_test(size=(120, 40)) as pilot:
        app.panel.show(view_of(rich_run()))
        app.panel.change_look("axis")
        await drawn(pilot)
        app.panel.charts[0].focus()
        await pilot.press("left")
        assert app.panel.charts[0].cursor is not None
        for _ in range(3):
            app.panel.change_look("axis")
        await drawn(pilot)
        assert app.panel.look.axis == "step"
        assert app.panel.charts[0].cursor is None


async def test_only_what_changed_is_painted_again(rendered: list[str]) -> None:
    app = Charts()
    run = rich_run()
    async with app.run_test(size=(120, 40)) as pilot:
        app.panel.show(view_of(run))
        await drawn(pilot)
        await drawn(pilot)
        assert rendered
        rendered.clear()
        app.panel.show(view_of(run))
        app.panel.on_show()
        await drawn(pilot)
        assert rendered == []
        add(run, 61, 0.9)
        app.panel.show(view_of(run))
        await drawn(pilot)
        assert set(rendered) == {"critic/score/mean"}


async def test_a_new_verdict_is_drawn_though_no_number_changed() -> None:
    app = Charts()
    run = rich_run()
    async with app.run_test(size=(120, 40)) as pilot:
        for since in (20, 40):
            finding = Finding("kl-high", Severity.WARNING, "high", 60, since, key="actor/ppo_kl")
            app.panel.show(view_of(run, verdicts={run.name: Verdict((finding,))}))
            await drawn(pilot)
            assert [mark.step for mark in app.panel.charts[1].data.marks] == [since]


async def test_each_finding_has_a_mark_at_its_step_on_every_axis() -> None:
    run = rich_run()
    found = tuple(
        Finding(f"rule-{since}", Severity.WARNING, "high", 60, since, key=key)
        for since, key in (
            (20, "actor/ppo_kl"),
            (45, "actor/ppo_kl"),
            (45, "actor/ppo_kl"),
            (30, "actor/entropy"),
        )
    )
    view = view_of(
        run,
        verdicts={run.name: Verdict((*found, Finding("no-key", Severity.WARNING, "high", 60, 50)))},
    )
    view = replace(view, cursor=45)
    kl = next(one for one in plan_charts(run, ()) if one.key == "actor/ppo_kl")
    stepped = chart_data(kl, view, ChartLook())
    assert [(mark.step, mark.role) for mark in stepped.marks] == [(20, "breach"), (45, "breach")]
    timed = chart_data(kl, view, ChartLook(axis="time"))
    times = [int(NOW - (60 - step) * 30.0) for step in (20, 45)]
    assert [mark.step for mark in timed.marks] == times
    assert (stepped.cursor, timed.cursor) == (45, times[1])


async def test_a_revealed_metric_stays_in_sight_when_fewer_charts_fit() -> None:
    app = Charts()
    async with app.run_test(size=(120, 40)) as pilot:
        app.panel.show(view_of(rich_run()))
        await drawn(pilot)
        key = app.keys[-1]
        app.panel.reveal(key)
        for size in ((78, 14), (40, 5), (80, 8), (120, 40)):
            await pilot.resize_terminal(*size)
            await drawn(pilot)
            assert key in app.keys
        await pilot.resize_terminal(80, 8)
        await drawn(pilot)
        app.panel.charts[0].focus()
        await pilot.press("g")
        await drawn(pilot)
        assert key not in app.keys, "the user has turned the page"


async def test_the_same_name_may_be_another_run() -> None:
    app = Charts()
    async with app.run_test(size=(120, 40)) as pilot:
        app.panel.show(view_of(make_run(columns={"actor/entropy": [1.0] * 120})))
        await drawn(pilot)
        app.panel.show(view_of(make_run(columns={"my/own": [1.0] * 120})))
        await drawn(pilot)
        assert app.keys == ["critic/score/mean", "my/own"]


async def test_empty_states() -> None:
    app = Charts()
    async with app.run_test(size=(80, 20)) as pilot:
        app.panel.show(view_of(None))
        await drawn(pilot)
        assert "no run yet" in app.text
        app.panel.show(view_of(make_run(steps=0)))
        await drawn(pilot)
        assert "no step yet" in app.text
        app.panel.filter = "[red]x"
        app.panel.show(view_of(rich_run()))
        await drawn(pilot)
        assert "no metric matches “[red]x”" in app.text


async def test_reveal_turns_to_the_page_of_a_metric() -> None:
    app = Charts()
    async with app.run_test(size=(80, 8)) as pilot:
        app.panel.show(view_of(rich_run()))
        await drawn(pilot)
        assert "timing_s/gen" not in app.keys
        assert app.panel.reveal("timing_s/gen")
        await drawn(pilot)
        assert "timing_s/gen" in app.keys
        assert not app.panel.reveal("not there")
        assert "timing_s/gen" in app.keys


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Keys of the charts of which a row was made."""
    seen: list[str] = []
    make = Plot.strip

    def counted(self: Plot, row: Any) -> Any:
        seen.append(self.data.key)
        return make(self, row)

    monkeypatch.setattr(Plot, "strip", counted)
    return seen


async def test_charts_of_a_column_line_up_at_every_size() -> None:
    app = Charts()
    names = {"actor/entropy": 1e-5, "actor/pg_loss": -300.0, "my/own": 1e6, "timing_s/gen": 1.0}
    columns = {key: [top * (n % 7) for n in range(60)] for key, top in names.items()}
    async with app.run_test(size=(100, 30)) as pilot:
        app.panel.show(view_of(make_run(steps=60, columns=columns)))
        for size in ((100, 30), (100, 29), (60, 40), (120, 24)):
            await pilot.resize_terminal(*size)
            await drawn(pilot)
            by_column: dict[int, set[int]] = {}
            for chart in app.panel.charts:
                by_column.setdefault(chart.region.x, set()).add(chart.plot_area().left)
            assert all(len(lefts) == 1 for lefts in by_column.values()), (size, by_column)
            windows = [chart.plot_area().window for chart in app.panel.charts]
            assert len({window.start for window in windows if window is not None}) == 1
            assert None not in windows


async def test_what_is_constant_has_a_row_until_it_varies() -> None:
    app, steps = Charts(), 20
    columns = {"actor/entropy": [0.1 * (n % 5) for n in range(steps)], "actor/lr": [1e-6] * steps}
    run = make_run(steps=steps, columns=columns)
    async with app.run_test(size=(80, 24)) as pilot:
        app.panel.show(view_of(run))
        await drawn(pilot)
        assert "constant since step 1" in app.text.splitlines()[-2]
        assert [chart.size.height for chart in app.panel.charts] == [11, 10, 1]
        await pilot.press("tab", "j", "j")
        plan = app.panel.focused_plan()
        assert plan is not None
        assert plan.key == "actor/lr"
        status = SourceStatus("/logs/grpo", "verl", modified=NOW, size=200, bytes_read=200)
        rows = MetricRows(("actor/lr",), (steps + 1,), ((2e-6,),), (steps + 1,))
        run.apply(Batch("grpo", status, (rows,)), NOW)
        app.panel.show(view_of(run))
        await drawn(pilot)
        assert "constant" not in app.text
        assert all(chart.size.height > 6 for chart in app.panel.charts)
        assert app.panel.reveal("actor/lr")


async def test_a_revealed_constant_is_a_chart() -> None:
    app, steps = Charts(), 20
    columns = {"actor/entropy": [0.1 * (n % 5) for n in range(steps)], "actor/lr": [1e-6] * steps}
    async with app.run_test(size=(80, 24)) as pilot:
        app.panel.show(view_of(make_run(steps=steps, columns=columns)))
        await drawn(pilot)
        assert app.panel.reveal("actor/lr")
        await drawn(pilot)
        assert "constant" not in app.text
        assert "actor/lr" in app.keys
