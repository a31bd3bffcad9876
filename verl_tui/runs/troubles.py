"""Lines of trouble in a source: hundreds of one kind are one entry with its count and its steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.records import Event

_MOST = 300
"""Kinds that are kept: a log with more has random words in its errors."""
_VARIES = pattern(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", re.IGNORECASE)
"""Numbers, addresses and identifiers, which differ between errors of one kind."""


class Trouble:
    """One kind of line."""

    __slots__ = ("count", "first", "fresh", "last", "ranks", "since", "step")

    def __init__(self, event: Event, step: int | None) -> None:
        self.first = self.fresh = self.last = event
        """The first ever, the first since the last step that it followed, and the newest."""
        self.count = 1
        """How often, with what Ray left out as `[repeated 7x across cluster]`."""
        self.since = self.step = step
        """The steps that the run had reached when it was first and last reported."""
        self.ranks: set[int] = set()
        """The ranks that reported it since the last step."""


class Troubles:
    """The kinds of trouble of one source, in the order of first appearance."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, bool, str], Trouble] = {}

    def __iter__(self) -> Iterator[Trouble]:
        return iter(self._kinds.values())

    def add(self, event: Event, step: int | None) -> None:
        """Count a line.

        Args:
            event: The line.
            step: The step that the run had reached, None before the first.
        """
        # A driver's or raylet's place is a node, of which there are few; workers are many.
        place = "" if event.actor else event.where
        kind = event.actor or place, event.raised, _VARIES.sub("#", event.text)
        known = self._kinds.get(kind)
        if known is None:
            if not self._has_room(step):
                return
            known = self._kinds[kind] = Trouble(event, step)
        else:
            known.count += event.processes
            known.last = event
            if known.step != step:
                known.step = step
                known.fresh = event
                known.ranks = set()
        if event.rank is not None:
            known.ranks.add(event.rank)

    def _has_room(self, step: int | None) -> bool:
        """Return whether one more kind is kept; what no step came after is not given up for it."""
        if len(self._kinds) < _MOST:
            return True
        past = next(
            (kind for kind, one in self._kinds.items() if one.step != step), None
        )
        return past is not None and self._kinds.pop(past) is not None

    def clear(self) -> None:
        """Forget all: the run began anew."""
        self._kinds.clear()
