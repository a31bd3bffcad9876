"""Event files that are cut, damaged or hostile: what can be read is read, and no value is wrong."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_events import (
    VERSION,
    event,
    field,
    framed,
    mixed,
    read,
    scalar,
    scalars,
    tensor,
)

from verl_tui.records import Unreadable

# -- cut, damaged, hostile -------------------------------------------------------------------------

PIECES = [VERSION, *scalars(range(4)), *mixed(), *scalars(range(126, 131))]
WHOLE = b"".join(PIECES)


@given(st.lists(st.integers(0, len(WHOLE)), max_size=30).map(tuple))
def test_records_may_be_cut_anywhere(cuts):
    assert read(WHOLE, cuts) == read(WHOLE)


def counted(numbers: dict[str, list[tuple[str, ...]]]) -> set[tuple[str, ...]]:
    return {(key, *row) for key, rows in numbers.items() for row in rows}


@given(
    st.integers(0, len(WHOLE) - 1),
    st.integers(1, 255),
    st.lists(st.integers(0, len(WHOLE)), max_size=3).map(tuple),
)
def test_a_changed_byte_costs_one_record_and_no_value_is_wrong(at, mask, cuts):
    data = bytearray(WHOLE)
    data[at] ^= mask
    numbers, others = read(bytes(data), cuts)
    true, _ = read(WHOLE)
    assert counted(numbers) <= counted(true)
    (wrong,) = [record for record in others if isinstance(record, Unreadable)]
    edges = list(itertools.accumulate(map(len, PIECES), initial=0))
    number = next(n for n, edge in enumerate(edges) if edge > at)
    assert (wrong.line, f"at byte {edges[number - 1]:,}" in wrong.reason) == (
        number,
        True,
    )
    lost = read(VERSION + PIECES[number - 1])[0] if number > 1 else {}
    assert counted(true) - counted(numbers) == counted(lost)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (event(2**63 - 1, 1.7e9, scalar("a", 1.0)), "the step is 9223372036854775807"),
        (framed(b"\x0b\x00"), "wire type 3"),
        (
            event(1, 1.7e9, field(1, b"h") + field(5, field(6, bytes(8)))),
            "1 limits and 0 counts",
        ),
        (
            event(1, 1.7e9, tensor("x", field(4, bytes(7)) + b"\x08\x01", "scalars")),
            "7 bytes of numbers",
        ),
    ],
)
def test_events_that_say_nothing_sensible(record, words):
    numbers, (wrong,) = read(VERSION + record + event(1, 1.7e9, scalar("a", 1.0)))
    assert words in wrong.reason
    assert wrong.line == 2
    assert list(numbers) == ["a"]


def test_a_file_of_no_known_version_says_so():
    for first in (
        framed(b"\x09" + bytes(8)),
        framed(b"\x09" + bytes(8) + field(3, b"other:1")),
    ):
        numbers, (wrong,) = read(first + event(1, 1.7e9, scalar("a", 1.0)))
        assert "version" in wrong.reason
        assert list(numbers) == ["a"]
