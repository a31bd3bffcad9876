"""Which metrics have had only one value."""

from __future__ import annotations

from array import array
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_views import make_run

from verl_tui.records import MetricRows
from verl_tui.runs.one_value import OneValue
from verl_tui.runs.table import Table


def table(values: list[float]) -> Table:
    found = Table(("m",), mean=False)
    add(found, values)
    return found


def add(found: Table, values: list[float]) -> None:
    first = len(found)
    steps = list(range(first, first + len(values)))
    found.extend(
        MetricRows(("m",), steps, [values], steps), 0, array("d", [nan] * len(values))
    )


def constant(known: OneValue, *tables: Table) -> bool:
    return "m" in set(known.keys({"m": [(one, 0) for one in tables]}))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1e-6] * 8, True),
        ([0.0] * 300, True),
        ([1e-6] * 7, False),
        ([], False),
        ([1.0] * 8 + [1.1] + [1.0] * 8, False),
        ([nan] * 20, False),
        ([1.0] * 8 + [nan], False),
        ([inf] * 20, True),
    ],
)
def test_one_value_in_several_rows_is_constant(
    values: list[float], expected: bool
) -> None:
    assert constant(OneValue(), table(values)) is expected


def test_once_it_has_varied_it_is_constant_no_more() -> None:
    known, rows = OneValue(), table([0.5] * 9)
    assert constant(known, rows)
    add(rows, [0.5, 0.5])
    assert constant(known, rows)
    add(rows, [0.6])
    assert not constant(known, rows)
    add(rows, [0.5] * 50)
    assert not constant(known, rows)


def test_a_log_that_rounds_to_24_bits_says_the_same() -> None:
    rounded = array("f", [1e-6])[0]
    assert rounded != 1e-6
    assert constant(OneValue(), table([1e-6] * 9), table([rounded] * 9))
    assert not constant(OneValue(), table([1e-6] * 9), table([1.1e-6] * 9))


def test_another_log_of_it_may_come_later() -> None:
    known, one = OneValue(), table([2.0] * 9)
    assert constant(known, one)
    assert constant(known, one, table([2.0]))
    assert not constant(known, one, table([2.0]), table([3.0]))


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), max_size=6), max_size=8))
def test_it_is_found_as_from_all_values_at_once(batches: list[list[float]]) -> None:
    known, rows = OneValue(), table([])
    for batch in batches:
        add(rows, batch)
        constant(known, rows)
    values = [value for batch in batches for value in batch]
    assert constant(known, rows) is (len(values) >= 8 and len(set(values)) == 1)


def test_a_run_knows_its_constants() -> None:
    run = make_run(steps=20, columns={"actor/lr": [1e-6] * 20})
    assert run.constants == {"actor/lr"}
    assert run.is_constant("actor/lr")
    assert not run.is_constant("critic/score/mean")
