"""Which metrics have had only one value."""

from __future__ import annotations

from array import array
from math import inf, nan

import pytest
from run_views import make_run

from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.runs.run import Run


def add(run: Run, values: list[float], path: str = "a") -> None:
    rows = MetricRows(("m",), [*range(len(values))], [values], [*range(len(values))])
    run.apply(Batch("r", SourceStatus(path, "verl"), (rows,)), 0.0)


def constant(*logs: list[float]) -> bool:
    run = Run("r")
    for number, values in enumerate(logs):
        add(run, values, f"{number}.log")
    return "m" in run.constants


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1e-6] * 8, True),
        ([0.0] * 300, True),
        ([1e-6] * 7, False),
        ([1.0] * 8 + [1.1] + [1.0] * 8, False),
        ([nan] * 20, False),
        ([1.0] * 8 + [nan], False),
        ([inf] * 20, True),
    ],
)
def test_one_value_in_several_rows_is_constant(
    values: list[float], expected: bool
) -> None:
    assert constant(values) is expected


def test_once_it_has_varied_it_is_constant_no_more() -> None:
    run = Run("r")
    for values, expected in (
        ([0.5] * 9, True),
        ([0.5, 0.5], True),
        ([0.6], False),
        ([0.5] * 50, False),
    ):
        add(run, values)
        assert ("m" in run.constants) is expected


def test_a_log_that_rounds_to_24_bits_says_the_same() -> None:
    rounded = array("f", [1e-6])[0]
    assert rounded != 1e-6
    assert constant([1e-6] * 9, [rounded] * 9)
    assert not constant([1e-6] * 9, [1.1e-6] * 9)


def test_another_log_of_it_may_say_otherwise() -> None:
    assert constant([2.0] * 9, [2.0])
    assert not constant([2.0] * 9, [2.0], [3.0])


def test_a_run_knows_its_constants() -> None:
    run = make_run(steps=20, columns={"actor/lr": [1e-6] * 20})
    assert run.constants == {"actor/lr"}
    assert run.is_constant("actor/lr")
    assert not run.is_constant("critic/score/mean")
