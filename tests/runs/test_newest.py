"""The last values of a metric are those of its series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.records import Batch, Restart, Rows, SourceStatus
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=40)


def filled(files: Sequence[Sequence[tuple[int, bool]]], *, mean: bool = False) -> Run:
    """Return a run of several files, each with rows of two sets of keys; restarts where a file goes back."""
    run = Run("run")
    for number, rows in enumerate(files):
        status = SourceStatus(f"{number}.jsonl", "verl file logger", rank=number, ordinal=number)
        before = -1
        for order, (step, tested) in enumerate(rows):
            if step < before and not mean:
                run.apply(Batch("run", status, (Restart("again"),)), 0.0)
            before = step
            keys = ("loss", "acc") if tested else ("loss",)
            record = Rows(keys, [step], [[float(order * 10 + number)]] * len(keys), [order], mean=mean)
            run.apply(Batch("run", status, (record,)), 0.0)
    return run


@given(st.lists(ROWS, max_size=3), st.integers(0, 12), st.booleans())
def test_they_are_those_of_the_series(files: list[list[tuple[int, bool]]], count: int, mean: bool) -> None:
    run = filled(files, mean=mean)
    for key in ("loss", "acc", "none"):
        told = list(run.tail(key, count))
        series = run.series(key)
        assert told == (list(series.tail(count)) if series is not None else [])
        assert list(run.tail(key, count)) == told


def test_no_series_is_made_where_steps_ascend() -> None:
    run = filled([[(step, step % 5 == 0) for step in range(1, 30)]])
    assert list(run.tail("loss", 3)) == [260.0, 270.0, 280.0]
    assert not run._series
