"""Breaches on records in a row that latch: the tutorials' circuit breakers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from verl_tui.health.conditions.condition import (
    Condition,
    Spell,
    number,
)
from verl_tui.health.conditions.scale import segments
from verl_tui.health.conditions.windows import rolling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.conditions.condition import Column, HeldBreach
    from verl_tui.health.conditions.windows import Flags, Numbers


@dataclass(frozen=True)
class Streak(Condition):
    """A number of records in a row in breach; once tripped it stays so until the run is restarted.

    Records that lack the metric never come here, so they neither count nor interrupt.
    """

    threshold: float
    """What a record must exceed."""
    count: int
    """Breaches in a row that trip."""
    restarts: tuple[int, ...] = ()
    """First steps of the run's later segments: there it begins anew."""

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.count

    def seen(self, column: Column) -> int:
        """Return how many points there are since the last restart."""
        return max(
            [b - a for a, b in [*segments(column, self.restarts)][-1:]], default=0
        )

    def spells(self, column: Column) -> Iterator[Spell]:
        """Return the first streak of each segment."""
        what = f"was {self._what()} on {self.count} records in a row"
        for start, stop in segments(column, self.restarts):
            breached = self._breached(column.values[start:stop])
            tripped = rolling(breached, self.count) == self.count
            if tripped.any():
                last = start + int(tripped.argmax())
                end = stop if stop < len(column) else None
                yield Spell(last - self.count + 1, last, end, what)

    def _breached(self, values: Numbers) -> Flags:
        return values > self.threshold

    def _what(self) -> str:
        return f"above {number(self.threshold)}"

    def report(self, held: HeldBreach) -> Sequence[str]:
        """Return the message on a breach that holds, and its evidence."""
        steps, values = (
            one[held.spell.first : held.spell.raised + 1].tolist()
            for one in held.column
        )
        tripped = ", ".join(
            f"{number(value)} at step {at}"
            for at, value in zip(steps, values, strict=True)
        )
        return (
            f"circuit breaker tripped at step {steps[-1]}: {held.title} was {self._what()} "
            f"on {self.count} records in a row (steps {steps[0]} to {steps[-1]}); "
            f"last {held.newest}",
            f"{held.title}: {tripped}",
            "it stays tripped until the run is restarted",
        )


class Drops(Streak):
    """Some number of drops in a row, each beyond a share of the value before it.

    A record counts when `(last − r) > threshold × last`; where `last` is not positive, it does not
    count and so ends the row, since a share of nothing means nothing.
    """

    @property
    def needs(self) -> int:
        """Fewest points to judge."""
        return self.count + 1

    def _breached(self, values: Numbers) -> Flags:
        last = np.append(0.0, values[:-1])
        return (last > 0) & (last - values > self.threshold * last)

    def _what(self) -> str:
        return f"more than {self.threshold:.0%} below the one before"
