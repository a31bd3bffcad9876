"""Numbers held between two others."""

from __future__ import annotations

from typing import TypeVar

_Size = TypeVar("_Size", int, float)


def clamp(value: _Size, low: _Size, high: _Size) -> _Size:
    """Return a number, or the bound that it lies beyond; the upper one where the two cross."""
    return min(max(value, low), high)
