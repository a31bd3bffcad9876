"""The numbers behind a chart: what the cursor reads as text, what is in sight as columns of a
table.
"""

from __future__ import annotations

import csv
import json
import math

import pytest
from jsonl import write_jsonl

from verl_tui.config import Config
from verl_tui.exporters.csv import csv_rows
from verl_tui.monitor import load
from verl_tui.rendering.charts.axes import ZoomSpan
from verl_tui.rendering.charts.plan import ChartLook, plan_charts
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.title_row import title_row
from verl_tui.rendering.charts.values import in_sight, listed, reading, rows_of
from verl_tui.rendering.session.run_order import Selection
from verl_tui.rendering.session.snapshot import View

NOW = 1_800_000_000.0

REWARD, KL, VALIDATION = "critic/score/mean", "actor/ppo_kl", "val-core/math/acc/mean@1"
ODD = {7: math.nan, 8: math.inf}


def value(step, shift):
    return ODD.get(step, step / 3 + shift)


def write(directory, steps, shift):
    """Write a verl run, a step every 10 s from a beginning of its own, validation every fourth
    step.
    """
    rows = [
        {
            "step": step,
            "timestamp": NOW - 10_000 + 1000 * shift + 10 * step,
            REWARD: value(step, shift),
            **({VALIDATION: step / 4} if step % 4 == 0 else {}),
            KL: 0.001 * step,
        }
        for step in range(1, steps + 1)
    ]
    write_jsonl(directory / "metrics.jsonl", rows)


@pytest.fixture(scope="module")
def monitor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write(folder / "run_a", 40, 0.0)
    write(folder / "run_b", 60, 0.5)
    return load([str(folder)], Config(), NOW)


def view_of(monitor, cursor=None, *selected):
    selection = Selection()
    for name in selected:
        selection.toggle(name)
    return View(monitor, monitor.runs["run_a"], NOW, cursor=cursor, selection=selection)


def chart(view, key):
    assert view.run is not None
    return next(found for found in plan_charts(view.run, ()) if found.key == key)


def columns(view, look=None, key=REWARD, right=None):
    found = in_sight(
        chart(view, key),
        chart(view, right) if right else None,
        view,
        look or ChartLook(),
    )
    assert len({column.key for column in found}) == len(found), (
        "no two columns are called the same"
    )
    return {column.key: column for column in found}


# -- what is copied --------------------------------------------------------------------------------


def test_the_newest_values_are_copied_without_a_cursor(monitor):
    view = view_of(monitor)
    assert reading(chart(view, KL), None, view, ChartLook()) == f"{KL} step 40 0.04"
    assert reading(chart(view, REWARD), None, view, ChartLook()).splitlines() == [
        f"{REWARD} step 40 {40 / 3!r}",
        f"{VALIDATION} step 40 10",
    ]


@pytest.mark.parametrize("axis", ["step", "time", "relative"])
def test_after_a_restart_the_newest_segments_values_are_copied(tmp_path, axis):
    write(tmp_path / "run_a", 40, 0.0)
    log = tmp_path / "run_a" / "metrics.jsonl"
    lines = [
        {"step": step, "timestamp": NOW - 1000 + 10 * step, REWARD: 0.1, KL: 0.5}
        for step in (1, 2, 3)
    ]
    log.write_text(log.read_text() + "".join(json.dumps(line) + "\n" for line in lines))
    view = view_of(load([str(tmp_path / "run_a")], Config(), NOW))
    assert (
        reading(chart(view, KL), None, view, ChartLook(axis=axis)) == f"{KL} step 3 0.5"
    )
    data = chart_data(chart(view, KL), view, ChartLook(axis=axis))
    assert any("0.5" in text for text, _ in title_row(data, 60, None))


@pytest.mark.parametrize("axis", ["step", "time", "relative"])
def test_the_cursors_values_are_copied_on_every_axis(monitor, axis):
    view = view_of(monitor, 11)
    assert reading(
        chart(view, REWARD), chart(view, KL), view, ChartLook(axis=axis)
    ).splitlines() == [
        f"{REWARD} step 11 {11 / 3!r}",
        f"{VALIDATION} step 8 2",
        f"{KL} step 11 0.011",
    ]


# -- what is written -------------------------------------------------------------------------------


def test_all_points_are_written_as_they_were_logged(monitor):
    found = columns(view_of(monitor))
    assert list(found) == ["time", REWARD, VALIDATION]
    assert list(found[REWARD].steps) == list(range(1, 41))
    assert [repr(one) for one in found[REWARD].values] == [
        repr(value(step, 0.0)) for step in range(1, 41)
    ]
    assert list(found[VALIDATION].steps) == list(range(4, 41, 4))
    assert found["time"].values[:2] == ["2027-01-15T05:13:30Z", "2027-01-15T05:13:40Z"]


def test_the_listed_metrics_of_the_shown_run_are_written(monitor):
    view = view_of(monitor, None, "run_a", "run_b")
    found = listed(
        [KL, VALIDATION, "gone"], view, ChartLook(axis="relative", span=ZoomSpan(5, 4))
    )
    assert [column.key for column in found] == ["time", KL, VALIDATION]
    assert list(found[1].steps) == [5, 6, 7, 8, 9]


# -- there and back --------------------------------------------------------------------------------


def test_what_is_written_can_be_read_again(monitor, tmp_path):
    view = view_of(monitor, None, "run_a", "run_b")
    look = ChartLook(smoothing=0.9)
    found = in_sight(chart(view, REWARD), chart(view, KL), view, look)
    again = _read(tmp_path / "taken.csv", found)
    (run,) = again.runs.values()
    numbers = [column for column in found if not column.key.startswith("time")]
    assert set(run.keys) == {column.key for column in numbers}
    for column in numbers:
        series = run.series(column.key)
        assert list(series.steps) == list(column.steps)
        assert list(map(repr, series.values)) == list(map(repr, column.values))
    original, series = view.run.series(REWARD), run.series(REWARD)
    assert list(series.times) == pytest.approx(list(original.times)), (
        "the shown run's times too"
    )


def _read(path, found):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(csv_rows(found))
    assert b"\r\n" in path.read_bytes(), "RFC 4180"
    return load([str(path)], Config(), NOW)


@pytest.mark.parametrize(
    ("values", "most", "rows"),
    [
        ([], 3, []),
        (["step 7", "a b 1", "c 2"], 3, ["step 7   a b 1", "c 2"]),
        (["step 7", "a b 1", "c 2"], 1, ["step 7   a b …"]),
        (["step 7", "long 12345", "c 2"], 1, ["step 7 …"]),
        (["step 7", "a/longer/name 5 @ 7"], 3, ["step 7", "a/longe…5 @ 7"]),
    ],
)
def test_readings_are_wrapped_between_each_other(values, most, rows):
    assert rows_of(values, 14, most) == rows
