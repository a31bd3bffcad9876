"""Leaves out breaches while a rule was exempt, by the numbers known then, not in hindsight."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.health.conditions.condition import Breach

_OFTEN = 100
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
        first = at = bisect_left(steps, breach.raised)
        stop = len(steps)
        if breach.cleared is not None:
            stop = bisect_left(steps, breach.cleared)
        changes: list[tuple[int, int, bool]] = []
        while at < stop:
            exempt = is_exempt(steps[at])
            if not changes or changes[-1][2] != exempt:
                changes.append((at, steps[at], exempt))
            at += 1 + (at - first) // _OFTEN
        yield from _opened(breach, changes, cooldown)


def _opened(
    breach: Breach, changes: Sequence[tuple[int, int, bool]], cooldown: int
) -> Iterator[Breach]:
    """Yield the stretches of a breach in which it was not exempt; a short pause makes no new
    one.
    """
    part: Breach | None = None
    closed = 0
    for place, step, exempt in changes:
        if exempt:
            part = part._replace(cleared=step) if part is not None else None
            closed = place
        elif part is not None and place - closed <= cooldown:
            part = part._replace(cleared=None)
        else:
            if part is not None:
                yield part
            part = breach._replace(raised=step, cleared=None)
    if part is not None:
        yield (
            part if part.cleared is not None else part._replace(cleared=breach.cleared)
        )
