"""Wait until a condition holds for a run: only what is appended is read meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from verl_tui.answers.run_reading import Reading
from verl_tui.comparison.run_columns import Awaited, awaited, unknown
from verl_tui.given_files import NothingError, UsageError
from verl_tui.guard import ABSENT, is_gone, is_over
from verl_tui.health.finding import Moment
from verl_tui.monitor import Monitor
from verl_tui.reading import refreshes
from verl_tui.runs.run import Run
from verl_tui.runs.run_id import find_run
from verl_tui.runs.views.state import State, state, state_words
from verl_tui.words import nearest

if TYPE_CHECKING:
    from verl_tui.config import Config


class TooLateError(UsageError):
    """The time is over, and the condition does not hold; the text is one sentence."""

    code = 4


class NeverError(UsageError):
    """The condition can no longer hold, or never could; the text is one sentence."""

    code = 5


def waited_for(
    specs: Sequence[str],
    name: str | None,
    condition: str,
    config: Config,
    *,
    timeout: float | None,
    unread: Callable[[], object],
    say: Callable[[str], object],
) -> Reading:
    """Return a run as it is when a condition holds.

    Args:
        specs: Paths.
        name: The run, None where there is only one.
        condition: See `awaited`.
        config: The user's configuration.
        timeout: Seconds after which to give up, None for never.
        unread: Says whether nobody waits for the answer any more.
        say: Takes a sentence on what is not there yet.

    Raises:
        UsageError: It cannot be read, there is no such run, it can never hold, or it is too late.
    """
    monitor = Monitor(config)
    _check_names(condition, monitor)
    end = inf if timeout is None else monotonic() + timeout
    words, missing, told = "no run could be read", 0, set[str]()

    def ends() -> bool:
        awaits = monitor.runs or monitor.waiting or monitor.is_loading
        if monitor.problems and not awaits:
            raise NothingError("; ".join(monitor.problems))
        return bool(unread()) or monotonic() > end

    for _ in refreshes(specs, monitor, clock=time.time, stop=ends):
        now = time.time()
        monitor.judge(now)
        if name not in monitor.runs:
            # by name alone, as where nothing is awaited
            known = [*map(Run, monitor.runs)]
            name = find_run(known, name, monitor.sentences).name
        run, at = monitor.runs[name], Moment(now, monitor.verdicts)
        found = awaited(condition, run, at)
        if found.holds:
            spent = sum(status.bytes_read for status in run.statuses)
            return Reading(run, spent, monitor.sentences)
        missing = missing + 1 if is_gone(run) else 0
        words = _refuse(run, condition, found, now, gone=missing > ABSENT)
        for column in {*found.lacking} - told:
            if unlogged := unknown(column, [run], at):
                say(f"{run.name}: {unlogged}; it is waited for")
        told.update(found.lacking)
    said = (*monitor.sentences * (not monitor.runs), f"{words} within {timeout:g} s")
    raise TooLateError("; ".join(said))


def _check_names(condition: str, monitor: Monitor) -> None:
    """Refuse a condition that cannot be read, and states and findings that do not exist."""
    words = {
        "state": [*(one.value for one in State), "stopped"],
        "finding": [rule.id for rule in monitor.guide.rules],
    }
    try:
        asked = awaited(condition, Run(""), Moment(0.0, {})).asked
    except ValueError as error:
        raise UsageError(f"--wait: {error}") from None
    for column, wanted in asked:
        known = words.get(column, [wanted])
        if not any(fnmatchcase(one.casefold(), wanted.casefold()) for one in known):
            hint = nearest(wanted, dict.fromkeys(known), cutoff=0.5)
            said = f"--wait: no {column} is called {wanted}"
            raise NeverError("; ".join(filter(None, (said, hint))))


def _refuse(run: Run, condition: str, found: Awaited, now: float, *, gone: bool) -> str:
    """Refuse to wait where nothing is to come; else return that it does not hold yet."""
    name, current = run.name, state(run, now)
    if gone or current is State.NO_TRAINING:
        why = "its files were deleted or moved away" if gone else "it is no training"
        raise NothingError(f"{name}: {why}")
    step = "without a step" if run.step is None else f"at step {run.step}"
    words = f"{name}, {state_words(run, current)} {step}, did not meet {condition}"
    if is_over(run, now):
        raise NeverError(f"{words}, and has ended")
    if not found.may:
        raise NeverError(f"{words}, and never will: its last step is {run.total_steps}")
    return words
