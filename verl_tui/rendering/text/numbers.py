"""Numbers in few characters."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10

from verl_tui.patterns import pattern
from verl_tui.words import behind, figure, in_percent

_WIDTH = 7
_SUFFIXES = ("", "k", "M", "G")
_LONGEST = 9
"""Most characters of a number that must differ from its neighbours."""


def compact(value: float) -> str:
    """Write a number in at most seven characters, three digits: `0.0231`, `1.2e-06`, `4.51k`,
    `nan`, `-inf`.
    """
    if not isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 9.995e11:
        text = f"{value:.1e}".replace(".0e", "e")
        return text if len(text) <= _WIDTH else f"{value:.0e}"
    value = float(f"{value:.3g}")  # round first: 999.9 is 1k
    power = floor(log10(abs(value)))
    group = max(0, power // 3)
    text = _trimmed(value / 1000**group, 2 - power + 3 * group) + _SUFFIXES[group]
    if len(text) <= _WIDTH:
        return text
    return _trimmed(value, 1 - power)


def distinct_texts(values: Sequence[float]) -> list[str]:
    """Write different numbers differently, with more digits than `compact` only if needed.

    Of numbers that are equal in nine characters only the first is written; the others are empty.
    """
    texts = [compact(value) for value in values]
    digits = 3
    while len(set(texts)) < len(values) and digits < _LONGEST:
        digits += 1
        longer = [f"{value:.{digits}g}" for value in values]
        if max(map(len, longer)) > _LONGEST:
            break
        texts = longer
    return [text if text not in texts[:at] else "" for at, text in enumerate(texts)]


def _trimmed(value: float, digits: int) -> str:
    text = f"{value:.{max(0, digits)}f}"
    if "." in text:
        return text.rstrip("0").rstrip(".")
    return text


_COUNTED = pattern(r"[a-z]{3,}s")
"""A unit in the plural."""
_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
"""Each 1,024 times the one before."""


def in_words(value: float, unit: str) -> tuple[str, str]:
    """Return a value's number, and the unit that may be left out behind it: none where the number
    is in another one, which it says itself.
    """
    if unit in _SIZES and isfinite(value):
        size, name = _sized(value, unit)
        return f"{compact(size)} {name}", ""
    # `1 version`, but `1 ms` and `1 tokens/s`
    is_one = compact(value) == "1" and _COUNTED.fullmatch(unit)
    return figure(value, unit, compact), behind(unit[:-1] if is_one else unit)


def axis_texts(values: Sequence[float], unit: str) -> list[str]:
    """Write the numbers of an axis as `distinct_texts` does, percentages as such."""
    times, sign = in_percent(unit)
    texts = distinct_texts([value * times for value in values])
    return [text and text + sign for text in texts]


def _sized(value: float, unit: str) -> tuple[float, str]:
    at = _SIZES.index(unit)
    while abs(value) >= 1000 and at < len(_SIZES) - 1:
        value, at = value / 1024, at + 1
    while 0 < abs(value) < 0.5 and at:
        value, at = value * 1024, at - 1
    return value, _SIZES[at]
