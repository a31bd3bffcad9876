"""Finds the steps of printed dicts that state none, from the progress bars around them.

Hugging Face's trainers print by `tqdm.write`: it clears the bars, writes to standard output and
paints the bars anew on standard error (`ProgressCallback.on_log` in
`transformers/trainer_callback.py`). Standard error arrives at once. Standard output may be kept
back until some kilobytes have come together, as Python does wherever it goes to a file or a pipe.
So every clearing stands for a dict written at the step of the bar painted next. A dict printed
between the two is that one; if none is, the n-th dict to come belongs to the n-th clearing.

Consoles without clearings (W&B's `output.log`, edited ones) keep bars and dicts, but not all bars,
and not always their order: there the bars around a dict only bound its step. The steps that remain
open follow from the epochs of the dicts, where the console says how many steps one has; or else
they are counted by the logging interval, as are the dicts of a console without any bar.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_PATIENCE = 32
"""Training dicts without a bar among them after which the steps are counted."""
_MOST_BARS = 100
"""Bars whose first position is remembered: a console has a handful, a broken one any number."""


_ROUND = (1000, 500, 100, 50, 20, 10, 5, 2, 1)
"""Logging intervals as people choose them, the roundest first."""


class PrintedDict(NamedTuple):
    """A dict of metrics as it was printed."""

    keys: tuple[str, ...]
    values: tuple[float, ...]
    training: bool
    """True if the trainer prints dicts of this kind at each logging interval."""
    epoch: float | None = None
    step: int | None = None
    """The step that the dict states."""
    ahead: int = 0
    """Steps by which the bar is behind when the dict is printed, and with it all steps here, up to
    that of a `PlacedDict`.
    """


class PlacedDict(NamedTuple):
    """A dict whose step is known."""

    printed: PrintedDict
    step: int
    counted: bool
    """True if the step was counted: neither the dict nor a bar states it."""
    first: bool = False
    """True for the first training dict behind a new training bar."""


class StepResolver:
    """Finds the steps of the dicts of one console, in the order in which they were printed."""

    def __init__(self) -> None:
        self.placed: list[PlacedDict] = []
        """Dicts whose steps have been found, until someone takes them."""
        self.at: int | None = None
        """Position of the training's bar."""
        self.total: int | None = None
        """Length of the training's bar."""
        self._every: int | None = None
        """Steps between two training dicts, as the console states it."""
        self._per_epoch: float | None = None
        """Steps of an epoch, as it states it."""
        self._drawn: tuple[int, int] | None = None
        """Position and length of the last bar, of the training or another one."""
        self._bars: dict[int, tuple[int, int]] = {}
        """The first and the last position of each bar, by length."""
        self._waiting: list[PrintedDict] = []
        """Dicts whose steps are not known yet."""
        self._start_training()
        self._another = False

    def _start_training(self) -> None:
        """Forget the state of the previous training: another one begins."""
        self._another = True
        """True until the first dict of this training has its step."""
        self._writes: deque[int] = deque()
        """Steps of clearings whose dicts have not come yet."""
        self._kept_back: bool | None = None
        """True if dicts arrive later than the bars, None while that is unknown."""
        self._loose = False
        """True if bars and dicts are in no order."""
        self._last: int | None = None
        """Step of the last training dict."""
        self._stride: int | None = None
        """Steps between the last two training dicts."""
        self._moves = 0
        """Single steps of the bar since the last dict."""
        self.cleared = False
        """True while the bar is cleared and not yet painted again."""
        self._painted: dict[int, int] = {}
        """Bars painted since the clearing, length -> position."""
        self._came = 0
        """Dicts since the clearing."""
        self._other = False
        """True if other text was printed since the clearing."""

    # -- events on the console ---------------------------------------------------------------------

    def words(self, said: Mapping[str, int]) -> None:
        """Take what a line states in words, such as the step that training goes on from."""
        if "every" in said:
            self._every = max(1, said["every"])
        self._per_epoch = said.get("each", self._per_epoch)
        if "reached" in said:
            self._another = self._another or self._last is not None
            self._last = said["reached"]

    def clearing(self) -> None:
        """Take the clearing of the bars."""
        self._close()
        if self._kept_back and self._waiting:
            self._count()  # its own clearing was not seen
        if not self.cleared:
            self.cleared = True
            self._came = 0
            self._other = False

    def other(self) -> None:
        """Take text that is neither a dict nor a bar."""
        if self.cleared:
            self._close()
            self._other = True

    def printed(self, new: PrintedDict) -> None:
        """Take a dict."""
        self._close()
        self._came += 1
        if new.step is not None:
            if self._writes:
                self._writes.popleft()
            self._settle(new, new.step)
            return
        self._waiting.append(new)
        if self._kept_back:
            self._pair()
        elif self._drawn is None or self._loose or self._trains() > _PATIENCE:
            self._count()

    def bar(self, at: int, total: int) -> None:
        """Take a nameless bar; the training's bar is one."""
        before = self._moved(at, total)
        is_trainings = total == self.total or (self.total is None and at < total)
        if self.cleared:
            self._painted.setdefault(total, at)
            if is_trainings:
                self._close()
        elif is_trainings and self._awaits(total):
            self.at, self.total = at, total
            step = self._likeliest(before, at)
            self._behind(at, step, counted=step not in (before, at))

    def _awaits(self, total: int) -> bool:
        """Return whether dicts wait for a bar of this length."""
        waits = self._trains() or (self._waiting and total == self.total)
        return bool(waits) and not self._kept_back

    def _moved(self, at: int, total: int) -> int | None:
        """Note the position of a bar; return the one before, None if it had none."""
        if total == self.total and at == 0 and self.at:
            self._count()
            self._start_training()
        first, before = self._bars.get(total, (at, None))
        if total in self._bars or len(self._bars) < _MOST_BARS:
            self._bars[total] = first, at
        if not self._waiting:
            self._moves = self._moves + 1 if before in (at, at - 1) else 0
        self._drawn = at, total
        if total == self.total:
            self.at = at
        return before

    def settle(self) -> None:
        """Settle the dicts that wait for a bar at their likeliest steps: none may come."""
        self._close()
        self._count()

    # -- clearings ---------------------------------------------------------------------------------

    def _close(self) -> None:
        """End the clearing once the bars are painted again."""
        if not self.cleared or not self._painted:
            return
        self.cleared = False
        painted, self._painted = self._painted, {}
        # An evaluation right before leaves a full bar behind.
        total = self.total
        if total is None or total not in painted:
            total = min(painted, key=lambda one: (painted[one] / max(1, one), one))
        at = painted[total]
        came, other = self._came, self._other
        if self.total not in (None, total):
            if at >= total:
                return
            # Another training has begun: it printed the dicts since the clearing.
            start = max(0, len(self._waiting) - came)
            waiting = self._waiting[start:]
            del self._waiting[start:]
            self._count()
            self._start_training()
            self._waiting = waiting
        self.at, self.total = at, total
        self._came, self._other = 0, False
        if came or not other or self._kept_back is not None:
            self._written(at, came)

    def _written(self, at: int, came: int) -> None:
        """Note that a dict was written at a step, and how many came since."""
        if self._kept_back is None:
            self._kept_back = came != 1
        if not self._kept_back:
            self._behind(at, at)
            return
        if self._waiting and not self._writes:
            self._bounded(at)
        self._writes.append(at)
        self._pair()

    def _pair(self) -> None:
        """Give dicts the steps of their clearings."""
        while self._waiting and self._writes:
            self._settle(self._waiting.pop(0), self._writes.popleft())

    # -- bars alone --------------------------------------------------------------------------------

    def _trains(self) -> int:
        """Return how many dicts of a training wait."""
        return sum(one.training for one in self._waiting)

    def _likeliest(self, before: int | None, at: int) -> int:
        """Return the likeliest step of what was printed between two positions of the bar.

        A step moves the bar before its dict is printed, unless the bar is behind. So a dict between
        two steps in a row is of the first, unless that one has its dict, or the second is what one
        logs at: the bar that was cleared for the dict is missing in what is copied from a terminal.
        """
        if before is None:
            return at
        if any(one.ahead for one in self._waiting):
            return at - (before < at and before != self._last)
        if before and not self._trains():
            return before if before in (self._last, at - 1) else at
        return self._between(before, at) if before else at

    def _between(self, before: int, at: int) -> int:
        interval = self._interval()
        following = self._last + interval if self._last is not None and interval else -1
        if before <= following <= at:
            return following
        if before != at - 1 or before == self._last:
            return at
        return before + (self._moves > 1 and _is_round(at))

    def _behind(self, at: int, step: int, *, counted: bool = False) -> None:
        """Settle the dicts before a bar.

        Args:
            at: Position of the bar.
            step: Step of the training dict, if there is one.
            counted: Whether that step was counted.
        """
        if self._loose or self._trains() > 1:
            self._bounded(at)
            return
        waiting, self._waiting = self._waiting, []
        for i, one in enumerate(waiting):
            early = not one.training and any(later.training for later in waiting[i:])
            if early and self._last is not None:
                self._settle(one, self._last)
            else:
                self._settle(one, step, counted=counted)

    def _bounded(self, at: int) -> None:
        """Settle several training dicts before a bar, none of which can be beyond it."""
        count = self._trains()
        if not count:
            self._count()
            return
        self._loose = self._kept_back is None
        before = self._before()
        stride = self._interval() or (
            _likeliest_interval(at - before, count) if before is not None else 1
        )
        if before is None:
            before = max(0, at - stride * count)
        self._count(before, min(stride, max(0, at - before) / count))

    def _count(self, before: int | None = None, stride: float | None = None) -> None:
        """Settle all waiting dicts by counting.

        Args:
            before: The step to count from.
            stride: Steps between two training dicts; below 1 where several share a step.
        """
        least = self._begin_count(self._trains())
        start = before if before is not None else self._before() or 0
        stride = stride if stride is not None else self._interval() or 1
        waiting, self._waiting = self._waiting, []
        counted = 0
        for one in waiting:
            if one.training:
                counted += 1
                step = max(start + math.ceil(stride * counted), least)
                step = self._at_epoch(one.epoch) or step
            elif self._last is not None:
                step = self._last
            else:
                step = self.at or max(0, start)
            self._settle(one, step, counted=True)

    def _begin_count(self, training: int) -> int:
        """Note that so many training dicts are counted; return the least step of the first."""
        if training > (1 if self._kept_back is None else _PATIENCE):
            self._loose = True
        if training and self.total is None and self._drawn is not None:
            at, total = self._drawn
            self.total = total if at < total else None
        in_order = training == 1 and self._kept_back is False
        return (self.at or 0) if in_order else 0

    def _at_epoch(self, epoch: float | None) -> int:
        """Return the step at an epoch, 0 where the console does not say how many one has."""
        if epoch is None or not self._per_epoch or not math.isfinite(epoch):
            return 0
        return round(epoch * self._per_epoch)

    def _before(self) -> int | None:
        """Return the step to count the dicts from, None if the console does not show it."""
        if self._last is not None:
            return self._last
        total = self.total
        if total is None and self._drawn is not None:
            total = self._drawn[1]
        if total is None or self._bars.get(total, (1, 1))[0] == 0:
            return -max([one.ahead for one in self._waiting], default=0)
        return None

    def _interval(self) -> int | None:
        # Where the first step is logged beside the regular ones, that is no interval.
        regular = self._stride and (self._last or 0) % self._stride == 0
        return self._every or (self._stride if regular else None)

    def _settle(self, one: PrintedDict, step: int, *, counted: bool = False) -> None:
        ahead = one.ahead if one.step is None else 0
        if self.total is not None and one.step is None:
            # a bar may go on beyond its length
            step = min(step, max(self.total, self.at or 0) - ahead)
        first = one.training and self._another
        if one.training:
            if self._last is not None and step > self._last:
                self._stride = step - self._last
            self._last = step
            self._another = False
        self.placed.append(PlacedDict(one, step + ahead, counted, first))


def _is_round(step: int) -> bool:
    return step % 5 == 0 or step & (step - 1) == 0


def _likeliest_interval(span: int, count: int) -> int:
    """Return the likeliest logging interval for `count` dicts within `span` steps."""
    if span < count:
        return 1
    if span % count == 0:
        return span // count
    least, most = span // (count + 1) + 1, span // count
    rounded = (unit * (most // unit) for unit in _ROUND)
    return next((one for one in rounded if one >= least), most)
