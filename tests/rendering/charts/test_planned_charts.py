"""Which charts a run gets, in which order, and their axes of steps and times."""

from __future__ import annotations

import math
import time

import pytest
from charted_runs import add_step, rich_run, view_of
from run_views import ACTIONS, NOW, make_run

from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.records import Batch, MetricRows, Progress, SourceStatus
from verl_tui.rendering.charts.axes import fit_window
from verl_tui.rendering.charts.chart_data import ARROWS
from verl_tui.rendering.charts.plan import ChartLook, plan_charts, unknown_charts
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.title_row import value_pieces
from verl_tui.rendering.charts.x_axes import on_axis
from verl_tui.rendering.text.piece import text_of
from verl_tui.tui.widgets.chart import why_unchanged


def keys(run, *wanted, filter_=""):
    return [found.key for found in plan_charts(run, wanted, filter_)]


# -- which charts ----------------------------------------------------------------------------------


def test_wanted_charts_that_nobody_knows_are_reported():
    run = rich_run()
    assert (
        list(
            unknown_charts(
                ["reward", "actor/entropy", "actor/yet_to_come", "policy_loss"], [run]
            )
        )
        == []
    )
    (slip, other) = unknown_charts(["entrpy", "[bold]\nxyz"], [run])
    assert slip.endswith("nothing is called entrpy; did you mean entropy?")
    assert other.endswith("nothing is called [bold] xyz")
    assert list(unknown_charts(["entrpy"], [])) == [], "nothing has been read yet"


# -- which figure a title says ---------------------------------------------------------------------


def test_a_trend_is_not_drawn_where_health_finds_none():
    run = rich_run()
    reward = plan_charts(run, ())[0]
    plateau = Finding("plateau", Severity.INFO, "flat", 60, 1, key=reward.key)
    for verdict, rises in ((Verdict(), True), (Verdict((plateau,)), False)):
        view = view_of(run, verdicts={run.name: verdict})
        data = chart_data(reward, view, ChartLook())
        assert (text_of(value_pieces(data, None))[-1] in ARROWS) is rises


# -- axes ------------------------------------------------------------------------------------------


def test_axes_of_time():
    run = rich_run(quiet=0.0)
    series = run.series("my/own")
    assert series is not None
    points = on_axis(run, "relative").points(series)
    assert list(points.steps) == [int(NOW - (60 - n) * 30) for n in range(1, 61)]
    assert on_axis(run, "relative").write(points.steps[-1]) == "29m30s"
    assert on_axis(run, "step").points(series) is series


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_ticks_of_time_are_round_where_the_user_lives(zone, monkeypatch):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    run = make_run(steps=0)
    for step in range(60):
        add_step(run, step + 1, time=NOW + step * 3600)
    relative = on_axis(run, "relative")
    of_day = on_axis(run, "time")
    window = fit_window(int(NOW), int(NOW) + 59 * 3600, 200)
    hours = [
        relative.write(tick) for tick in window.ticks(10, time=True, zero=relative.zero)
    ]
    assert hours[:3] == ["0s", "6h", "12h"]
    days = [
        of_day.write(tick) for tick in window.ticks(10, time=True, zero=of_day.zero)
    ]
    assert {"06:00", "12:00", "18:00"} < set(days)
    assert any(day.endswith(" Jan") for day in days), "a day says which it is"
    assert len(of_day.exact(int(NOW))) == len("15 Jan 08:00:00")
    monkeypatch.undo()
    time.tzset()


def test_ticks_of_time_and_neighbouring_steps_are_distinguished():
    for span in [8, 60, 300]:
        for pace in [0.1, 7, 400, 90_000]:
            for name in ["relative", "time"]:
                run = make_run(steps=0)
                for step in range(span):
                    add_step(run, step + 1, time=NOW + step * pace)
                axis = on_axis(run, name)
                for first in (0, int(span * pace * 0.9)):
                    window = fit_window(int(NOW) + first, int(NOW + span * pace), 266)
                    told = [
                        axis.write(tick)
                        for tick in window.ticks(12, time=True, zero=axis.zero)
                    ]
                    assert told
                    # A time of day may come again on the next day, behind its date.
                    assert all(
                        told[i] not in told[i + 1 : i + 2] for i in range(len(told))
                    )
                    assert name == "time" or len({*told}) == len(told)
                moments = {int(NOW + step * pace) for step in range(span)}
                assert len({axis.exact(moment) for moment in moments}) == len(moments)


def test_times_that_are_counted_back_say_so():
    run = make_run(steps=0)
    status = SourceStatus("/logs/grpo", "verl console", modified=NOW)
    for step in (1, 2, 3):
        rows = MetricRows(("critic/score/mean",), [step], [[0.5]], [0], [math.nan])
        run.apply(
            Batch(
                run.name,
                status,
                (Progress(step, 3, elapsed=step * 60.0), rows),
                live=False,
            ),
            NOW,
        )
    assert on_axis(run, "time").estimated
    assert list(ChartLook(axis="time").words(run)) == ["x: time, estimated"]
    assert list(ChartLook(axis="time").words(rich_run())) == ["x: time"]


def test_a_log_without_times_is_drawn_over_its_steps_and_says_so_once():
    run = make_run(steps=0)
    for step in (1, 2, 3):
        add_step(run, step, time=math.nan)
    look = ChartLook(axis="time")
    data = chart_data(plan_charts(run, ())[0], view_of(run, cursor=2), look)
    assert list(data.main.points.steps) == [1, 2, 3]
    assert (data.cursor, data.axis.label) == (2, "step")
    assert list(look.words(run)) == ["x: step, no times are known"]
    assert (
        why_unchanged(ChartLook(), "axis", run, ACTIONS)
        == "no times are known: x stays at steps"
    )
    assert not why_unchanged(ChartLook(axis="relative"), "axis", run, ACTIONS)
    assert not why_unchanged(ChartLook(), "axis", make_run(), ACTIONS)
