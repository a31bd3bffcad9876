"""How the list of runs is laid out in the room of its panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from run_views import make_run, make_view

from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.rendering.run_list.layout import ListRoom, RunListLayout, RunRows, caption
from verl_tui.rendering.run_list.table_rows import on_edge
from verl_tui.rendering.session.run_order import RunListing

if TYPE_CHECKING:
    from verl_tui.runs.run import Run


def laid_out(runs: int, room: ListRoom, **options: bool) -> RunRows:
    listed = [make_run(f"run-{at}") for at in range(runs)]
    view = make_view(*listed, **options)
    return RunListLayout().lay_out(view, listed, room)


def words(rows: RunRows) -> list[str]:
    return ["".join(text for text, _ in rows.row(at)) for at in range(rows.stop)]


@pytest.mark.parametrize(
    ("runs", "width", "height", "tall"),
    [
        (2, 40, 6, 3),
        (2, 40, 5, 2),
        (3, 40, 4, 2),
        (9, 40, 8, 1),
        (2, 23, 9, 1),
        (2, 40, 3, 1),
    ],
)
def test_runs_take_as_many_rows_as_there_is_room_for(
    runs: int, width: int, height: int, tall: int
) -> None:
    rows = laid_out(runs, ListRoom(width, height))
    assert (rows.tall, rows.heading) == (tall, "")
    assert list(rows.starts) == [at * tall for at in range(runs)]
    assert all(f"run-{at}" in words(rows)[at * tall] for at in range(runs))


def test_a_narrow_screen_has_one_row_a_run() -> None:
    assert laid_out(2, ListRoom(40, 9, narrow=True)).tall == 1


def test_a_wide_list_is_a_table_whose_columns_have_names() -> None:
    assert laid_out(2, ListRoom(77, 2)).heading
    assert not laid_out(2, ListRoom(48, 5)).heading
    assert laid_out(2, ListRoom(48, 5, zoomed=True)).heading


def test_the_names_stand_in_the_frame_each_over_its_column() -> None:
    heading = " " * 9 + "  state" + " " * 6 + "KL"
    pieces = on_edge("runs", heading, "─")
    # The title begins two cells behind the edge, where the rows begin.
    assert "  " + "".join(words for words, _ in pieces) == "  runs ─── state ──── KL"
    assert [words for words, role in pieces if role == "name"] == ["state", "KL"]
    assert on_edge("runs", "", "─") == [("runs", "title")]


def test_rows_of_another_width_that_are_written_late_change_no_others() -> None:
    listed = [make_run(f"a-run-with-quite-a-long-name-{at}") for at in range(3)]
    view, layout = make_view(*listed), RunListLayout()
    narrow = layout.lay_out(view, listed, ListRoom(24, 3))
    wide = layout.lay_out(view, listed, ListRoom(48, 3))
    assert "-long-name-1" not in words(narrow)[1]
    assert "a-run-with-quite-a-long-name-1" in words(wide)[1]


@pytest.mark.parametrize("width", [24, 77])
def test_rows_of_a_run_that_is_gone_may_still_be_written(width: int) -> None:
    listed = [make_run(f"run-{at}") for at in range(2)]
    view = make_view(*listed)
    rows = RunListLayout().lay_out(view, listed, ListRoom(width, 2))
    view.monitor.runs.clear()
    assert "run-1" in words(rows)[1]


def test_the_reading_of_logs_stands_above_the_runs() -> None:
    rows = laid_out(2, ListRoom(40, 9), loading=True)
    assert words(rows)[0].startswith("reading 45%")
    assert next(iter(rows.starts)) == 1


def test_without_runs_the_reasons_are_given() -> None:
    view = make_view(waiting=("logs/ is not there yet",), problems=("x is no log",))
    rows = RunListLayout().lay_out(view, [], ListRoom(40, 9))
    assert words(rows) == ["no run yet", "logs/ is not there yet", "▲ x is no log"]
    assert list(rows.starts) == []


def test_rows_are_narrower_where_they_must_scroll() -> None:
    for width in (20, 40, 90):
        rows = laid_out(9, ListRoom(width, 4))
        assert max(map(len, words(rows))) <= width - 1


def test_the_caption_keeps_its_last_words_where_there_is_little_room() -> None:
    listing = RunListing("reward")
    view = make_view(
        make_run("a"), make_run("b"), waiting=("c is missing",), listing=listing
    )
    assert caption(view, 1, 60) == "filter: 1 of 2 · by reward · 1 path not shown (i)"
    assert caption(view, 1, 20) == "1 path not shown (i)"
    assert caption(view, 1, 5) == ""


@given(
    st.lists(
        st.text("ab-", min_size=1, max_size=40), min_size=1, max_size=9, unique=True
    ),
    st.integers(8, 76),
    st.data(),
)
def test_states_stand_in_one_column_and_badges_shift_no_row(
    names: list[str], width: int, data: st.DataObject
) -> None:
    steps = [data.draw(st.sampled_from([0, 3, 120, 500])) for _ in names]
    listed = [make_run(name, count) for name, count in zip(names, steps, strict=True)]
    found = Finding("kl-high", Severity.WARNING, "The KL is high.")
    plain = short(listed, width, {})
    found_rows = short(listed, width, {listed[-1].name: Verdict((found,) * 12)})
    assert {cell_len(row) for row in plain} == {width}
    assert [row[5:] for row in plain] == [row[5:] for row in found_rows]
    words = [row.split()[-1] for row in plain]
    states = {"running", "finished", "waiting", "training"}
    assert all(word in states for word in words) or not any(
        word in states for word in words
    )


def short(listed: list[Run], width: int, verdicts: dict[str, Verdict]) -> list[str]:
    view = make_view(*listed, verdicts=verdicts)
    room = ListRoom(width, len(listed), narrow=True)
    return words(RunListLayout().lay_out(view, listed, room))


def test_progress_fills_the_room_behind_a_name_where_others_need_all_of_it() -> None:
    listed = [make_run("a"), make_run("the-name-of-this-run")]
    assert short(listed, 27, {}) == [
        "1 ○  a" + "120/500".rjust(19) + "  ",
        "2 ○  the-name-of-this-run  ",
    ]


def test_a_run_is_numbered_by_its_place_in_the_list() -> None:
    runs = [make_run(f"run-{at}", 20 + at) for at in range(11)]
    view = make_view(*runs)
    rows = words(RunListLayout().lay_out(view, runs[::-1], ListRoom(40, 11)))
    assert [row[0] for row in rows] == [*"123456789", " ", " "]
    assert "run-10" in rows[0]


@pytest.mark.parametrize(("total", "state"), [(500, "running"), (120, "finished")])
def test_a_run_that_goes_on_or_is_done_is_green(total: int, state: str) -> None:
    listed = [make_run("run", total=total)]
    rows = RunListLayout().lay_out(make_view(*listed), listed, ListRoom(77, 2))
    assert (state, "ok") in [(text.strip(), role) for text, role in rows.row(0)]
