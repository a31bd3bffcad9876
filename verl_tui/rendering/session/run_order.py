"""Which runs are listed and in which order, which all screens follow, and which are selected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from verl_tui.health.finding import Severity
from verl_tui.indicators import factor
from verl_tui.patterns import pattern
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from verl_tui.health.finding import Verdict
    from verl_tui.monitor import Monitor
    from verl_tui.runs.run import Run

ORDERS = ("as found", "state", "name", "reward", "activity")
"""Orders of the list."""
_STATES = (
    State.CRASHED,
    State.STALLED,
    State.RUNNING,
    State.WAITING,
    State.UNKNOWN,
    State.ENDED,
    State.FINISHED,
    State.NO_TRAINING,
)
"""States from those that need attention to those that are over."""
_TOGETHER = 60.0
"""Seconds within which files were written at about the same time: heuristic, a step or a copy."""
_DIGITS = pattern(r"(\d+)")


@dataclass
class RunListing:
    """Which runs are listed, and in which order."""

    order: str = ORDERS[0]
    filter: str = ""
    """Lists only the runs whose name contains this in any case; all where none does."""

    def runs(self, known: Iterable[Run], now: float) -> list[Run]:
        """Return the runs that the filter leaves, in their order."""
        return ordered(matching(known, self.filter), self.order, now)

    def next_order(self) -> None:
        """Sort by the next of `ORDERS`."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]


def ordered(runs: Iterable[Run], order: str, now: float) -> list[Run]:
    """Return runs in an order of `ORDERS`; equal ones stay in the order found, and those that are
    no training come last.
    """
    keys: dict[str, Callable[[Run], Any]] = {
        "state": lambda run: _STATES.index(state(run, now)),
        "name": lambda run: _natural(run.name),
        "reward": lambda run: -_reward(run),
        "activity": lambda run: -(run.last_record or 0.0),
    }
    listed = sorted(runs, key=keys[order]) if order in keys else list(runs)
    none = State.NO_TRAINING
    return sorted(listed, key=lambda run: run.step is None and state(run, now) is none)


def first_to_show(monitor: Monitor, now: float) -> str | None:
    """Return the name of the run that needs a look first: with a critical finding, then the newest
    written; of those written at about the same time the first that was found.
    """
    known = list(monitor.runs.values())
    runs = (
        [run for run in known if _is_critical(monitor.verdicts.get(run.name))]
        or [run for run in known if run.step is not None]
        or ordered(known, ORDERS[0], now)
    )
    newest = max(map(_written, runs), default=0.0)
    named = (run.name for run in runs if _written(run) >= newest - _TOGETHER)
    return next(named, None)


def _written(run: Run) -> float:
    """Return when a run was last written to, 0 where that is unknown."""
    return run.modified or run.last_record or 0.0


def _is_critical(verdict: Verdict | None) -> bool:
    found = verdict.primary if verdict is not None else ()
    return any(one.severity is Severity.CRITICAL for one in found)


def matching(runs: Iterable[Run], wanted: str) -> list[Run]:
    """Return the runs whose name contains a text; all if none does, as it then filters metrics."""
    runs = list(runs)
    return named_like(runs, wanted) or runs


def named_like(runs: Iterable[Run], wanted: str) -> list[Run]:
    """Return the runs whose name contains a text, in any case."""
    wanted = wanted.casefold()
    return [run for run in runs if wanted in run.name.casefold()]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts `run-2` before `run-10`."""
    parts = enumerate(_DIGITS.split(name.casefold()))
    return [(int(part[:18]), "") if at % 2 else (0, part) for at, part in parts]


def _reward(run: Run) -> float:
    """Return the newest finite reward, minus infinity without one."""
    series = run.present(run.indicators.get("reward"))
    point = series.last_finite if series is not None else None
    if series is None or point is None:
        return -math.inf
    return point.value * factor("reward", series.key)


# -- selected runs ---------------------------------------------------------------------------------

LETTERS = "ABCDEF"
"""Letters that mark selected runs beside their colours; one for each that can be selected."""
_PART = pattern(r"(?<![^\W_])(?:[^\W_]*\d[eE]-)?[^\W_]*$")
"""The last word of a shared start, which may be incomplete; `lr1e-6` is one word."""


class Selection:
    """Selected runs in places, which decide letter and colour."""

    def __init__(self) -> None:
        self.revision = 0
        """Grows with every change."""
        self.baseline: str | None = None
        """The run that others are compared with, None for the first one."""
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def place(self, name: str) -> int | None:
        """Return the place of a run, None if it is not selected."""
        return self._places.get(name)

    def names(self, known: Container[str]) -> list[str]:
        """Return the selected runs that are known, in the order of their places."""
        found = (name for name in self._places if name in known)
        return sorted(found, key=self._places.__getitem__)

    def toggle(self, name: str) -> bool:
        """Select or deselect a run; return False if all places are taken."""
        if self._places.pop(name, None) is None:
            free = {*range(len(LETTERS))}.difference(self._places.values())
            if not free:
                return False
            self._places[name] = min(free)
        self.revision += 1
        return True


def without_shared_start(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them start with."""
    if len(set(names)) < 2:
        return list(names)
    start = commonprefix(names)  # noqa: RUF071 - of letters is what is wanted
    start = _PART.sub("", start)
    if start.rfind("(") > start.rfind(")"):
        start = start[: start.rindex("(")]  # keep brackets in pairs
    return [name[len(start) :] or name for name in names]
