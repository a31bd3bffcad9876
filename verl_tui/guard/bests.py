"""Commands that the guard starts and the lines that it writes about them; one at each new best of a
run, as a trainer that saves its best checkpoint would.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeAlias

from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.checkpoints import Best, BestBy, best

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from verl_tui.runs.run import Run

EventLine = dict[str, Any]
"""One line of output: `event` is its kind, `time` its time, `run` and `run_id` whose it is."""


Process: TypeAlias = "subprocess.Popen[bytes]"
Start: TypeAlias = "Callable[[Sequence[str], Mapping[str, str]], Process]"
"""Starts a command with additional environment variables."""


def start(command: Sequence[str], facts: Mapping[str, str]) -> Process:
    """Start a command with the facts in its environment; its output goes to standard error."""
    # The user's own words are handed on as they are, through no shell.
    return subprocess.Popen(  # noqa: S603 - that is what a guard is for
        list(command),
        env={**os.environ, **facts},
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
    )


def begun(
    run: Run,
    now: float,
    argv: Sequence[str],
    facts: Mapping[str, str],
    start: Start | None,
) -> tuple[Process | None, EventLine]:
    """Start a command; return it, and the line that says so, or why it cannot be started.

    Args:
        run: The run that it is for.
        now: Seconds since the epoch.
        argv: Program and arguments.
        facts: Additional environment variables.
        start: Starts it; None to say only what would be run.
    """
    process = None
    if start is not None:
        try:
            process = start(argv, facts)
        except OSError as error:
            why = f"{argv[0]}: {(error.strerror or '').lower()}"
            return None, event("problem", now, run, message=why)
    pid = None if process is None else process.pid
    dry = start is None
    return process, event("command", now, run, argv=list(argv), pid=pid, dry_run=dry)


def variables(run: Run, facts: Mapping[str, object]) -> dict[str, str]:
    """Return facts on a run as environment variables `VERL_TUI_…`; unknown ones are empty."""
    named = {
        "RUN": run.name,
        "RUN_ID": run_id(run),
        "PATHS": os.pathsep.join(run.paths),
    }
    texts = {}
    for name, value in {**named, **facts}.items():
        text = "" if value is None else str(value)
        texts[f"VERL_TUI_{name}"] = text.replace("\0", "")
    return texts


def event(kind: str, now: float, run: Run, **more: object) -> EventLine:
    """Return one line of output."""
    time = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="milliseconds")
    return {"time": time, "event": kind, "run": run.name, "run_id": run_id(run), **more}


def done(
    running: dict[str, tuple[Run, Process]],
) -> Iterator[tuple[Run, int]]:
    """Take out the commands that have ended; yield their runs and codes."""
    for name, (run, process) in [*running.items()]:
        if (code := process.poll()) is not None:
            del running[name]
            yield run, code


class Bests:
    """Knows the best of each run so far."""

    def __init__(self, apart: float = 0.0) -> None:
        """Begin to watch; two bests of a run are told no less than so many seconds apart."""
        self._apart = apart
        self._seen: dict[tuple[str, BestBy], int] = {}
        """Revision of each run at the last look."""
        self._best: dict[tuple[str, BestBy], Best | None] = {}
        self._told: dict[str, float] = {}

    def new(
        self, run: Run, by: BestBy, now: float, *, at_once: bool = False
    ) -> tuple[Best, bool] | None:
        """Return a new best of a run, and whether it was there at the first look."""
        name = run.name, by
        soon = now - self._told.get(run.name, -math.inf) < self._apart
        if (soon and not at_once) or self._seen.get(name) == run.revision:
            return None
        self._seen[name] = run.revision
        found = best(run, by.metric, lowest=by.lowest)
        first = name not in self._best
        known = self._best.get(name)
        if found is None or not _is_better(found, known):
            self._best.setdefault(name, found)
            return None
        self._best[name] = found
        if not first:
            self._told[run.name] = now
        return found, first


class BestKeeper:
    """Knows the best of each run so far, and its command: one at a time for each run, then for the
    newest best.
    """

    def __init__(self, by: BestBy, command: Sequence[str], start: Start | None) -> None:
        """Begin to watch.

        Args:
            by: The metric, and whether less of it is better.
            command: Program and arguments; empty to only report.
            start: Starts a command; None to say only what would be run.
        """
        self._by = by
        self._command = command
        self._start = start
        self._bests = Bests()
        self._waiting: dict[str, tuple[Run, Best]] = {}
        self._running: dict[str, tuple[Run, Process]] = {}

    @property
    def busy(self) -> bool:
        """True if a command is under way, or waits for one."""
        return bool(self._running or self._waiting)

    def look(self, run: Run, now: float) -> Iterator[EventLine]:
        """Yield a new best of a run; the first look only reports the best before the guard."""
        new = self._bests.new(run, self._by, now)
        if new is None:
            return
        found, first = new
        path = None if found.checkpoint is None else found.checkpoint.path
        yield event(
            "best", now, run, metric=found.metric, key=found.key, step=found.step,
            value=found.value, path=path, before=first,
        )  # fmt: skip
        if self._command and not first:
            self._waiting[run.name] = (run, found)

    def work(self, now: float) -> Iterator[EventLine]:
        """Start waiting commands, and yield those started and ended."""
        for run, code in done(self._running):
            yield event("command-ended", now, run, code=code)
        for name, (run, found) in list(self._waiting.items()):
            if name not in self._running:
                del self._waiting[name]
                facts = best_facts(run, found)
                started, line = begun(run, now, self._command, facts, self._start)
                if started is not None:
                    self._running[name] = (run, started)
                yield line


def best_facts(run: Run, found: Best) -> dict[str, str]:
    """Return the facts on a new best for a command, as environment variables."""
    exact = found.checkpoint
    nearest = found.nearest
    return variables(
        run,
        {
            "METRIC": found.metric,
            "KEY": found.key,
            "STEP": found.step,
            "VALUE": repr(found.value),
            "PATH": None if exact is None else exact.path,
            "NEAREST_STEP": None if nearest is None else nearest.step,
            "NEAREST_PATH": None if nearest is None else nearest.path,
        },
    )


def _is_better(found: Best, known: Best | None) -> bool:
    """Return whether a best is a new and better one; a restarted run may lose its earlier best."""
    if known is None:
        return True
    higher = found.value > known.value
    alike = found.value == known.value or found.step == known.step
    return not alike and higher is not found.lowest
