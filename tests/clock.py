"""A clock for tests."""

from __future__ import annotations


class Clock:
    """Stands still until it is moved on."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
