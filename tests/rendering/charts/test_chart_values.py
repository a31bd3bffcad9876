"""The numbers behind a chart: what the cursor reads as text, what is in sight as columns of a
table.
"""

from __future__ import annotations

import csv
import json
import math
from typing import TYPE_CHECKING

import pytest

from verl_tui.config import Config
from verl_tui.exporters.csv import csv_rows
from verl_tui.monitor import load
from verl_tui.rendering.charts.axes import ZoomSpan
from verl_tui.rendering.charts.plan import ChartLook, PlannedChart, plan_charts
from verl_tui.rendering.charts.planned_data import chart_data
from verl_tui.rendering.charts.title_row import title_row
from verl_tui.rendering.charts.values import in_sight, listed, reading, rows_of
from verl_tui.rendering.session.run_order import Selection
from verl_tui.rendering.session.snapshot import View

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.exporters.csv import CsvColumn
    from verl_tui.monitor import Monitor

NOW = 1_800_000_000.0

REWARD, KL, VALIDATION = "critic/score/mean", "actor/ppo_kl", "val-core/math/acc/mean@1"
ODD = {7: math.nan, 8: math.inf}


def value(step: int, shift: float) -> float:
    return ODD.get(step, step / 3 + shift)


def write(directory: Path, steps: int, shift: float) -> None:
    """Write a verl run, a step every 10 s from a beginning of its own, validation every fourth
    step.
    """
    directory.mkdir()
    records = [
        {
            "scope": "rollout",
            "step": step,
            "timestamp": NOW - 10_000 + 1000 * shift + 10 * step,
            REWARD: value(step, shift),
            **({VALIDATION: step / 4} if step % 4 == 0 else {}),
        }
        for step in range(1, steps + 1)
    ]
    flat = [{**record, KL: 0.001 * record["step"]} for record in records]
    for record in flat:
        del record["scope"]
    (directory / "metrics.jsonl").write_text(
        "".join(json.dumps(record) + "\n" for record in flat)
    )


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    folder = tmp_path_factory.mktemp("runs")
    write(folder / "run_a", 40, 0.0)
    write(folder / "run_b", 60, 0.5)
    return load([str(folder)], Config(), NOW)


def view_of(monitor: Monitor, cursor: int | None = None, *selected: str) -> View:
    selection = Selection()
    for name in selected:
        selection.toggle(name)
    return View(monitor, monitor.runs["run_a"], NOW, cursor=cursor, selection=selection)


def chart(view: View, key: str) -> PlannedChart:
    assert view.run is not None
    return next(found for found in plan_charts(view.run, ()) if found.key == key)


def columns(
    view: View,
    look: ChartLook | None = None,
    key: str = REWARD,
    right: str | None = None,
) -> dict[str, CsvColumn]:
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


def test_the_newest_values_are_copied_without_a_cursor(monitor: Monitor) -> None:
    view = view_of(monitor)
    assert reading(chart(view, KL), None, view, ChartLook()) == f"{KL} step 40 0.04"
    assert reading(chart(view, REWARD), None, view, ChartLook()).splitlines() == [
        f"{REWARD} step 40 {40 / 3!r}",
        f"{VALIDATION} step 40 10",
    ]


@pytest.mark.parametrize("axis", ["step", "time", "relative"])
def test_after_a_restart_the_newest_segments_values_are_copied_and_labelled(
    tmp_path: Path, axis: str
) -> None:
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
def test_the_cursors_values_are_copied_on_every_axis(
    monitor: Monitor, axis: str
) -> None:
    view = view_of(monitor, 11)
    assert reading(
        chart(view, REWARD), chart(view, KL), view, ChartLook(axis=axis)
    ).splitlines() == [
        f"{REWARD} step 11 {11 / 3!r}",
        f"{VALIDATION} step 8 2",
        f"{KL} step 11 0.011",
    ]


# -- what is written -------------------------------------------------------------------------------


def test_all_points_are_written_as_they_were_logged(monitor: Monitor) -> None:
    found = columns(view_of(monitor))
    assert list(found) == ["time", REWARD, VALIDATION]
    assert list(found[REWARD].steps) == list(range(1, 41))
    assert [repr(one) for one in found[REWARD].values] == [
        repr(value(step, 0.0)) for step in range(1, 41)
    ]
    assert list(found[VALIDATION].steps) == list(range(4, 41, 4))
    assert found["time"].values[:2] == ["2027-01-15T05:13:30Z", "2027-01-15T05:13:40Z"]


def test_the_listed_metrics_of_the_shown_run_are_written(monitor: Monitor) -> None:
    view = view_of(monitor, None, "run_a", "run_b")
    found = listed(
        [KL, VALIDATION, "gone"], view, ChartLook(axis="relative", span=ZoomSpan(5, 4))
    )
    assert [column.key for column in found] == ["time", KL, VALIDATION]
    assert list(found[1].steps) == [5, 6, 7, 8, 9]


# -- there and back --------------------------------------------------------------------------------


def test_what_is_written_can_be_read_again(monitor: Monitor, tmp_path: Path) -> None:
    view = view_of(monitor, None, "run_a", "run_b")
    look = ChartLook(smoothing=0.9)
    found = in_sight(chart(view, REWARD), chart(view, KL), view, look)
    again = _read(tmp_path / "taken.csv", found)
    (run,) = again.runs.values()
    numbers = [column for column in found if not column.key.startswith("time")]
    assert set(run.keys) == {column.key for column in numbers}
    for column in numbers:
        series = run.series(column.key)
        assert series is not None
        assert list(series.steps) == list(column.steps)
        assert list(map(repr, series.values)) == list(map(repr, column.values))
    original, series = view.run.series(REWARD), run.series(REWARD)  # type: ignore[union-attr]
    assert original is not None
    assert series is not None
    assert list(series.times) == pytest.approx(list(original.times)), (
        "the shown run's times too"
    )


def _read(path: Path, found: Sequence[CsvColumn]) -> Monitor:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(csv_rows(found))
    assert b"\r\n" in path.read_bytes(), "RFC 4180"
    return load([str(path)], Config(), NOW)


def test_names_with_commas_and_quotes_are_quoted(
    monitor: Monitor, tmp_path: Path
) -> None:
    column = in_sight(chart(view_of(monitor), KL), None, view_of(monitor), ChartLook())[
        1
    ]
    again = _read(tmp_path / "odd.csv", [replace_key(column, 'a,"b" c/d')])
    (run,) = again.runs.values()
    assert list(run.keys) == ['a,"b" c/d']


def replace_key(column: CsvColumn, key: str) -> CsvColumn:
    return column._replace(key=key)


@pytest.mark.parametrize(
    ("values", "most", "rows"),
    [
        ([], 3, []),
        (["step 7", "a b 1", "c 2"], 3, ["step 7   a b 1", "c 2"]),
        (["step 7", "a b 1", "c 2"], 1, ["step 7   a b …"]),
        (["step 7", "long 12345", "c 2"], 1, ["step 7 …"]),
    ],
)
def test_readings_are_wrapped_between_each_other(
    values: list[str], most: int, rows: list[str]
) -> None:
    assert rows_of(values, 14, most) == rows
