"""Finds the steps of printed dicts that state none, from the progress bars around them.

Hugging Face's trainers print by `tqdm.write`: it clears the bars, writes to standard output and
repaints the bars on standard error (`ProgressCallback.on_log` in
`transformers/trainer_callback.py`). Standard error arrives at once. Standard output may be kept
back until some kilobytes have come together, as Python does wherever it goes to a file or a pipe.
So every clearing stands for a dict written at the step of the bar painted next. A dict printed
between the two is that one; if none is, the n-th dict to come belongs to the n-th clearing.

Consoles without clearings (W&B's `output.log`, edited ones) keep bars and dicts, but not all bars,
and not always their order: there the bars around a dict only bound its step. The steps that remain
open are counted by the logging interval, as are the dicts of a console without any bar.
"""

from __future__ import annotations

from typing import NamedTuple

_PATIENCE = 32
"""Training dicts without a bar among them after which the steps are counted."""
_MOST_BARS = 100
"""Bars whose first position is remembered: a console has a handful, a broken one any number."""


class PrintedDict(NamedTuple):
    """A dict of metrics as it was printed."""

    values: dict[str, float]
    training: bool
    """True if the trainer prints dicts of this kind at each logging interval."""
    step: int | None = None
    """The step that the dict states."""
    ahead: int = 0
    """Steps by which the bar is behind when the dict is printed."""


