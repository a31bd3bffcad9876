"""Leaves out breaches while a rule was exempt, by the numbers known then, not in hindsight."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.health.conditions.condition import Breach

_OFTEN = 30
"""The first points of a breach are checked one by one, as many again at every second, and so on."""


def without_exempt(
    breaches: Iterable[Breach],
    steps: Sequence[int],
    is_exempt: Callable[[int], bool],
    cooldown: int,
) -> Iterator[Breach]:
    """Yield the parts of breaches in which the rule was not exempt.

    Args:
        breaches: The breaches, oldest first.
        steps: Steps of the metric's points.
        is_exempt: Returns whether the rule is exempt at a step, by what was known then.
        cooldown: Points within which a breach that is no longer exempt is the same as before.
    """
    for breach in breaches:
        parts: list[Breach] = []
        paused = 0
        for at in _looked_at(breach, steps):
            is_open = bool(parts) and parts[-1].cleared is None
            if is_exempt(steps[at]) is not is_open:
                continue
            if is_open:
                paused = at
                parts[-1] = parts[-1]._replace(cleared=steps[at])
            elif parts and at - paused <= cooldown:
                parts[-1] = parts[-1]._replace(cleared=None)
            else:
                parts.append(breach._replace(raised=steps[at], cleared=None))
        for part in parts:
            end = breach.cleared if part.cleared is None else part.cleared
            yield part._replace(cleared=end)


def _looked_at(breach: Breach, steps: Sequence[int]) -> Iterator[int]:
    first = at = bisect_left(steps, breach.raised)
    stop = len(steps)
    if breach.cleared is not None:
        stop = bisect_left(steps, breach.cleared)
    while at < stop:
        yield at
        at += 1 + (at - first) // _OFTEN
