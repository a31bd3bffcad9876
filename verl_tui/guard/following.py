"""Follows runs without a screen and looks at each again and again, for the guard and for whoever
tells what happens; what is told, a line each, and which bests are new.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeAlias

from verl_tui import debug_log
from verl_tui.given_files import is_there
from verl_tui.reading import refreshes
from verl_tui.runs.run_id import run_id
from verl_tui.runs.views.checkpoints import Best, BestBy, best
from verl_tui.runs.views.signs_of_life import unattended
from verl_tui.runs.views.state import State, patience, state, waited
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run

ABSENT = 10
"""Looks in a row without its log after which a run is gone: one that is rotated is away shortly."""
_SETTLED = 5.0
"""Seconds without a write from which on an end is one: heuristic."""
_FAILED = {"state": State.UNKNOWN.value, "step": None, "next": "look at it yourself"}
OVER = frozenset({State.FINISHED, State.CRASHED, State.ENDED})
EventLine = dict[str, Any]
"""One line of output: `event` is its kind, `time` its time, `run` and `run_id` whose it is."""
EventLines: TypeAlias = "Iterator[EventLine]"
"""What happens, as it comes."""


def event(kind: str, now: float, run: Run, **more: object) -> EventLine:
    """Return one line of output."""
    time = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="milliseconds")
    return {"time": time, "event": kind, "run": run.name, "run_id": run_id(run), **more}


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
        known = self._best.setdefault(name, found)
        if found is None or not (first or _is_better(found, known)):
            return None
        self._best[name] = found
        if not first:
            self._told[run.name] = now
        return found, first


def _is_better(found: Best, known: Best | None) -> bool:
    """Return whether a best is a new and better one; a restarted run may lose its earlier best."""
    if known is None:
        return True
    higher = found.value > known.value
    alike = found.value == known.value or found.step == known.step
    return not alike and higher is not found.lowest


def is_over(run: Run, now: float) -> bool:
    """Return whether a run has ended: a log without a writer on this host may be a copy that goes
    on with its next piece, and the last lines of a crash may say what they are about.
    """
    may_go_on = unattended(run) and (waited(run, now) or 0.0) <= patience(run)
    is_written = 0 <= now - (run.modified or 0.0) < _SETTLED
    return state(run, now) in OVER and not may_go_on and not is_written


def is_gone(run: Run) -> bool:
    """Return whether all logs of a run are missing now."""
    logs = [one for one in run.statuses if one.records and one.path.startswith("/")]
    return bool(logs) and all(one.problem and not is_there(one.path) for one in logs)


class RunFollower:
    """Looks at all runs; an error of ours is reported, once, and costs no other run."""

    def __init__(self, monitor: Monitor) -> None:
        """Begin to watch what the monitor reads."""
        self.monitor = monitor
        self._states: dict[str, State] = {}
        self._over: set[str] = set()
        """The runs that have ended or were stopped."""
        self._failures: dict[str, str] = {}
        """Why a run could not be looked at when that was last tried."""

    @property
    def done(self) -> bool:
        """True if every run has ended or was stopped; what is no training is not waited for."""
        known = self._states.items()
        none = {name for name, one in known if one is State.NO_TRAINING}
        return bool(self._over) and self._over | none >= self.monitor.runs.keys()

    def tick(self, now: float) -> EventLines:
        """Judge, act, and yield what has happened.

        Args:
            now: Seconds since the epoch.
        """
        self.monitor.judge(now)
        for run in list(self.monitor.runs.values()):
            try:
                yield from self.look(run, now)
            except Exception as error:  # noqa: BLE001, PERF203 - a net at the border
                why = f"cannot be guarded: {type(error).__name__}: {error}"
                if self._failures.get(run.name) != why:
                    self._failures[run.name] = why
                    debug_log.note_error(f"guarding {run.name}", error)
                    yield event(
                        "unguarded", now, run, message=one_line(why, 200), **_FAILED
                    )

    def look(self, run: Run, now: float) -> EventLines:
        """Act on one run, and yield what has happened to it."""
        raise NotImplementedError


def follow(
    specs: Sequence[str],
    follower: RunFollower,
    stop: Callable[[], object],
) -> Iterator[tuple[float, EventLines]]:
    """Yield each look until every run has ended, or it is stopped: when it is, and what has
    happened, which is found out as it is taken.

    Args:
        specs: Paths, directories and globs; runs that appear later are watched, too.
        follower: Looks at the runs.
        stop: Says whether to end.
    """
    monitor = follower.monitor
    with closing(refreshes(specs, monitor, clock=time.time, stop=stop)) as following:
        for _ in following:
            now = time.time()
            yield now, follower.tick(now)
            if follower.done:
                break
