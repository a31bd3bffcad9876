"""The mean of numbers of any size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one finite number, without overflow on the way."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        largest = max(map(abs, values))
        return largest * (math.fsum(value / largest for value in values) / len(values))
