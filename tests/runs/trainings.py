"""Runs made of numbers, for the tests of what is estimated from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.records import (
    Batch,
    MetricRows,
    Progress,
    Restart,
    Settings,
    SourceStatus,
)
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STATUS = SourceStatus(path="train.log", format="verl console", modified=0.0)


def training(
    columns: Mapping[str, Sequence[float]] | None = None,
    *,
    steps: Sequence[int] | None = None,
    total: int | None = None,
    times: Sequence[float] = (),
    settings: Mapping[str, Any] | None = None,
    **rare: Mapping[int, float],
) -> Run:
    """Return a run with these columns.

    Args:
        columns: Metrics, a value for each step.
        steps: The steps, 1, 2 … unless given.
        total: Steps of the whole run.
        times: When each step was written.
        settings: As the console prints them.
        rare: Timers (`testing`, `save_checkpoint`) that only some steps have.
    """
    run = Run("r")
    if settings:
        state(run, "console", **settings)
    columns = columns or {}
    count = len(next(iter(columns.values()), ()))
    at = list(steps) if steps is not None else list(range(1, count + 1))
    if count:
        values = [list(column) for column in columns.values()]
        put(run, MetricRows(tuple(columns), at, values, range(count), times))
    for name, taken in ((name, taken) for name, taken in rare.items() if taken):
        put(
            run,
            MetricRows(
                (f"timing_s/{name}",),
                list(taken),
                [list(taken.values())],
                range(len(taken)),
            ),
        )
    if total is not None:
        put(run, Progress(None, total))
    return run


def again(run: Run, columns: Mapping[str, Sequence[float]]) -> Run:
    """Have the run start over from step 1."""
    at = range(1, len(next(iter(columns.values()))) + 1)
    put(
        run,
        Restart("steps went back"),
        MetricRows(
            tuple(columns), at, list(columns.values()), [10_000 + n for n in at]
        ),
    )
    return run


def put(run: Run, *records: Any) -> None:
    """Have the run take in records."""
    run.apply(Batch("r", STATUS, records), 0.0)


def state(run: Run, origin: str, /, **values: Any) -> None:
    """Have a source state settings; `__` stands for a dot."""
    put(
        run,
        Settings(
            {key.replace("__", "."): value for key, value in values.items()}, origin
        ),
    )
