"""Runs a command at each new best of a run, as a trainer that saves its best checkpoint would."""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.guard.commands import event, variables
from verl_tui.runs.run_id import run_id
from verl_tui.runs.table import origin_of
from verl_tui.runs.views.checkpoints import best

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from verl_tui.guard.commands import EventLine, Process
    from verl_tui.runs.run import Run
    from verl_tui.runs.views.checkpoints import Best, BestBy


_LOOKED_AT = 100
"""Newest values of a source by which its digits are known."""


class _Known(NamedTuple):
    """The best of a run when it was reported."""

    best: Best
    origin: object
    """The source of its value."""
    digits: int
    """Decimals that this source writes."""


class BestKeeper:
    """Knows the best of each run so far, and its command: one at a time for each run, then for the
    newest best.
    """

    def __init__(
        self,
        by: BestBy,
        command: Sequence[str],
        start: Callable[[Sequence[str], Mapping[str, str]], Process],
        *,
        dry_run: bool = False,
    ) -> None:
        """Begin to watch.

        Args:
            by: The metric, and whether less of it is better.
            command: Program and arguments; empty to only report.
            start: Starts a command with additional environment variables.
            dry_run: Whether to say what would be run, and run nothing.
        """
        self._by = by
        self._command = command
        self._start = start
        self._dry_run = dry_run
        self._seen: dict[str, int] = {}
        """Revision of each run at the last look."""
        self._best: dict[str, _Known | None] = {}
        self._waiting: dict[str, tuple[Run, Best]] = {}
        self._running: dict[str, tuple[Run, Process]] = {}

    @property
    def busy(self) -> bool:
        """True if a command is under way, or waits for one."""
        return bool(self._running or self._waiting)

    def look(self, run: Run, now: float) -> Iterator[EventLine]:
        """Yield a new best of a run; the first look only reports the best before the guard."""
        if self._seen.get(run.name) == run.revision:
            return
        self._seen[run.name] = run.revision
        found = best(run, self._by.metric, lowest=self._by.lowest)
        known = self._best.get(run.name)
        first = run.name not in self._best
        if found is None:
            self._best[run.name] = None
            return
        present = _Known(found, *_precision(run, found))
        if known is not None and not _is_better(present, known):
            return
        self._best[run.name] = present
        path = None if found.checkpoint is None else found.checkpoint.path
        yield event(
            "best", now, run, metric=found.metric, key=found.key, step=found.step,
            value=found.value, path=path, before=first,
        )  # fmt: skip
        if self._command and not first:
            self._waiting[run.name] = (run, found)

    def work(self, now: float) -> Iterator[EventLine]:
        """Start waiting commands, and yield those started and ended."""
        for name, (run, process) in list(self._running.items()):
            code = process.poll()
            if code is not None:
                del self._running[name]
                yield event("command-ended", now, run, code=code)
        for name, (run, found) in list(self._waiting.items()):
            if name not in self._running:
                del self._waiting[name]
                yield self._begin(run, found, now)

    def _begin(self, run: Run, found: Best, now: float) -> EventLine:
        argv = list(self._command)
        if self._dry_run:
            return event("command", now, run, argv=argv, pid=None, dry_run=True)
        try:
            process = self._start(argv, best_facts(run, found))
        except OSError as error:
            why = (error.strerror or "").lower()
            return event("problem", now, run, message=f"{argv[0]}: {why}")
        self._running[run.name] = (run, process)
        return event("command", now, run, argv=argv, pid=process.pid, dry_run=False)


def best_facts(run: Run, found: Best) -> dict[str, str]:
    """Return the facts on a new best for a command, as environment variables."""
    exact = found.checkpoint
    nearest = found.nearest
    return variables(
        {
            "RUN": run.name,
            "RUN_ID": run_id(run),
            "PATHS": os.pathsep.join(run.paths),
            "METRIC": found.metric,
            "KEY": found.key,
            "STEP": found.step,
            "VALUE": repr(found.value),
            "PATH": None if exact is None else exact.path,
            "NEAREST_STEP": None if nearest is None else nearest.step,
            "NEAREST_PATH": None if nearest is None else nearest.path,
        }
    )


def _precision(run: Run, found: Best) -> tuple[object, int]:
    """Return the source that a best is from, and the decimals of the values that it writes."""
    series = run.series(found.key)
    source = None
    if series is not None:
        at = bisect_left(series.steps, found.step)
        source = origin_of(series.orders[at])
    written = [found.value]
    for state in run.sources.values():
        if (state.status.rank, state.status.ordinal) == source:
            for table in state.tables.values():
                if found.key in table.keys:
                    column = table.columns[table.keys.index(found.key)]
                    written += column[-_LOOKED_AT:]
    return source, max(map(_decimals, filter(math.isfinite, written)))


def _decimals(value: float) -> int:
    exponent = Decimal(repr(value)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _is_better(present: _Known, known: _Known) -> bool:
    """Return whether a best is a new and better one, and not the same in the digits of another
    source; a restarted run may lose its earlier best.
    """
    found, before = present.best, known.best
    if present.origin == known.origin:
        alike = found.value == before.value
    else:
        digits = min(present.digits, known.digits)
        alike = round(found.value, digits) == round(before.value, digits)
    higher = found.value > before.value
    return found.step != before.step and higher is not found.lowest and not alike
