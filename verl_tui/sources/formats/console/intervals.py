"""The intervals of a console's dicts, and the steps of its epochs, where no dict states its own."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ROUND = (1000, 500, 100, 50, 20, 10, 5, 2, 1)
"""Logging intervals as people choose them, the roundest first."""
_RATE_ROUNDING = 0.0005
"""By how much a rate may be off, which Hugging Face's trainer rounds to three digits."""
_MOST = 1e15
_ALONE = 3
"""How much later the second dict is than the first where that is logged beside the regular ones."""
_WHOLE = 0.01
"""Share of its size by which a step by its rounded epoch may miss a whole number."""
_CLEARLY = 4
"""How much nearer one of two guesses must be to the epochs: those are rounded. Heuristic."""


class StatedSteps:
    """What a console states of the steps of its training."""

    def __init__(self) -> None:
        self.every: int | None = None
        """Steps between two training dicts."""
        self.per_epoch: float | None = None
        """Steps of an epoch."""
        self._planned: int | None = None
        """Steps of the training."""
        self._epochs: int | None = None
        """Epochs of the training, 0 where its steps are limited otherwise."""

    def note(self, said: Mapping[str, int]) -> None:
        """Take what a line states, see `stated`."""
        self._planned = said.get("limit") or said.get("total") or self._planned
        if "limit" in said:
            self._epochs = 0
        elif self._epochs is None:
            self._epochs = said.get("epochs")
        if "every" in said:
            self.every = max(1, said["every"])
        self.per_epoch = said.get("each", self.per_epoch)

    def knows(self, epoch: float | None) -> bool:
        """Return whether the interval of dicts, or the steps of an epoch, are known.

        Those of an epoch follow from those of the training where they make the first dict's step
        one to log at.
        """
        if self._planned and self._epochs and self.per_epoch is None and epoch:
            step = epoch * self._planned / self._epochs
            if abs(step - round(step)) < _WHOLE * step and _is_round(round(step)):
                self.per_epoch = self._planned / self._epochs
        return bool(self.every or self.per_epoch)

    def step_at(self, epoch: float | None) -> int | None:
        """Return the step at an epoch, None where the steps of one are not known."""
        if epoch is None or self.per_epoch is None or not math.isfinite(epoch):
            return None
        return round(epoch * self.per_epoch)

    def interval(self, count: int, seconds: float, rate: float) -> int:
        """Return the likeliest interval of all dicts of a training, by the steps that it made.

        Args:
            count: How many dicts there are.
            seconds: How long it took.
            rate: Its steps a second, 0 where that is not stated.
        """
        least = max(0.0, rate - _RATE_ROUNDING) * seconds
        most = (rate + _RATE_ROUNDING) * seconds
        is_known = 0 < seconds * rate < _MOST
        if self._planned and (not is_known or least <= self._planned <= most):
            return likeliest_interval(self._planned, count)
        if not is_known:
            return 1
        return _roundest(math.ceil(least), math.floor(most), count)


class CountedEpochs:
    """Epochs of counted dicts with their steps, both ascending."""

    def __init__(self) -> None:
        self._epochs: list[float] = []
        self._steps: list[int] = []

    def step(self, epoch: float, step: int) -> int:
        """Return the step of a counted dict: an epoch that goes back is that of a restart."""
        epochs, steps = self._epochs, self._steps
        if epochs and epoch < epochs[-1]:
            at = bisect_left(epochs, epoch)
            step = steps[at]
            del epochs[at:], steps[at:]
        epochs.append(epoch)
        steps.append(step)
        return step


class BarGuess:
    """Guesses which of two bars in a row has the step of the dict between them."""

    def __init__(self) -> None:
        self._moves = 0
        """Single steps of the bar since the last dict."""
        self._last: tuple[int, float | None] | None = None
        """Bar before the last such dict, and its epoch."""

    def moved(self, before: int | None, at: int) -> None:
        """Take a bar without a dict before it."""
        self._moves = self._moves + 1 if before in (at, at - 1) else 0

    def step(self, before: int, epoch: float | None) -> int:
        """Return the step of a dict: by the epochs of two, as the same bar of both, else by whether
        one chooses to log at each so many steps, where some had no dict.

        Args:
            before: Position of the bar before the dict; that behind it is one further.
            epoch: The dict's.
        """
        first, first_epoch = self._last or (0, None)
        self._last = before, epoch
        if first and first_epoch and epoch:
            ratio = epoch / first_epoch
            by_before = abs(ratio - before / first)
            by_behind = abs(ratio - (before + 1) / (first + 1))
            if _CLEARLY * by_behind < by_before:
                return before + 1
            if _CLEARLY * by_before < by_behind:
                return before
        return before + (self._moves > 1 and _is_round(before + 1))


def _is_round(step: int) -> bool:
    return step % 5 == 0 or step & (step - 1) == 0


def first_is_alone(epochs: Sequence[float]) -> bool:
    """Return whether the first step is logged beside the regular ones, by the dicts' epochs."""
    if len(epochs) < 2:
        return False
    return epochs[1] > _ALONE * epochs[0] > 0


def likeliest_interval(span: int, count: int) -> int:
    """Return the likeliest logging interval for `count` dicts within `span` steps."""
    if span < count:
        return 1
    if span % count == 0:
        return span // count
    return _roundest(span, span, count)


def _roundest(least_span: int, most_span: int, count: int) -> int:
    """Return the roundest interval that gives so many dicts within a number of steps."""
    least = least_span // (count + 1) + 1
    most = max(1, most_span // count)
    for unit in _ROUND:
        largest = unit * (most // unit)
        if largest >= least:
            return largest
    return most
