"""Values with their units, as people read them: percentages, and bytes in the largest unit."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from verl_tui.rendering.text.numbers import compact

if TYPE_CHECKING:
    from collections.abc import Mapping

_PERCENT: Mapping[str, float] = {"%": 1.0, "percent": 1.0, "share": 100.0}
"""A unit -> how many percent one of it is."""
_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
"""Each 1,024 times the one before."""


def in_words(value: float, unit: str) -> tuple[str, str]:
    """Return a value's number, and the unit that may be left out behind it: none where the number
    is in another one, which it says itself.
    """
    if unit in _PERCENT:
        return f"{compact(value * _PERCENT[unit])}%", ""
    if unit in _SIZES and isfinite(value):
        size, name = _sized(value, unit)
        return f"{compact(size)} {name}", ""
    return compact(value), f" {unit}" if unit else ""


def value_text(value: float, unit: str) -> str:
    """Write a value with its unit."""
    return "".join(in_words(value, unit))


def _sized(value: float, unit: str) -> tuple[float, str]:
    at = _SIZES.index(unit)
    while abs(value) >= 1000 and at < len(_SIZES) - 1:
        value, at = value / 1024, at + 1
    while 0 < abs(value) < 0.5 and at:
        value, at = value * 1024, at - 1
    return value, _SIZES[at]
