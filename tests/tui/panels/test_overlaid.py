"""Curves of selected runs over each other: which series, which marks, on which axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inside_textual import notices
from panel_host import Host
from run_views import NOW, make_run, make_view

from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.rendering.charts.plan import ChartLook, plan_charts
from verl_tui.rendering.charts.planned_data import chart_data, counterpart
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.session.run_order import Selection
from verl_tui.rendering.text.piece import text_of
from verl_tui.runs.run import Run
from verl_tui.tui.panels.runs import RunsPanel

if TYPE_CHECKING:
    from verl_tui.rendering.charts.chart_data import ChartData
    from verl_tui.rendering.session.snapshot import View


def view_of(*runs: Run, selected: str = "", **more: Any) -> View:
    selection = Selection()
    for name in selected.split():
        selection.toggle(name)
    view = make_view(*runs, selection=selection, **more)
    view.monitor.config = type("Config", (), {"charts": (), "targets": {}})()
    view.monitor.band = lambda *_: (0.0, 0.05)
    return view


def reward(view: View, look: ChartLook | None = None) -> ChartData:
    assert view.run is not None
    found = next(one for one in plan_charts(view.run, ()) if one.indicator == "reward")
    return chart_data(found, view, look or ChartLook())


def lines(data: ChartData) -> list[tuple[str, str, str]]:
    return [(line.sign, line.role, line.label) for line in data.lines]


def three(**more: Any) -> tuple[Run, Run, Run]:
    return make_run("x-grpo", 60), make_run("x-ppo", 90), make_run("x-dapo", 30, **more)


def test_the_shown_run_comes_first_and_each_has_the_letter_of_its_place():
    data = reward(view_of(*three(), selected="x-ppo x-grpo x-dapo"))
    assert lines(data) == [
        ("B", "run-2", "grpo"),
        ("A", "run-1", "ppo"),
        ("C", "run-3", "dapo"),
    ]
    assert [len(line.points.steps) for line in data.lines] == [60, 90, 30]
    assert data.band == (0.0, 0.05), "bands stay those of the shown run"


def test_the_same_meaning_under_another_name_is_the_same_metric():
    other, steps = Run("trl"), range(1, 21)
    rows = MetricRows(("reward", "other/x"), steps, ([1.0] * 20, [2.0] * 20), steps)
    other.apply(Batch("trl", SourceStatus("/logs/trl", "trl"), (rows,)), NOW)
    plain = make_run("verl", 20, columns={"other/x": [3.0] * 20})
    data = reward(view_of(plain, other, selected="verl trl"))
    assert [line.label for line in data.lines] == ["verl", "trl"]
    assert set(data.lines[1].points.values) == {1.0}
    found = counterpart(plain, "other/x", None, other)
    assert found is not None
    assert set(found.values) == {2.0}
    assert counterpart(plain, "only/here", None, other) is None


def test_letters_stand_on_the_lines_and_in_the_legend():
    runs = [
        make_run(f"run-{n}", 200, columns={"m": [float(n)] * 200}) for n in range(6)
    ]
    view = view_of(*runs, selected=" ".join(run.name for run in runs))
    found = next(one for one in plan_charts(runs[0], ()) if one.key == "m")
    drawn = ChartRenderer().rows(chart_data(found, view, ChartLook()), 100, 20)
    title, *plot = [*map(text_of, drawn)]
    assert "A 0  B 1  C 2  D 3  E 4  F 5" in title
    for letter, role in zip("ABCDEF", (f"run-{n}" for n in range(1, 7)), strict=True):
        stamped = [row for row in plot if letter in row]
        assert len(stamped) == 1, "each run has its own height"
        assert stamped[0].count(letter) >= 3
        assert {
            style for row in drawn[1:] for text, style in row if letter in text
        } == {role}


# -- in the list of runs ---------------------------------------------------------------------------


async def test_a_seventh_run_is_refused():
    app = Host(RunsPanel())
    view = view_of(
        *(make_run(f"run-{n}", 9) for n in range(7)),
        selected=" ".join(f"run-{n}" for n in range(1, 7)),
    )
    async with app.run_test(size=(60, 20)) as pilot:
        app.panel.show(view)
        await pilot.press("space")
        await pilot.pause()
        assert len(view.selection) == 6
        assert notices(app) == ["6 runs are compared at most"]
