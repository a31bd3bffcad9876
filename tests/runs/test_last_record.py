"""When a run last logged training: times that records state hold against those of files, which a
copy has anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from verl_tui.records import Batch, Dump, MetricRows, Pulse, Record, SourceStatus
from verl_tui.runs.run import Run
from verl_tui.runs.views.state import State, state
from verl_tui.times import trusted_time

if TYPE_CHECKING:
    from collections.abc import Sequence

T = 1_800_000_000.0
HOUR = 3600.0
COPIED = T + 5 * HOUR
EVENTS = SourceStatus(
    "run/events.out.tfevents.1", "tensorboard events", absolute=True, modified=COPIED
)
CONSOLE = SourceStatus("run/train.log", "verl console", modified=COPIED)


def rows(steps: Sequence[int], *, at: float | None = None) -> MetricRows:
    times = [at + step for step in steps] if at is not None else []
    return MetricRows(
        ("actor/loss",), list(steps), [[0.5] * len(steps)], list(steps), times
    )


def run_of(
    *reported: tuple[SourceStatus, Record], live: bool = False, now: float = COPIED
) -> Run:
    run = Run("r")
    for status, record in reported:
        run.apply(Batch("r", status, (record,), live), now)
    return run


def test_of_a_copied_event_file_the_records_tell() -> None:
    run = run_of((EVENTS, rows(range(20), at=T)))
    assert (run.last_record, run.dated_by_file) == (T + 19, False)
    assert state(run, COPIED) is State.ENDED


def test_they_tell_of_a_console_copied_with_it_too() -> None:
    for order in (1, -1):
        run = run_of(
            *((EVENTS, rows(range(20), at=T)), (CONSOLE, rows(range(20))))[::order]
        )
        assert (run.last_record, run.dated_by_file) == (T + 19, False)


def test_a_console_that_is_further_holds_by_its_file() -> None:
    run = run_of((EVENTS, rows(range(20), at=T)), (CONSOLE, rows(range(25))))
    assert (run.last_record, run.dated_by_file) == (COPIED, True)


def test_a_dump_of_a_further_step_holds_by_its_file() -> None:
    dumps = SourceStatus("run/rollouts/*.jsonl", "rollout dump")
    for step, reported in ((19, (T + 19, False)), (20, (COPIED, True))):
        dump = Dump(
            step,
            f"run/rollouts/{step}.jsonl",
            validation=False,
            size=9,
            modified=COPIED,
        )
        run = run_of((EVENTS, rows(range(20), at=T)), (dumps, dump))
        assert (run.last_record, run.dated_by_file) == reported


@pytest.mark.parametrize(("steps", "last"), [(20, T + 19), (21, T + 100)])
def test_lines_after_the_last_step_are_no_further_one_but_a_buffer_may_keep_one_back(
    steps: int, last: float
) -> None:
    grown = SourceStatus("run/train.log", "verl console", modified=T + 100)
    run = run_of((EVENTS, rows(range(20), at=T)), (grown, rows(range(steps))))
    assert run.last_record == last


def test_what_comes_while_we_watch_has_its_time_of_arrival() -> None:
    run = run_of((EVENTS, rows(range(20), at=T)), live=True)
    assert (run.last_record, run.dated_by_file) == (COPIED, False)


def test_a_console_whose_own_times_agree_with_its_file_is_not_dated_by_that_alone() -> (
    None
):
    run = run_of((CONSOLE, rows(range(20))))
    assert run.dated_by_file
    run.apply(Batch("r", CONSOLE, (Pulse(COPIED - 3, ""),)), COPIED)
    assert not run.dated_by_file
    assert (Run("r").last_record, Run("r").dated_by_file) == (None, False)


@pytest.mark.parametrize(
    ("stated", "absolute", "trusted"),
    [
        (T - 5 * HOUR, True, T - 5 * HOUR),
        (T - 5 * HOUR, False, T),
        (T - 50 * HOUR, False, T - 50 * HOUR),
        (T + 60, True, T),
        (12.5, True, T),
        (None, True, T),
    ],
)
def test_which_time_is_trusted(
    stated: float | None, *, absolute: bool, trusted: float
) -> None:
    assert trusted_time(stated, T, absolute=absolute) == trusted