class StepResolver:
    """Finds the steps of the dicts of one console, in the order in which they were printed."""

    def __init__(self) -> None:
        self.placed: list[tuple[PrintedDict, int, bool, bool]] = []
        """Dicts whose steps have been found, until someone takes them: the step, whether it was
        counted as neither the dict nor a bar states it, and whether the dict is the first of a
        training behind a new bar.
        """
        self.at: int | None = None
        """Position of the training's bar."""
        self.total: int | None = None
        """Length of the training's bar."""
        self._every = 0
        """Steps between two dicts, where the console states them."""
        self._came = 0
        """Dicts since the clearing."""
        self._drawn: tuple[int, int] | None = None
        """Position and length of the last bar, of the training or another one."""
        self._bars: dict[int, tuple[int, int]] = {}
        """The first and the last position of each bar, by length."""
        self._waiting: list[PrintedDict] = []
        """Dicts whose steps are not known yet."""
        self._start_training()

    def _start_training(self) -> None:
        """Forget the state of the previous training: another one begins."""
        self._writes: list[int] = []
        """Steps of clearings whose dicts have not come yet."""
        self._kept_back: bool | None = None
        """True if dicts arrive later than the bars, None while that is unknown."""
        self._leads: bool | None = None
        """True if a dict without a clearing stands before the bar of its own step."""
        self._loose = False
        """True if bars and dicts are in no order."""
        self._last: int | None = None
        """Step of the last training dict."""
        self._stride = 0
        """Steps since the one before it."""
        self.cleared = False
        """True while the bar is cleared and not yet painted again."""
        self._painted: dict[int, int] = {}
        """Bars painted since the clearing, length -> position."""

    # -- events on the console ---------------------------------------------------------------------

    def words(self, said: dict[str, int]) -> None:
        """Take what a line states in words."""
        self._every = said.get("every", self._every)

    def clearing(self) -> None:
        """Take the clearing of the bars."""
        self._close()
        if not self.cleared:
            self.cleared, self._came = True, 0

    def printed(self, new: PrintedDict) -> None:
        """Take a dict."""
        self._close()
        self._came += 1
        if new.step is not None:
            del self._writes[:1]
            self._settle(new, new.step)
            return
        self._waiting.append(new)
        if self._kept_back:
            self._pair()
        elif not self._drawn or self._loose or self._trains() > _PATIENCE:
            self._count()

    def bar(self, at: int, total: int) -> None:
        """Take a nameless bar; the training's bar is one."""
        first, before = self._moved(at, total)
        is_trainings = total == (self.total or total) and (self.total or total > at)
        if self.cleared:
            self._painted.setdefault(total, at)
            if is_trainings:
                self._close()
        # Evaluations wait for a known bar.
        elif is_trainings and (self._trains() or (self._waiting and self.total)):
            self.at, self.total = at, total
            self._between(before, at, first)

    def _moved(self, at: int, total: int) -> tuple[int, int | None]:
        """Note the position of a bar; return its first one, and the one before, None without."""
        if total == self.total:
            if at == 0 and self.at:
                self._count()
                self._start_training()
            self.at = at
        if len(self._bars) > _MOST_BARS:
            self._bars.clear()
        first, before = self._bars.get(total, (at, None))
        self._bars[total] = first, at
        self._drawn = at, total
        return first, before

    def settle(self) -> None:
        """Settle the dicts that wait for a bar at their likeliest steps: none may come."""
        self._close()
        self._count()

    # -- clearings ---------------------------------------------------------------------------------

    def _close(self) -> None:
        """End the clearing once the bars are painted again, and place what was written."""
        if not (self.cleared and self._painted):
            return
        painted, self._painted = self._painted, {}
        self.cleared = False
        # An evaluation right before leaves a full bar behind.
        total = self.total
        if total is None or total not in painted:
            total = min(painted, key=lambda one: (painted[one] / max(1, one), one))
        at = painted[total]
        if self.total not in (None, total):
            if at >= total:
                return
            # Another training has begun: it printed the dicts since the clearing.
            start = max(0, len(self._waiting) - self._came)
            own, self._waiting = self._waiting[start:], self._waiting[:start]
            self._count()
            self._start_training()
            self._waiting = own
        self.at, self.total = at, total
        if self._kept_back is None:
            self._kept_back = self._came != 1
        if self._kept_back:
            self._writes.append(at)
            self._pair()
        elif self._trains() > 1:
            self._count()
        else:
            self._place(at)

    def _pair(self) -> None:
        """Give dicts the steps of their clearings."""
        while self._waiting and self._writes:
            self._settle(self._waiting.pop(0), self._writes.pop(0))

    # -- bars alone --------------------------------------------------------------------------------

    def _trains(self) -> int:
        """Return how many dicts of a training wait."""
        return sum(one.training for one in self._waiting)

    def _between(self, before: int | None, at: int, first: int) -> None:
        """Settle what was printed between two positions of the bar; its first one is `first`.

        A step moves the bar before its dict is printed, so a dict between two steps in a row is of
        the first; but in what is copied from a terminal, the bar that was cleared for the dict is
        missing. The first dict tells: it leads where nothing or a step that is no interval stands
        before it.
        """
        if self._loose or self._trains() > 1:
            self._count()
            return
        if self._leads is None and self._trains():
            is_moving = before is not None and before - first > 1
            is_round = at % 5 == 0 or at & (at - 1) == 0
            self._leads = not before or (is_moving and is_round)
        step = self._likeliest(before or at, at)
        self._place(step, counted=step not in (before, at), moves=before in (None, at))

    def _likeliest(self, before: int, at: int) -> int:
        if not self._trains():
            return before if before in (self._last, at - 1) else at
        if self._leads or before in (self._last, at):
            return at
        interval = self._interval()
        following = (self._last or 0) + interval if interval else -1
        if before <= following <= at:
            return following
        return before if before == at - 1 else at

    def _place(self, step: int, *, counted: bool = False, moves: bool = True) -> None:
        """Settle the dicts that wait: that of a training, and evaluations, which are of the step
        before unless they come last.

        Args:
            step: The step.
            counted: Whether it was counted.
            moves: Whether the bar stands still before dicts that are ahead of it.
        """
        waiting, self._waiting = self._waiting, []
        for i, one in enumerate(waiting):
            early = not one.training and any(later.training for later in waiting[i:])
            if early and self._last is not None:
                self._settle(one, self._last)
            else:
                self._settle(one, step + one.ahead * moves, counted=counted)

    def _count(self) -> None:
        """Settle all waiting dicts by counting."""
        count = self._trains()
        self._loose |= count > (1 if self._kept_back is None else _PATIENCE)
        at, total = self._drawn or (0, 0)
        if count and at < total:
            self.total = self.total or total
        step = self._last or 0
        ahead = (self.at or 0) - step
        every = self._interval() or max(1, ahead // max(1, count))
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            step += one.training * every
            self._settle(one, self._counted(one, step), counted=True)

    def _counted(self, one: PrintedDict, step: int) -> int:
        """Return the step of a dict where counting says another; of evaluations that before."""
        if one.training:
            return step
        return self._last if self._last is not None else self.at or step

    def _interval(self) -> int:
        # Where the first step is logged beside the regular ones, that is no interval.
        is_regular = self._stride and (self._last or 0) % self._stride == 0
        return self._every or (self._stride if is_regular else 0)

    def _settle(self, one: PrintedDict, step: int, *, counted: bool = False) -> None:
        if self.total is not None and one.step is None:
            # a bar may go on beyond its length
            step = min(step, max(self.total, self.at or 0))
        self.placed.append((one, step, counted, one.training and self._last is None))
        if one.training:
            if self._last is not None and step > self._last:
                self._stride = step - self._last
            self._last = step
