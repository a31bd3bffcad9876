"""A table of text cells, however it is written in the end."""

from __future__ import annotations

from typing import NamedTuple

UNKNOWN = "–"
LONGEST = 40
"""Most characters of a setting's value."""


class TextTable(NamedTuple):
    """A table, or a sentence in its place."""

    heading: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    """A sentence below it."""
    numbers: bool = True
    """True if all columns but the first are of numbers."""
    naming: int = 1
    """Number of first columns that name what a row is about."""


def left_out(count: int) -> str:
    """Say how many rows are not shown, nothing for none."""
    return f"{count:,} more in the JSON form" if count > 0 else ""
