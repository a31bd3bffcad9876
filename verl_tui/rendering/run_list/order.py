"""Order and filter of the run list."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from verl_tui.indicators import factor
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from verl_tui.runs.run import Run

ORDERS = ("as found", "state", "name", "reward", "activity")
"""Orders of the list."""
_STATES = tuple(
    getattr(State, name)
    for name in ("CRASHED", "STALLED", "RUNNING", "WAITING", "UNKNOWN", "ENDED", "FINISHED")
)
"""States from those that need attention to those that are over."""
_DIGITS = re.compile(r"(\d+)")


def ordered(runs: Iterable[Run], order: str, now: float) -> list[Run]:
    """Return runs in an order of `ORDERS`; equal ones stay in the order found."""
    keys: dict[str, Callable[[Run], Any]] = {
        "state": lambda run: _STATES.index(state(run, now)),
        "name": lambda run: _natural(run.name),
        "reward": lambda run: -_reward(run),
        "activity": lambda run: -(run.last_record or 0.0),
    }
    return sorted(runs, key=keys[order]) if order in keys else list(runs)


def matching(runs: Iterable[Run], wanted: str) -> list[Run]:
    """Return the runs whose name contains a text; all if none does, as it then filters metrics."""
    runs = list(runs)
    wanted = wanted.casefold()
    return [run for run in runs if wanted in run.name.casefold()] or runs


def _natural(name: str) -> list[tuple[int, int | str]]:
    """Return a sort key that puts `run-2` before `run-10`."""
    parts = _DIGITS.split(name.casefold())
    return [(0, int(part[:18])) if at % 2 else (1, part) for at, part in enumerate(parts)]


def _reward(run: Run) -> float:
    """Return the newest finite reward, minus infinity without one."""
    series = run.present(run.indicators.get("reward"))
    point = series.last_finite if series is not None else None
    return (
        -math.inf if series is None or point is None else point.value * factor("reward", series.key)
    )
