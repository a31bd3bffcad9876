"""Errors that workers reported: hundreds of one kind are one trouble, with its count and its
steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.records import Event
    from verl_tui.runs.run import Run

_MOST = 100
"""Kinds that are kept: a log with more has random words in its errors."""
_VARIES = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", re.IGNORECASE)
"""What differs from one error to the next of its kind: numbers, addresses, identifiers."""


class Trouble:
    """One kind of error."""

    __slots__ = ("count", "first", "last", "since", "step")

    def __init__(self, event: Event, step: int | None) -> None:
        self.first = self.last = event
        self.count = 1
        self.since = self.step = step
        """The steps that the run had reached when it was first and last told."""


class Troubles:
    """The kinds of error of one source, in the order of first appearance."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], Trouble] = {}

    def __iter__(self) -> Iterator[Trouble]:
        return iter(self._kinds.values())

    def add(self, event: Event, step: int | None) -> None:
        """Note an error.

        Args:
            event: The line that says so.
            step: The step that the run had reached, None before the first.
        """
        kind = event.actor, _VARIES.sub("#", event.text)
        known = self._kinds.get(kind)
        if known is None:
            if len(self._kinds) < _MOST:
                self._kinds[kind] = Trouble(event, step)
            return
        known.count += 1
        known.last, known.step = event, step

    def clear(self) -> None:
        """Forget all: the run began anew."""
        self._kinds.clear()


def troubles(run: Run) -> list[tuple[str, Trouble]]:
    """Return the errors of a run's workers with the path of their log, the most frequent first."""
    found = [
        (path, one)
        for path, state in run.sources.items()
        for one in state.troubles
        if one.first.actor
    ]
    return sorted(found, key=lambda one: -one[1].count)
