"""The charts panel: how many charts fit, pages, scale, smoothing, and what a repaint costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from charted_runs import add_step, rich_run, view_of
from run_views import NOW, make_run
from textual.app import App
from textual.geometry import Size

from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.rendering.charts.plan import ChartLook, plan_charts
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.tui.panels.charts import ChartsPanel
from verl_tui.tui.terminal.output import screen_rows
from verl_tui.tui.widgets.plot import Plot
from verl_tui.tui.widgets.tiles import Tiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import ComposeResult
    from textual.pilot import Pilot


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


@pytest.mark.parametrize(
    ("size", "charts"),
    [
        ((120, 40), 7),
        ((78, 20), 6),
        ((78, 14), 4),
        ((40, 5), 3),
        ((28, 30), 7),
        ((1, 1), 1),
    ],
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
        # as in a quick drag of the window's edge
        for size in (Size(20, 4), Size(118, 38)):
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
        add_step(run, 61, 0.9)
        app.panel.show(view_of(run))
        await drawn(pilot)
        assert set(rendered) == {"critic/score/mean"}


async def test_a_new_verdict_is_drawn_though_no_number_changed() -> None:
    app = Charts()
    run = rich_run()
    async with app.run_test(size=(120, 40)) as pilot:
        for since in (20, 40):
            finding = Finding(
                "kl-high", Severity.WARNING, "high", 60, since, key="actor/ppo_kl"
            )
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
        verdicts={
            run.name: Verdict(
                (*found, Finding("no-key", Severity.WARNING, "high", 60, 50))
            )
        },
    )
    view = replace(view, cursor=45)
    kl = next(one for one in plan_charts(run, ()) if one.key == "actor/ppo_kl")
    stepped = chart_data(kl, view, ChartLook())
    assert [(mark.step, mark.role) for mark in stepped.marks] == [
        (20, "breach"),
        (45, "breach"),
    ]
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
    names = {
        "actor/entropy": 1e-5,
        "actor/pg_loss": -300.0,
        "my/own": 1e6,
        "timing_s/gen": 1.0,
    }
    columns = {key: [top * (n % 7) for n in range(60)] for key, top in names.items()}
    async with app.run_test(size=(100, 30)) as pilot:
        app.panel.show(view_of(make_run(steps=60, columns=columns)))
        for size in ((100, 30), (100, 29), (60, 40), (120, 24)):
            await pilot.resize_terminal(*size)
            await drawn(pilot)
            by_column: dict[int, set[int]] = {}
            for chart in app.panel.charts:
                by_column.setdefault(chart.region.x, set()).add(chart.plot_area().left)
            assert all(len(lefts) == 1 for lefts in by_column.values()), (
                size,
                by_column,
            )
            windows = [chart.plot_area().window for chart in app.panel.charts]
            assert len({window.start for window in windows if window is not None}) == 1
            assert None not in windows


async def test_what_is_constant_has_a_row_until_it_varies() -> None:
    app, steps = Charts(), 20
    columns = {
        "actor/entropy": [0.1 * (n % 5) for n in range(steps)],
        "actor/lr": [1e-6] * steps,
    }
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
        status = SourceStatus(
            "/logs/grpo", "verl", modified=NOW, size=200, bytes_read=200
        )
        rows = MetricRows(("actor/lr",), (steps + 1,), ((2e-6,),), (steps + 1,))
        run.apply(Batch("grpo", status, (rows,)), NOW)
        app.panel.show(view_of(run))
        await drawn(pilot)
        assert "constant" not in app.text
        assert all(chart.size.height > 6 for chart in app.panel.charts)
        assert app.panel.reveal("actor/lr")


async def test_a_revealed_constant_is_a_chart() -> None:
    app, steps = Charts(), 20
    columns = {
        "actor/entropy": [0.1 * (n % 5) for n in range(steps)],
        "actor/lr": [1e-6] * steps,
    }
    async with app.run_test(size=(80, 24)) as pilot:
        app.panel.show(view_of(make_run(steps=steps, columns=columns)))
        await drawn(pilot)
        assert app.panel.reveal("actor/lr")
        await drawn(pilot)
        assert "constant" not in app.text
        assert "actor/lr" in app.keys


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
        assert [(one.cursor, one.log_y, one.usual_y) for one in shown] == [
            (30, True, True)
        ] * 7
