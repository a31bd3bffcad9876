"""Which metrics have had only one value."""

from __future__ import annotations

from array import array

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


def test_a_log_that_rounds_to_24_bits_says_the_same() -> None:
    rounded = array("f", [1e-6])[0]
    assert rounded != 1e-6
    assert constant([1e-6] * 9, [rounded] * 9)
    assert not constant([1e-6] * 9, [1.1e-6] * 9)


def test_a_run_knows_its_constants() -> None:
    run = make_run(steps=20, columns={"actor/lr": [1e-6] * 20})
    assert run.constants == {"actor/lr"}
    assert run.is_constant("actor/lr")
    assert not run.is_constant("critic/score/mean")
