"""Numbers held between two others."""

from __future__ import annotations

from typing import TypeVar

Number = TypeVar("Number", int, float)


def clamp(value: Number, low: Number, high: Number) -> Number:
    """Return a number, or the bound that it lies beyond; the upper one where the two cross."""
    return min(max(value, low), high)
