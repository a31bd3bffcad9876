"""Errors that workers reported: hundreds of one kind are one entry with its count and its steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.records import Event

_MOST = 100
"""Kinds that are kept: a log with more has random words in its errors."""
_VARIES = pattern(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", re.IGNORECASE)
"""Numbers, addresses and identifiers, which differ between errors of one kind."""


class ReportedError:
    """One kind of error."""

    __slots__ = ("count", "first", "last", "since", "step")

    def __init__(self, event: Event, step: int | None) -> None:
        self.first = self.last = event
        self.count = 1
        self.since = self.step = step
        """The steps that the run had reached when it was first and last reported."""


class ReportedErrors:
    """The kinds of error of one source, in the order of first appearance."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], ReportedError] = {}

    def __iter__(self) -> Iterator[ReportedError]:
        return iter(self._kinds.values())

    def add(self, event: Event, step: int | None) -> None:
        """Count an error.

        Args:
            event: The line that reports it.
            step: The step that the run had reached, None before the first.
        """
        kind = event.actor, _VARIES.sub("#", event.text)
        known = self._kinds.get(kind)
        if known is None:
            if len(self._kinds) < _MOST:
                self._kinds[kind] = ReportedError(event, step)
            return
        known.count += 1
        known.last = event
        known.step = step

    def clear(self) -> None:
        """Forget all: the run began anew."""
        self._kinds.clear()
