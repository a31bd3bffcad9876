"""What is listed in what order, and what the table says of each."""

from __future__ import annotations

import math
from array import array

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.rendering.metrics.filter import parse_filter
from verl_tui.rendering.metrics.listing import ORDERS, MetricOrder, listing, movement
from verl_tui.rendering.metrics.metric_rows import layout, metric_heading, metric_row
from verl_tui.runs.series import Series

NAN = math.nan
FLOATS = st.floats() | st.sampled_from([0.0, 1e308, -1e308, 5e-324])


def series(values: list[float]) -> Series:
    made = Series("key")
    made.steps, made.values = array("q", range(1, len(values) + 1)), array("d", values)
    return made


VALUES = {
    "a/up": [1.0] * 10 + [2.0] * 10,
    "a/down": [4.0] * 10 + [1.0] * 10,
    "b/flat": [3.0] * 20,
    "b/few": [9.0],
    "c/nan": [NAN] * 20,
}


def order(by: str, *, reverse: bool = False, wanted: str = "") -> list[str]:
    assert by in ORDERS
    groups = listing(
        VALUES,
        parse_filter(wanted),
        MetricOrder(by, reverse),  # type: ignore[arg-type]
        lambda key, count: VALUES[key][-count:],
    )
    return [key for group in groups for key in group.keys]


def test_sorted_by_key_last_and_trend() -> None:
    assert order("key") == ["a/down", "a/up", "b/few", "b/flat", "c/nan"]
    assert order("last") == ["b/few", "b/flat", "a/up", "a/down", "c/nan"]
    assert order("trend") == ["a/up", "b/flat", "a/down", "b/few", "c/nan"]


def test_the_other_way_round_what_is_no_number_stays_last() -> None:
    assert order("key", reverse=True) == order("key")[::-1]
    assert order("last", reverse=True) == ["a/down", "a/up", "b/flat", "b/few", "c/nan"]
    assert order("trend", reverse=True) == [
        "a/down",
        "b/flat",
        "a/up",
        "b/few",
        "c/nan",
    ]


def test_filtered() -> None:
    assert order("last", wanted="a/|few") == ["b/few", "a/up", "a/down"]
    assert order("key", wanted="none") == order("last", wanted="none") == []


def test_sorting_by_key_reads_no_values() -> None:
    def tail(key: str, count: int) -> list[float]:
        raise AssertionError(key)

    assert len(listing(VALUES, parse_filter(""), MetricOrder(), tail)) == 3


def test_orders_come_round() -> None:
    assert MetricOrder("key", reverse=True).next() == MetricOrder("last")
    assert MetricOrder("trend").next() == MetricOrder("key")


def test_movement() -> None:
    assert movement(VALUES["a/up"]) == (1, 0.5)
    assert movement(VALUES["a/down"]) == (-1, -0.75)
    assert movement(VALUES["b/flat"]) == (0, 0.0)
    assert movement([1.0, 2.0]) == (None, 0.0)
    assert movement([-1.0] * 10 + [1.0] * 10) == (1, 2.0)
    assert movement(range(1000)).turn == 1
    assert movement([0.0] * 10 + [0.2] * 7 + [0.0] * 3) == (-1, -1.0), (
        "back to where it was"
    )
    assert movement([0.1] * 10 + [0.2] * 7 + [0.025] * 3) == (-1, -0.75), (
        "below where it was"
    )


@given(st.lists(FLOATS, max_size=50))
def test_movement_of_anything_is_bounded(values: list[float]) -> None:
    turn, change = movement(values)
    assert turn in (None, -1, 0, 1)
    assert -2 <= change <= 2


def text(*pieces: tuple[str, str]) -> str:
    return "".join(words for words, _ in pieces)


def test_a_row_says_it_all() -> None:
    columns = layout(80, 20)
    written = text(
        *metric_row(
            "a/up", series(VALUES["a/up"]), columns, pinned=True, ascii_only=False
        )
    )
    assert written.split() == [
        "★",
        "a/up",
        "2",
        "↑",
        "+50%",
        "1",
        "2",
        "▁▁▁▁▁▁▁▁▁▁██████████",
    ]
    names = text(
        *metric_heading(columns, MetricOrder("last"), ascii_only=False)
    ).split()
    assert names == ["metric", "last▼", "trend", "min", "max", "all", "steps"]


def test_after_a_restart_the_last_value_is_of_the_newest_segment() -> None:
    values, columns = series(VALUES["a/up"]), layout(80, 20)
    written = text(
        *metric_row("a/up", values, columns, pinned=False, ascii_only=False, end=10)
    )
    assert written.split() == ["a/up", "1", "→", "1", "2", "▁▁▁▁▁▁▁▁▁▁██████████"]
    assert text(
        *metric_row("a/up", values, columns, pinned=False, ascii_only=False, end=0)
    ).split()[:2] == ["a/up", "-"]


def test_broken_values_are_marked() -> None:
    pieces = metric_row(
        "c/nan", series([1.0, NAN]), layout(80, 20), pinned=False, ascii_only=True
    )
    assert ("nan", "odd") in [
        (words.split()[0], role) for words, role in pieces if words.strip()
    ]
    assert "!" in text(*pieces)
    assert text(*pieces).isascii()


def test_a_new_value_leaves_the_other_pieces_as_they_are() -> None:
    values = [float(n % 7) for n in range(1000)]
    columns = layout(120, 30)
    before = metric_row("key", series(values), columns, pinned=False, ascii_only=False)
    after = metric_row(
        "key", series([*values, 3.0]), columns, pinned=False, ascii_only=False
    )
    assert [cell_len(words) for words, _ in before] == [
        cell_len(words) for words, _ in after
    ]
    assert sum(one != other for one, other in zip(before, after, strict=True)) <= 3


def test_everything_is_as_wide_as_the_table() -> None:
    for width in [*range(1, 70), 80, 120, 220]:
        for longest in (1, 12, 200):
            columns = layout(width, longest)
            assert all(size >= 0 for size in columns)
            room = sum(columns)
            assert room <= width
            for ascii_only in (True, False):
                for name in ("a" * 300, "数学/" * 50, "x"):
                    for values in ([], [NAN], [1e300, -1e-300] * 40):
                        pieces = metric_row(
                            name,
                            series(values),
                            columns,
                            pinned=True,
                            ascii_only=ascii_only,
                        )
                        assert cell_len(text(*pieces)) == room
                for by in ORDERS:
                    assert (
                        cell_len(
                            text(
                                *metric_heading(
                                    columns, MetricOrder(by), ascii_only=ascii_only
                                )
                            )
                        )
                        == room
                    )


def test_names_have_the_room_that_numbers_leave() -> None:
    assert layout(40, 60).name >= 12
    assert layout(220, 30).name == 30
    assert layout(20, 60).last == 8
    assert layout(120, 30).spark > 30
