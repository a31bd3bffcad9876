"""The steps that a console states in words, and the intervals of its dicts, where nothing states
the dicts' own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

_EVERY = pattern(rb"logging_steps['\"]?\s{0,40}[=: ]\s{0,40}(\d{1,9})\b")
_LIMIT = pattern(rb"max_steps['\"]?\s{0,40}[=:]\s{0,40}([1-9]\d{0,9})\b")
_CONTINUED = pattern(rb"Continuing training from global step (\d{1,15})(?!\d)")
_EPOCHS = pattern(rb"Num Epochs = ([\d,]{1,12})(?!\d)")
_PER_EPOCH = pattern(rb"Num update steps per epoch = ([\d,]{1,12})(?!\d)")
"""transformers from 5 on."""
WORDS = (
    "logging_steps",
    "max_steps",
    "Continuing training",
    "Num Epochs",
    "update steps per",
)
"""Every line that states steps in words contains one of these."""
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

    def read(self, part: bytes, total: int | None) -> int | None:
        """Take a line; return the step that it says the training goes on from.

        Args:
            part: The line.
            total: The steps of the whole training, if it states them.
        """
        self._planned = total or self._planned
        if b"logging_steps" in part and (found := _EVERY.search(part)):
            self.every = max(1, int(found.group(1)))
        if b"max_steps" in part and (found := _LIMIT.search(part)):
            self._planned = int(found.group(1))
            self._epochs = 0
        if (
            b"Num Epochs" in part
            and self._epochs is None
            and (found := _EPOCHS.search(part))
        ):
            self._epochs = _number(found.group(1))
        if b"per epoch" in part and (found := _PER_EPOCH.search(part)):
            self.per_epoch = _number(found.group(1))
        if b"Continuing training" in part and (found := _CONTINUED.search(part)):
            return int(found.group(1))
        return None

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
        if self._planned:
            return likeliest_interval(self._planned, count)
        if not 0 < seconds * rate < _MOST:
            return 1
        least = max(0.0, rate - _RATE_ROUNDING) * seconds
        most = (rate + _RATE_ROUNDING) * seconds
        return _roundest(math.ceil(least), math.floor(most), count)


class BetweenBars(NamedTuple):
    """A dict between the bars of two steps in a row."""

    before: int
    at: int
    """Position of the bar behind it."""
    epoch: float | None


def nearer_bar(first: BetweenBars | None, second: BetweenBars, *, others: bool) -> int:
    """Return the step of a dict: by the epochs of two, as the same bar of both, else by whether one
    chooses to log at each so many steps.

    Args:
        first: The dict before.
        second: The dict.
        others: Whether steps without a dict were seen right before it.
    """
    if first is not None and first.epoch and second.epoch and first.before:
        ratio = second.epoch / first.epoch
        by_before = abs(ratio - second.before / first.before)
        by_at = abs(ratio - second.at / first.at)
        if _CLEARLY * by_at < by_before:
            return second.at
        if _CLEARLY * by_before < by_at:
            return second.before
    return second.at if others and _is_round(second.at) else second.before


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


def _number(written: bytes) -> int:
    return int(written.replace(b",", b"") or 0)
