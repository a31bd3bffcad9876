"""When a breach may be spoken of: a silence that depends on the numbers is asked at the time, not
with hindsight.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.health.conditions.condition import Breach

_OFTEN = 100
"""So many points of a breach are looked at one by one, so many more in every second, and so on."""


@dataclass(slots=True)
class _ExemptionLog:
    """What a silence said in the course of one breach."""

    at: int
    """Place of the point that is looked at next."""
    changes: list[tuple[int, int, bool]] = field(default_factory=list)
    """Place and step from which on the breach was excused, or was no longer."""

    def note(self, place: int, step: int, *, excused: bool) -> None:
        if not self.changes or self.changes[-1][2] != excused:
            self.changes.append((place, step, excused))


class BreachFilter:
    """Cuts breaches where a silence excused them, so that what was said at a step depends on
    nothing after it.
    """

    def __init__(self) -> None:
        self._heard: dict[int, _ExemptionLog] = {}
        """By the step at which the breach could be told."""

    def cut(
        self,
        breaches: Iterable[Breach],
        steps: Sequence[int],
        excused: Callable[[int], bool],
        cooldown: int,
    ) -> list[Breach]:
        """Return the parts of breaches that nothing excused at the time.

        Args:
            breaches: The breaches, oldest first.
            steps: Steps of the metric's points; the last point may still change.
            excused: Returns whether a silence holds at a step, by what was known then.
            cooldown: Points within which a breach that is no longer excused is the same as before.
        """
        return [
            part for breach in breaches for part in self._parts(breach, steps, excused, cooldown)
        ]

    def _parts(
        self, breach: Breach, steps: Sequence[int], excused: Callable[[int], bool], cooldown: int
    ) -> Iterator[Breach]:
        first, newest = bisect_left(steps, breach.raised), len(steps) - 1
        stop = len(steps) if breach.cleared is None else bisect_left(steps, breach.cleared)
        heard = self._heard.setdefault(breach.raised, _ExemptionLog(first))
        while heard.at < min(stop, newest):
            heard.note(heard.at, steps[heard.at], excused=excused(steps[heard.at]))
            heard.at += 1 + (heard.at - first) // _OFTEN
        if heard.at == newest < stop:
            heard = _ExemptionLog(newest, [*heard.changes])
            heard.note(newest, steps[newest], excused=excused(steps[newest]))
        return _opened(breach, heard.changes, cooldown)


def _opened(
    breach: Breach, changes: Sequence[tuple[int, int, bool]], cooldown: int
) -> Iterator[Breach]:
    """Yield the stretches of a breach in which it was not excused; a short pause makes no new
    one.
    """
    part: Breach | None = None
    closed = 0
    for place, step, excused in changes:
        if excused:
            part, closed = (part._replace(cleared=step) if part is not None else None), place
        elif part is not None and place - closed <= cooldown:
            part = part._replace(cleared=None)
        else:
            if part is not None:
                yield part
            part = breach._replace(raised=step, cleared=None)
    if part is not None:
        yield part if part.cleared is not None else part._replace(cleared=breach.cleared)
