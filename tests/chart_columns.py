"""A series as charts want it."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from verl_tui.runs.series import Points

if TYPE_CHECKING:
    from collections.abc import Iterable


class Column(Points):
    """Values at steps, to which more can be added."""

    def __init__(self, steps: Iterable[int], values: Iterable[float]) -> None:
        super().__init__(array("q", steps), array("d", values))

    def add(self, step: int, value: float) -> None:
        self.steps.append(step)
        self.values.append(value)
