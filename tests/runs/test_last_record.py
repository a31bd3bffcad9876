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


COPY = (EVENTS, rows(range(20), at=T))
GROWN = SourceStatus("run/train.log", "verl console", modified=T + 100)
DUMPS = SourceStatus("run/rollouts/*.jsonl", "rollout dump")
DUMP = Dump(19, "run/rollouts/x.jsonl", validation=False, size=9, modified=COPIED)


@pytest.mark.parametrize(
    ("reported", "last", "by_file"),
    [
        # of a copied event file the records tell, of a console copied with it too
        ([COPY], T + 19, False),
        ([COPY, (CONSOLE, rows(range(20)))], T + 19, False),
        ([(CONSOLE, rows(range(20))), COPY], T + 19, False),
        # a console, or a dump, that is further holds by its file
        ([COPY, (CONSOLE, rows(range(25)))], COPIED, True),
        ([COPY, (DUMPS, DUMP)], T + 19, False),
        ([COPY, (DUMPS, DUMP._replace(step=20))], COPIED, True),
        # lines after the last step are no further one, but a buffer may keep one back
        ([COPY, (GROWN, rows(range(20)))], T + 19, False),
        ([COPY, (GROWN, rows(range(21)))], T + 100, True),
        # rows come together by their keys: those of the newest step may come first
        ([(EVENTS, rows([20], at=T)), COPY], T + 20, False),
        ([], None, False),
    ],
)
def test_the_newest_record(reported, last, by_file):
    run = run_of(*reported)
    assert (run.last_record, run.dated_by_file) == (last, by_file)
    if last == T + 19:
        assert state(run, COPIED) is State.ENDED


def test_what_comes_while_we_watch_has_its_time_of_arrival():
    run = run_of((EVENTS, rows(range(20), at=T)), live=True)
    assert (run.last_record, run.dated_by_file) == (COPIED, False)


def test_a_console_whose_own_times_agree_with_its_file_is_not_dated_by_that_alone():
    run = run_of((CONSOLE, rows(range(20))))
    assert run.dated_by_file
    run.apply(Batch("r", CONSOLE, (Pulse(COPIED - 3, ""),)), COPIED)
    assert not run.dated_by_file


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
def test_which_time_is_trusted(stated, *, absolute, trusted):
    assert trusted_time(stated, T, absolute=absolute) == trusted
