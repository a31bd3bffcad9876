"""The timed parts that a step's own time leaves out, found by the numbers themselves.

The parts in verl's `timing_s/step` differ by version: validation is part of it up to v0.5 and not
since. A part is excluded if the steps in which it happens are no longer than usual.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.runs.time.timers import step_timers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

LOOK_BACK = 200
"""Most steps to look back."""
_OCCASIONAL = 0.6
"""A part in fewer than this share of the steps has its own schedule: validation, checkpoints."""
_OCCASIONAL_PARTS = frozenset(
    {
        "testing",
        "validate",
        "validation",
        "eval",
        "save_checkpoint",
        "save_ckpt",
        "save",
    }
)
"""Parts that may be excluded even where every step has them."""
COMPARED = 10
"""Newest occasions that decide whether the step's own time includes a part."""


class _StepSeconds(NamedTuple):
    """Seconds of recent steps and of their parts, by step."""

    own: Mapping[int, float]
    regular: Sequence[Mapping[int, float]]
    """Parts of every step."""
    occasional: Mapping[str, Mapping[int, float]]

    def rest(self, step: int, others: Iterable[str] = ()) -> float:
        """Return a step's own time without its regular parts and these others."""
        taken = sum(seconds.get(step, 0.0) for seconds in self.regular)
        taken += sum(self.occasional[name].get(step, 0.0) for name in others)
        return self.own[step] - taken

    def usual_rest(self) -> float:
        """Return the rest of recent steps without an occasional part, 0 where there is none."""
        busy = {step for seconds in self.occasional.values() for step in seconds}
        plain = [step for step in self.own if step not in busy][-COMPARED:]
        if not plain:
            return 0.0
        return median(map(self.rest, plain))

    def includes(self, name: str, others: Sequence[str], usual: float) -> bool:
        """Return whether steps are longer than usual by at least half of this part.

        Args:
            name: The part.
            others: Occasional parts that the step's own time may include as well.
            usual: See `usual_rest`.
        """
        seconds = self.occasional[name]
        occasions = [step for step in seconds if step in self.own]
        # Steps with this part alone are the clearer case.
        with_others = set[int]().union(*[self.occasional[other] for other in others])
        alone = [step for step in occasions if step not in with_others]
        compared = (alone or occasions)[-COMPARED:]
        if not compared:
            return True
        longer = median(self.rest(step, others) for step in compared) - usual
        return longer >= median(seconds[step] for step in compared) / 2


def excluded_parts(
    own: Mapping[int, float], seconds: Mapping[str, Mapping[int, float]]
) -> set[str]:
    """Return the names of the parts that the step's own time leaves out.

    Args:
        own: Seconds of each step.
        seconds: Seconds of each part, by its name and step.
    """
    occasional = {}
    regular = []
    for name, found in seconds.items():
        if found and (name in _OCCASIONAL_PARTS or len(found) < _OCCASIONAL * len(own)):
            occasional[name] = found
        else:
            regular.append(found)
    if not occasional:
        return set()
    times = _StepSeconds(own, regular, occasional)
    usual = times.usual_rest()
    included = list(occasional)
    for name in sorted(occasional, key=lambda name: -len(occasional[name])):
        others = [other for other in included if other != name]
        if not times.includes(name, others, usual):
            included = others
    return occasional.keys() - included


def excluded_timers(run: Run) -> list[Series]:
    """Return the timers of parts that the step's own time leaves out."""
    timers = step_timers(run)
    step = run.series(timers.whole) if timers.whole is not None else None
    if step is None:
        return []
    since = first_compared(step)
    # There may be a hundred timers: those within the step need no series.
    seconds = {
        name: valid_durations(run.since(key, since))
        for name, key in timers.parts.items()
    }
    excluded = excluded_parts(valid_durations(step.since(since)), seconds)
    found = (run.series(timers.parts[name]) for name in excluded)
    return [series for series in found if series is not None]


def first_compared(step: Series) -> int:
    """Return the first of the steps by which excluded parts are decided."""
    return step.steps[max(0, len(step) - LOOK_BACK)]


def valid_durations(seconds: Mapping[int, float]) -> dict[int, float]:
    """Return the values that are durations."""
    return {step: value for step, value in seconds.items() if 0 <= value < math.inf}
