"""Judges many runs on all cores: runs travel to worker processes, and their verdicts come back.

A verdict depends on a run, the guide and the time alone, so that it is the same wherever it is
made. A worker that dies costs time and nothing else: its runs are judged by the caller.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from verl_tui import debug_log
from verl_tui.sources.packing import packed
from verl_tui.sources.worker_process import WorkerFailure, WorkerProcess
from verl_tui.sources.workers import most_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from verl_tui.config import Config
    from verl_tui.health.finding import Verdict
    from verl_tui.runs.run import Run

_SHARE = 20_000
"""Rows that take a worker some times as long to judge as to start."""
_BATCH = 5_000
"""Rows from which on runs travel to a worker: meanwhile they are in memory twice."""


class TravellingRun:
    """A run on its way to a worker that judges it."""

    def __init__(self, run: Run, overrides: Mapping[str, Any], now: float) -> None:
        self.name = run.name
        self._run: Run | None = run
        self._overrides = overrides
        self._now = now

    def read(self) -> tuple[tuple[Verdict | None], bool]:
        """Return the verdict, and that there is no more; forget the run, which does not travel
        back.
        """
        from verl_tui.health.judging import Judging

        run = self._run
        self._run = None
        judging = Judging(self._overrides)
        return (judging.judge(run).verdict(self._now) if run else None,), False

    def status(self) -> None:
        """Return nothing: it is no source."""


def verdicts_from_workers(
    runs: Iterable[Run], config: Config, now: float, share: int = _SHARE
) -> Iterator[tuple[str, Verdict]]:
    """Yield names of runs and their verdicts, of as many as workers judge: all or none, if nothing
    goes wrong.

    Args:
        runs: Runs of which nothing more is to come.
        config: The user's changes to the guide, and how many workers there may be.
        now: Seconds since the epoch.
        share: Rows for which one more worker is started.
    """
    sizes = {run: rows for run in runs if (rows := _rows(run))}
    total = sum(sizes.values())
    count = min(most_workers(config.workers), total // share)
    if count < 2:
        return
    guide = dict(config.guide)
    travelling = {TravellingRun(run, guide, now): rows for run, rows in sizes.items()}
    least = min(_BATCH, total // count)
    workers: list[WorkerProcess] = []
    try:
        while len(workers) < count:
            workers.append(WorkerProcess())
    except OSError as error:
        debug_log.note_error("starting a worker", error)
    try:
        yield from _verdicts(workers, _batches(travelling, least))
    finally:
        for worker in workers:
            worker.end()


def _rows(run: Run) -> int:
    tables = [state.tables.values() for state in run.sources.values()]
    return sum(len(table) for known in tables for table in known)


def _batches(
    travelling: Mapping[TravellingRun, int], least: int
) -> Iterator[Mapping[str, bytes]]:
    """Yield packed runs by name, so many that they have at least so many rows."""
    batch: dict[str, bytes] = {}
    rows = 0
    for one, size in travelling.items():
        try:
            batch[one.name] = packed(one)
        except Exception as error:  # noqa: BLE001 - it is judged by the caller
            debug_log.note_error(f"sending {one.name} to a worker", error)
            continue
        rows += size
        if rows >= least:
            yield batch
            batch = {}
            rows = 0
    if batch:
        yield batch


def _verdicts(
    workers: Iterable[WorkerProcess], batches: Iterator[Mapping[str, bytes]]
) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdicts of workers, each of which has a batch at a time."""
    idle = deque(workers)
    busy: deque[tuple[WorkerProcess, Iterable[str]]] = deque()
    while True:
        while idle and (batch := next(batches, None)):
            worker = idle.popleft()
            worker.send([*batch.values()])
            busy.append((worker, batch.keys()))
        if not busy:
            return
        worker, names = busy.popleft()
        yield from _answers(worker, names)
        if not worker.is_lost:
            idle.append(worker)


def _answers(
    worker: WorkerProcess, names: Iterable[str]
) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdicts of a worker as they come."""
    for number, name in enumerate(names):
        answer = worker.answer(number)
        if isinstance(answer, WorkerFailure):
            debug_log.note("judged without a worker", run=name, why=answer.why)
        else:
            yield name, answer.found[0]
