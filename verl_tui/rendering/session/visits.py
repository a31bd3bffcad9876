"""What has changed in a run since the user last visited it: in this session, or before it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.session.run_order import id_of
from verl_tui.rendering.text.numbers import compact
from verl_tui.times import clock_time
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.rendering.session.preferences import StateFile, UserState
    from verl_tui.rendering.session.snapshot import View

AWAY = 600.0
"""Seconds without a key after which the user has been away: heuristic."""
_MOST = 200
"""Most runs whose visits are kept, the newest."""


class Visit(NamedTuple):
    """A run as it was when the user saw it."""

    run: str
    time: float
    step: int
    findings: tuple[str, ...] = ()
    """What they are called, each with its first step."""
    reward: float | None = None


def since(before: Visit, now: Visit) -> str:
    """Say what has changed between two visits, empty where nothing has."""
    said = []
    if now.step > before.step:
        said.append(f"+{counted(now.step - before.step, 'step')}")
    elif now.step < before.step:
        said.append(f"back at step {now.step}")
    if said and before.reward is not None and now.reward is not None:
        rewards = compact(before.reward), compact(now.reward)
        said += [f"reward {' → '.join(rewards)}"] * (rewards[0] != rewards[1])
    raised = set(now.findings).difference(before.findings)
    over = set(before.findings).difference(now.findings)
    said += [counted(len(raised), "new finding")] * bool(raised)
    said += [f"{counted(len(over), 'finding')} over"] * bool(over)
    return (
        f"since {clock_time(before.time, now.time)}: {', '.join(said)}" if said else ""
    )


def _visit(view: View) -> Visit | None:
    """Return the shown run as it is now, None before it is judged."""
    run = view.run
    if not run or run.step is None or run.name not in view.monitor.verdicts:
        return None
    if view.loading or view.replay:
        return None
    series = run.present(run.indicators.get("reward"))
    found = (f"{one.id} {one.begun}" for one in view.verdict.primary)
    reward = series.values[-1] if series else None
    return Visit(id_of(run), view.now, run.step, (*found,), reward)


class Visits:
    """The user's last visit to each run."""

    def __init__(self, file: StateFile) -> None:
        """Begin with the visits that a file remembers of the sessions before."""
        self._file = file
        self._last: dict[str, Visit] = {}
        """Of this session."""

    def words(self, view: View, *, key: bool) -> str:
        """Say what has changed in the shown run when it is shown first, and at a key after a long
        time; the visit is the last one then. A replay is no news.
        """
        now = _visit(view)
        known = self._last.get(now.run) if now else None
        if not now or not (key or not known):
            return ""
        self._last[now.run] = now
        if known:
            return since(known, now) if now.time - known.time >= AWAY else ""
        for visit in self._file.state.looks:
            # it may be damaged
            with suppress(ValueError, TypeError, OverflowError, RecursionError):
                before = Visit(*json.loads(visit))
                if before.run == now.run:
                    return since(before, now)
        return ""

    def keep(self) -> None:
        """Remember the visits of this session."""
        own = [json.dumps(visit) for visit in self._last.values()]
        begins = tuple(f'["{name}", ' for name in self._last)

        def change(state: UserState) -> UserState:
            others = [one for one in state.looks if not one.startswith(begins)]
            return replace(state, looks=(*others, *own)[-_MOST:])

        if own:
            self._file.change(change)
