"""Numbers and counts as words for people, the same in every text that is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import floor, isfinite, log10

_MOST_DECIMALS = 8
_PERCENT: Mapping[str, float] = {"%": 1.0, "percent": 1.0, "share": 100.0}
"""A unit that is written as `%` -> how many percent one of it is."""
_ROUNDING = 1e-9
"""Rounding error of a percentage after division and multiplication."""
_NAMES = ("Ray", "Slurm", "Python", "Triton")
"""Names that sentences begin with and that are spelled as words are."""


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Write a number of things: `1 run`, `2 runs`, `1,024 matches`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def few(names: Iterable[str], most: int = 5) -> str:
    """Name the first of many things: `a, b, 3 more`."""
    found = [*names]
    more = [f"{len(found) - most:,} more"] if len(found) > most else []
    return ", ".join([*found[:most], *more])


def nearest(word: str, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> str:
    """Ask whether a word is mistyped: `did you mean kl-high or kl-drift?`; empty where none of the
    known ones is like it.
    """
    from difflib import get_close_matches  # of what goes wrong alone

    near = get_close_matches(word, [*known], most, cutoff)
    return f"did you mean {' or '.join(near)}?" if near else ""


def number(value: float, digits: int = 4) -> str:
    """Return a value with so many digits, never as an exponent where people would not write one."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.{digits}g}"


def figure(value: float, unit: str, write: Callable[[float], str] = number) -> str:
    """Write a value without its unit, shares and percentages as `49.3%`."""
    times, sign = in_percent(unit)
    return write(value * times) + sign


def in_percent(unit: str) -> tuple[float, str]:
    """Return what values of a unit are multiplied by, and the sign behind them."""
    return (_PERCENT[unit], "%") if unit in _PERCENT else (1.0, "")


def behind(unit: str) -> str:
    """Return what stands behind a figure of a unit: ` tokens`."""
    return f" {unit}" if unit and unit not in _PERCENT else ""


def percent_done(share: float) -> str:
    """Write the share of a run that is done, never 100% before its end."""
    return f"{min(100, int(100 * share + _ROUNDING))}%"


def rounded(value: float, digits: int = 3) -> str:
    """Return a value with so many digits."""
    return number(float(f"{value:.{digits}g}"))


def with_spread(value: float, spread: float) -> str:
    """Return a value with its spread in two significant digits: `0.617 ± 0.027`."""
    if not isfinite(value) or not isfinite(spread) or not spread:
        return f"{number(value)} ± {number(spread)}"
    decimals = 1 - floor(log10(abs(spread)))
    if 0 <= decimals <= _MOST_DECIMALS and abs(value) < 1e6:
        return f"{value:,.{decimals}f} ± {spread:,.{decimals}f}"
    return f"{number(value)} ± {rounded(spread, 2)}"


def lowered(sentence: str) -> str:
    """Return a sentence as it continues after a colon; names and abbreviations stay as they are."""
    first = sentence.partition(" ")[0]
    is_name = first.removesuffix("'s") in _NAMES or first[1:] != first[1:].lower()
    if is_name or not (first[1:2].islower() or first == "A"):
        return sentence
    return sentence[0].lower() + sentence[1:]
