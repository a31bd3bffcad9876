"""Judges many runs on all cores: runs travel to worker processes, and their verdicts come back.

A verdict depends on a run, the guide and the time alone, so that it is the same wherever it is
made. A worker that dies costs time and nothing else: its runs are judged by the caller.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui import debug_log
from verl_tui.sources.packing import packed
from verl_tui.sources.worker_process import WorkerFailure, WorkerProcess
from verl_tui.sources.workers import most_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.config import Config
    from verl_tui.health.finding import Verdict
    from verl_tui.runs.run import Run

_SHARE = 20_000
"""Rows that take a worker some times as long to judge as to start."""
_BATCH = 40_000
"""Most rows that travel to a worker together: they are in memory twice until it ends."""


class TravellingRun:
    """A run on its way to a worker that judges it."""

    def __init__(self, run: Run, overrides: Mapping[str, Any], now: float) -> None:
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


class _Batch(NamedTuple):
    """Runs that a worker judges."""

    names: Sequence[str]
    worker: WorkerProcess


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
    workers = min(most_workers(config.workers), total // share)
    if workers < 2:
        return
    waiting = deque(_batches(sizes, min(_BATCH, total // workers)))
    working: deque[_Batch] = deque()
    try:
        while waiting or working:
            while waiting and len(working) < workers:
                working.append(_sent(waiting.popleft(), config, now))
            yield from _verdicts(working[0])
            working.popleft().worker.end()
    except OSError as error:
        debug_log.note_error("starting a worker", error)
    finally:
        for batch in working:
            batch.worker.end()


def _rows(run: Run) -> int:
    tables = [state.tables.values() for state in run.sources.values()]
    return sum(len(table) for known in tables for table in known)


def _batches(sizes: Mapping[Run, int], most: int) -> Iterator[Sequence[Run]]:
    """Yield runs that travel together, of at most so many rows if they are several."""
    batch: list[Run] = []
    rows = 0
    for run, size in sizes.items():
        if batch and rows + size > most:
            yield batch
            batch = []
            rows = 0
        batch.append(run)
        rows += size
    if batch:
        yield batch


def _sent(runs: Sequence[Run], config: Config, now: float) -> _Batch:
    """Send runs to a worker.

    Raises:
        OSError: It cannot be started.
    """
    guide = dict(config.guide)
    travelling: dict[str, bytes] = {}
    for run in runs:
        try:
            travelling[run.name] = packed(TravellingRun(run, guide, now))
        except Exception as error:  # noqa: BLE001, PERF203 - it is judged by the caller
            debug_log.note_error(f"sending {run.name} to a worker", error)
    return _Batch([*travelling], WorkerProcess([*travelling.values()]))


def _verdicts(batch: _Batch) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdicts of a worker as they come."""
    for number, name in enumerate(batch.names):
        answer = batch.worker.answer(number)
        if isinstance(answer, WorkerFailure):
            debug_log.note("judged without a worker", run=name, why=answer.why)
        else:
            yield name, answer.found[0]
