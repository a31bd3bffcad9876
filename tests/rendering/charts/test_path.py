"""The path of a reward over the KL."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any

from run_views import make_run, make_view

from verl_tui.rendering.charts.cache import ChartCache
from verl_tui.rendering.charts.chart_data import ChartData, ChartLine
from verl_tui.rendering.charts.path import neighbour_on_path, path_points
from verl_tui.rendering.charts.plan import ChartLook, plan_charts
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.renderer import ChartRenderer
from verl_tui.rendering.charts.values import cursor_values, in_sight
from verl_tui.rendering.charts.x_axes import on_axis
from verl_tui.rendering.session.selection import Selection
from verl_tui.runs.pyramid import Pyramid
from verl_tui.tui.widgets.chart_keys import why_unchanged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

REWARD, KL = "critic/score/mean", "actor/kl_loss"
OVER_KL = ChartLook(axis="kl")


class Column:
    """A series as a chart wants it."""

    def __init__(
        self, values: Sequence[float], steps: Sequence[int] | None = None
    ) -> None:
        self.steps = array("q", range(len(values)) if steps is None else steps)
        self.values = array("d", values)
        self.pyramid = Pyramid(self.steps, self.values)
        self.pyramid.catch_up()


def path(rewards: Sequence[float], kls: Sequence[float], **more: Any) -> ChartData:
    line = ChartLine(Column(rewards), role="reward", over=Column(kls))
    return ChartData("r", "reward over KL", lines=(line,), **more)


def drawn(data: ChartData, size: tuple[int, int] = (60, 12), **more: Any) -> list[str]:
    rows = ChartRenderer().rows(data, *size, **more)
    return ["".join(text for text, _ in row) for row in rows]


def trained(name: str = "run", **more: Any) -> Run:
    columns = {KL: [n / 100 for n in range(60)], "actor/entropy": [1.0] * 60}
    return make_run(name, 60, columns=columns, **more)


def view_of(*runs: Run, selected: str = "") -> View:
    selection = Selection()
    for name in selected.split():
        selection.toggle(name)
    view = make_view(*runs, selection=selection)
    view.monitor.config = type("Config", (), {"charts": (), "targets": {}})()
    return view


def chart(view: View, key: str, look: ChartLook = OVER_KL) -> ChartData:
    assert view.run is not None
    return chart_data(
        next(one for one in plan_charts(view.run, ()) if one.key == key), view, look
    )


# -- which points ----------------------------------------------------------------------------------


def test_only_steps_with_both_values_are_points_in_the_order_of_steps() -> None:
    kl = Column([0.1, 0.3, math.nan, 0.2], [1, 3, 4, 5])
    reward = Column([1.0, 2.0, 3.0, 4.0, 5.0], [1, 2, 3, 4, 5])
    assert path_points(kl, reward, 0, 9) == [
        (1, 0.1, 1.0),
        (3, 0.3, 3.0),
        (5, 0.2, 5.0),
    ]
    assert path_points(kl, reward, 2, 4) == [(3, 0.3, 3.0)]


# -- the picture -----------------------------------------------------------------------------------


def rising_and_falling() -> ChartData:
    rewards = [min(n, 60 - n) / 30 for n in range(60)]
    return path(rewards, [n / 100 for n in range(60)])


# -- the cursor ------------------------------------------------------------------------------------


def test_the_cursor_reads_step_kl_and_reward() -> None:
    data = rising_and_falling()._replace(label="reward over KL")
    (only,) = cursor_values(data, 12, ChartCache())
    assert only == "step 12: KL 0.12, reward 0.4"
    assert "0.4 at KL 0.12 @ 12" in drawn(data, cursor=12)[0]
    assert sum(row.count("◇") for row in drawn(data, cursor=12)) == 1


def test_the_cursor_goes_along_the_path_to_its_ends() -> None:
    line = ChartLine(Column([1.0] * 4, [1, 2, 3, 9]), over=Column([1.0] * 3, [1, 3, 9]))
    assert neighbour_on_path(line, None, -1) == 9
    assert neighbour_on_path(line, 9, -1) == 3
    assert neighbour_on_path(line, 2, 1) == 3
    assert neighbour_on_path(line, 3, -10) == 1
    assert neighbour_on_path(line, 3, 10) == 9
    assert neighbour_on_path(ChartLine(Column([1.0])), 0, 1) is None


# -- of a run --------------------------------------------------------------------------------------


def test_a_run_without_kl_says_why_its_reward_stays_over_steps() -> None:
    run = make_run(steps=9)
    assert on_axis(run, "kl").problem == "no KL is logged"
    before = ChartLook(axis="relative")
    assert why_unchanged(before, "axis", run) == "no KL is logged: x stays at steps"
    assert chart(view_of(run), REWARD) == chart(view_of(run), REWARD, ChartLook())


def test_the_kl_of_a_path_is_in_the_table_as_it_was_logged() -> None:
    view = view_of(trained())
    assert view.run is not None
    found = next(one for one in plan_charts(view.run, ()) if one.key == REWARD)
    columns = {column.key: column for column in in_sight(found, None, view, OVER_KL)}
    assert list(columns[KL].values) == [n / 100 for n in range(60)]
    assert KL not in {column.key for column in in_sight(found, None, view, ChartLook())}
