"""When garbage is searched for: with many runs it takes longer than the answer to a key may."""

from __future__ import annotations

import gc
from time import monotonic

_WHOLE_SWEEP = 600.0
"""Seconds at least between two searches among all objects."""


class GarbageSweeps:
    """Searches among the objects that have come since those of the logs were left out.

    What was read stays, and with many runs a search in it delays a key by 50 ms.
    """

    def __init__(self) -> None:
        self._left_out: float | None = None
        """When objects were last left out, by a monotonic clock; None before."""

    def sweep(self) -> None:
        """Collect garbage, which is not done automatically any more (see `tui.watch`)."""
        gc.collect()

    def leave_out(self) -> None:
        """Leave all objects that there are out of later searches.

        Runs come and screens go: what was left out before and is garbage by now is collected first.
        As that takes as long, it is seldom done.
        """
        now = monotonic()
        if self._left_out is not None:
            if now < self._left_out + _WHOLE_SWEEP:
                return
            self.collect_all()
        self._left_out = now
        gc.freeze()

    def collect_all(self) -> None:
        """Collect garbage among all objects, and leave none out until `leave_out`."""
        gc.unfreeze()
        gc.collect()
        self._left_out = None
