"""Tells where a training's bar begins again from its start: the trainer was started anew.

Nothing else may show it, where an attempt has not printed metrics yet. The bar of an evaluation may
be as long as the training's; it moves faster, or goes on to where the training's was.
"""

from __future__ import annotations

_FASTER = 5
"""How many times as fast as the bar before a bar moves that is another thing's: heuristic."""
_ENOUGH = 2
"""Steps that a bar must have made to have a pace."""


class BarRestarts:
    """Follows one bar."""

    def __init__(self) -> None:
        self._at = 0
        self._seconds: float | None = None
        """What the bar said it had taken."""
        self._pace = 0.0
        """Seconds of its last step, 0 where unknown."""
        self._before: tuple[int, float] | None = None
        """Position and pace of the bar that another one has begun behind, until it is clear whose
        that is.
        """

    def _move(self, at: int, seconds: float | None) -> None:
        if at == 0 < self._at:
            self._before = self._at, self._pace
            self._pace = 0.0
        elif self._seconds is not None and seconds is not None and at > self._at:
            self._pace = max(0.0, (seconds - self._seconds) / (at - self._at))
        self._at, self._seconds = at, seconds

    def follow(self, at: int, seconds: float | None) -> int | None:
        """Take a position; return where the training before was, once it is clear that this is
        another.
        """
        self._move(at, seconds)
        if self._before is None or at < _ENOUGH or not self._pace:
            return None
        top, pace = self._before
        is_another = at < top and _FASTER * self._pace >= pace
        if is_another or at >= top:
            self._before = None
        return top if is_another else None
