"""Holds numbers in arrays."""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def packed(values: Collection[float]) -> array[float]:
    """Return numbers as an array.

    Raises:
        struct.error: One is no number.
        OverflowError: One is too large.
    """
    # An array takes twice as long to look at one value after the other.
    return array("d", struct.pack(f"{len(values)}d", *values))


def numbers(values: Sequence[float]) -> array[float]:
    """Return numbers as an array, which they may be already."""
    if isinstance(values, array) and values.typecode == "d":
        return values
    return packed(values)
