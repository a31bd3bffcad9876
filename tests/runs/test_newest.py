"""The last values of a metric are those of its series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.records import Batch, MetricRows, Restart, SourceStatus
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=40)


def filled(files: Sequence[Sequence[tuple[int, bool]]], *, mean: bool = False) -> Run:
    """Return a run of several files, each with rows of two sets of keys; restarts where a file goes
    back.
    """
    run = Run("run")
    for number, rows in enumerate(files):
        status = SourceStatus(
            f"{number}.jsonl", "verl file logger", rank=number, ordinal=number
        )
        before = -1
        for order, (step, tested) in enumerate(rows):
            if step < before and not mean:
                run.apply(Batch("run", status, (Restart("again"),)), 0.0)
            before = step
            keys = ("loss", "acc") if tested else ("loss",)
            record = MetricRows(
                keys,
                [step],
                [[float(order * 10 + number)]] * len(keys),
                [order],
                mean=mean,
            )
            run.apply(Batch("run", status, (record,)), 0.0)
    return run


@given(st.lists(ROWS, max_size=3), st.integers(0, 12), st.booleans())
def test_they_are_those_of_the_series(
    files: list[list[tuple[int, bool]]], count: int, mean: bool
) -> None:
    run = filled(files, mean=mean)
    for key in ("loss", "acc", "none"):
        values = list(run.tail(key, count))
        series = run.present(key)
        assert values == (list(series.tail(count)) if series is not None else [])
        assert list(run.tail(key, count)) == values


@given(st.lists(ROWS, max_size=3), st.integers(0, 31), st.booleans())
def test_those_since_a_step_are_those_of_the_series(
    files: list[list[tuple[int, bool]]], step: int, mean: bool
) -> None:
    run = filled(files, mean=mean)
    for key in ("loss", "acc", "none"):
        values = list(run.since(key, step).items())
        series = run.series(key)
        assert values == (
            list(series.since(step).items()) if series is not None else []
        )
        assert list(run.since(key, step).items()) == values


def test_after_a_restart_they_are_of_the_newest_segment() -> None:
    run = filled([[(step, step == 9) for step in (*range(1, 10), *range(4, 7))]])
    assert (run.step, run.end) == (6, 6)
    assert list(run.tail("loss", 4)) == [20.0, 90.0, 100.0, 110.0]
    assert (list(run.tail("acc", 1)), run.present("acc")) == ([], None)
    series = run.series("loss")
    assert series is not None
    assert list(run.tail("loss", 4)) == [20.0, 90.0, 100.0, 110.0], (
        "the same from a series"
    )
    assert (series.last, len(series)) == ((9, 80.0), 9), "charts keep what was"
