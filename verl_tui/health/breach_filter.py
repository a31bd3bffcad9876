"""Leaves out breaches while a rule was exempt, by the numbers known then, not in hindsight."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from verl_tui.health.conditions.condition import Breach

_OFTEN = 100
"""The first points of a breach are checked one by one, as many again at every second, and so on."""


@dataclass(slots=True)
class _ExemptionLog:
    """The steps of one breach at which its rule was exempt."""

    at: int
    """Place of the point that is checked next."""
    changes: list[tuple[int, int, bool]] = field(default_factory=list)
    """Place and step from which on the breach was exempt, or was no longer."""

    def note(self, place: int, step: int, *, exempt: bool) -> None:
        if not self.changes or self.changes[-1][2] != exempt:
            self.changes.append((place, step, exempt))


class BreachFilter:
    """Cuts breaches where the rule was exempt; the past never depends on later points."""

    def __init__(self) -> None:
        self._logs: dict[int, _ExemptionLog] = {}
        """By the step at which the breach was certain."""

    def cut(
        self,
        breaches: Iterable[Breach],
        steps: Sequence[int],
        exempt: Callable[[int], bool],
        cooldown: int,
    ) -> list[Breach]:
        """Return the parts of breaches in which the rule was not exempt.

        Args:
            breaches: The breaches, oldest first.
            steps: Steps of the metric's points; the last point may still change.
            exempt: Returns whether the rule is exempt at a step, by what was known then.
            cooldown: Points within which a breach that is no longer exempt is the same as before.
        """
        return [
            part
            for breach in breaches
            for part in self._parts(breach, steps, exempt, cooldown)
        ]

    def _parts(
        self,
        breach: Breach,
        steps: Sequence[int],
        exempt: Callable[[int], bool],
        cooldown: int,
    ) -> Iterator[Breach]:
        first = bisect_left(steps, breach.raised)
        newest = len(steps) - 1
        stop = (
            len(steps) if breach.cleared is None else bisect_left(steps, breach.cleared)
        )
        log = self._logs.setdefault(breach.raised, _ExemptionLog(first))
        while log.at < min(stop, newest):
            log.note(log.at, steps[log.at], exempt=exempt(steps[log.at]))
            log.at += 1 + (log.at - first) // _OFTEN
        if log.at == newest < stop:
            log = _ExemptionLog(newest, [*log.changes])
            log.note(newest, steps[newest], exempt=exempt(steps[newest]))
        return _opened(breach, log.changes, cooldown)


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
