"""How the list of runs is laid out in the room of its panel."""

from __future__ import annotations

import pytest
from run_views import make_run, make_view

from verl_tui.rendering.run_list.layout import ListRoom, RunListLayout, RunRows, caption


def laid_out(runs: int, room: ListRoom, **options: bool) -> RunRows:
    listed = [make_run(f"run-{at}") for at in range(runs)]
    view = make_view(*listed, **options)
    return RunListLayout().lay_out(view, listed, "as found", room)


def words(rows: RunRows) -> list[str]:
    return ["".join(text for text, _ in rows.row(at)) for at in range(rows.stop)]


@pytest.mark.parametrize(
    ("runs", "width", "height", "tall"),
    [(2, 40, 6, 3), (2, 40, 5, 2), (3, 40, 4, 2), (9, 40, 8, 1), (2, 23, 9, 1), (2, 40, 3, 1)],
)
def test_runs_take_as_many_rows_as_there_is_room_for(
    runs: int, width: int, height: int, tall: int
) -> None:
    rows = laid_out(runs, ListRoom(width, height))
    assert (rows.tall, rows.heading) == (tall, None)
    assert list(rows.starts) == [at * tall for at in range(runs)]
    assert all(f"run-{at}" in words(rows)[at * tall] for at in range(runs))


def test_a_narrow_screen_has_one_row_a_run() -> None:
    assert laid_out(2, ListRoom(40, 9, narrow=True)).tall == 1


def test_a_wide_list_is_a_table_with_a_heading_where_it_is_high_enough() -> None:
    assert laid_out(2, ListRoom(77, 5)).heading is not None
    assert laid_out(2, ListRoom(77, 4)).heading is None
    assert laid_out(2, ListRoom(48, 5)).heading is None
    assert laid_out(2, ListRoom(48, 5, zoomed=True)).heading is not None


def test_the_reading_of_logs_stands_above_the_runs() -> None:
    rows = laid_out(2, ListRoom(40, 9), loading=True)
    assert words(rows)[0].startswith("reading 45 %")
    assert next(iter(rows.starts)) == 1


def test_without_runs_the_reasons_are_given() -> None:
    view = make_view(waiting=("logs/ is not there yet",), problems=("x is no log",))
    rows = RunListLayout().lay_out(view, [], "as found", ListRoom(40, 9))
    assert words(rows) == ["no run yet", "logs/ is not there yet", "▲ x is no log"]
    assert list(rows.starts) == []


def test_rows_are_narrower_where_they_must_scroll() -> None:
    for width in (20, 40, 90):
        rows = laid_out(9, ListRoom(width, 4))
        assert max(map(len, words(rows))) <= width - 1


def test_the_caption_keeps_its_last_words_where_there_is_little_room() -> None:
    view = make_view(make_run("a"), make_run("b"), waiting=("c is missing",))
    assert caption(view, 1, "reward", 60) == "filter: 1 of 2 · by reward · 1 path not shown (i)"
    assert caption(view, 1, "reward", 20) == "1 path not shown (i)"
    assert caption(view, 1, "reward", 5) == ""
