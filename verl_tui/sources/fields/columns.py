"""Turns rows of numbers into columns."""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def columns(rows: Sequence[Sequence[float]]) -> tuple[array[float], ...]:
    """Return the values of rows by column."""
    count = len(rows[0])
    numbers = array("d", b"".join(map(_numbers, rows)))
    return tuple([numbers[at::count] for at in range(count)])


def packed(values: Collection[float]) -> array[float]:
    """Return numbers as an array.

    Raises:
        struct.error: One is no number.
        OverflowError: One is too large.
    """
    # An array takes twice as long to look at one value after the other.
    return array("d", struct.pack(f"{len(values)}d", *values))


def _numbers(values: Sequence[float]) -> array[float]:
    if isinstance(values, array) and values.typecode == "d":
        return values
    return packed(values)
