"""Numbers, counts and colours of the note."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

STYLES: Mapping[str, str] = {
    "info": "blue",
    "healthy": "green",
    "warning": "yellow",
    "critical": "bold red",
    "running": "green",
    "finished": "green",
    "stalled": "yellow",
    "crashed": "bold red",
}
"""Verdicts, severities and states -> their colour on a terminal."""


def counted(count: int, noun: str) -> str:
    """Write a number of things: `1 run`, `2 runs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def number(value: float) -> str:
    """Return a value with about four digits, never as an exponent where people would not write
    one.
    """
    if value == 0 or 1e-4 <= abs(value) < 1000:
        return f"{value:.4g}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.3e}"
