"""Lines of trouble in a source: hundreds of one kind are one entry with its count and its steps."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.records import Event

_MOST = 300
"""Kinds that are kept: a log with more has random words in its errors."""
_MOST_MARKS = 120
"""Steps whose counts are kept of each kind."""
_VARIES = pattern(
    r"0x[0-9a-f]+|\b[0-9a-f]{4,}(?:-[0-9a-f]{4,})+\b|\b[0-9a-f]{8,}\b|\d+",
    re.IGNORECASE,
)
"""Numbers, addresses and identifiers, which differ between errors of one kind."""


class Trouble:
    """One kind of line."""

    __slots__ = (
        *("count", "first", "form", "fresh", "last", "marks", "ranks", "since", "step"),
    )

    def __init__(self, event: Event, step: int | None, form: str) -> None:
        self.form = form
        """Its text, with blanks for what varies."""
        self.marks: list[tuple[int, int]] = []
        """How many there were up to and with a step that the run had reached; the earlier ones
        are thinned out.
        """
        self.first = self.fresh = self.last = event
        """The first ever, the first since the last step that it followed, and the newest."""
        self.count = 0
        """How often, with what Ray left out as `[repeated 7x across cluster]`."""
        self.since = self.step = step
        """The steps that the run had reached when it was first and last reported."""
        self.ranks: set[int] = set()
        """The ranks that reported it since the last step."""
        self.add(event, step)

    def add(self, event: Event, step: int | None) -> None:
        """Count a line, which the run printed behind a step."""
        self.count += event.times
        self.last = event
        if self.step != step:
            self.step = step
            self.fresh = event
            self.ranks = set()
        if event.rank is not None:
            self.ranks.add(event.rank)
        at = -1 if step is None else step
        if self.marks and self.marks[-1][0] == at:
            self.marks.pop()
        elif len(self.marks) >= _MOST_MARKS:
            self.marks[: _MOST_MARKS // 2] = self.marks[: _MOST_MARKS // 2 : 2]
        self.marks.append((at, self.count))

    @property
    def of_worker(self) -> bool:
        """True for the exception of a worker."""
        return bool(self.first.actor) and self.first.raised

    def until(self, step: int) -> int:
        """Return how many there were before a step's own figures."""
        at = bisect_left(self.marks, (step,))
        return self.marks[at - 1][1] if at else 0


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
        form = _form(event.text)
        kind = event.actor or place, event.raised, form
        known = self._kinds.get(kind)
        if known is None:
            if not self._has_room(step):
                return
            self._kinds[kind] = Trouble(event, step, form)
        else:
            known.add(event, step)

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


@lru_cache(1024)
def _form(text: str) -> str:
    """Return a line with blanks for what varies; thousands may have the same text."""
    return _VARIES.sub("#", text)
