"""The moments at which a run reached its steps, by one kind of evidence."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from verl_tui.times import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import MutableSequence, Sequence

    import numpy as np
    from numpy.typing import NDArray

_NAN = float("nan")


class Clock:
    """The moments of steps, both ascending; between two of them time is interpolated evenly.

    A run that was resumed passes some steps twice: the later pass holds.
    """

    def __init__(self, origin: str, *, estimated: bool = False) -> None:
        self.origin = origin
        """The origin of the moments, in words."""
        self.estimated = estimated
        """True if the moments were not noted but counted back from another."""
        self.steps = array("q")
        self.times = array("d")
        """Seconds since the epoch."""

    def __len__(self) -> int:
        return len(self.steps)

    def note(self, steps: Sequence[int], times: Sequence[float]) -> None:
        """Take in moments, in the order in which they were written; those beyond any calendar are
        ignored.
        """
        if self.steps and not self._is_new(steps[-1], times[-1]):
            return  # most metrics of a step have the same time
        if self._knows(steps[:-1], times[:-1]):
            # metrics that each state times of their own
            steps = steps[-1:]
            times = times[-1:]
        for step, time in zip(steps, times, strict=True):
            if self._goes_on(step, time):
                self.steps.append(step)
                self.times.append(time)

    def _goes_on(self, step: int, time: float) -> bool:
        """Return whether a moment comes behind all others, once those of an earlier pass are
        forgotten.
        """
        if self.steps and step <= self.steps[-1] and not self._begin_pass(step, time):
            return False
        if self.times and time < self.times[-1]:
            return False
        return EARLIEST < time < LATEST

    def _is_new(self, step: int, time: float) -> bool:
        return step != self.steps[-1] or time > self.times[-1]

    def _knows(self, steps: Sequence[int], times: Sequence[float]) -> bool:
        """Return whether none of several moments can add anything new."""
        if not self.steps or not steps:
            return False
        return max(steps) <= self.steps[-1] and max(times) <= self.times[-1]

    def _begin_pass(self, step: int, time: float) -> bool:
        """Forget the steps from an earlier one on if the run passes it again; return whether it
        does.
        """
        at = bisect_left(self.steps, step)
        again = step == self.steps[-1] and len(self.steps) == at + 1
        if again or not time > self.times[-1]:
            return False  # the same step once more, or one in between
        del self.steps[at:], self.times[at:]
        return True

    def at(self, step: int) -> float:
        """Return when the run reached a step, nan where unknown."""
        return self.at_each([step])[0]

    def at_each(self, steps: Sequence[int] | NDArray[np.int64]) -> list[float]:
        """Return when the run reached each of several steps, nan where unknown."""
        import numpy as np

        if not self.steps:
            return [_NAN] * len(steps)
        found: list[float] = np.interp(
            steps, self.steps, self.times, left=_NAN, right=_NAN
        ).tolist()
        return found


def moment(stated: float, step: int, clocks: Sequence[Clock]) -> float:
    """Return the time of a step, see `moments`."""
    return moments([stated], [step], clocks)[0]


def moments(
    stated: Sequence[float], steps: Sequence[int], clocks: Sequence[Clock]
) -> list[float]:
    """Return the time of each of several steps: as its record states it, else by the first clock
    that knows it, else nan.

    Args:
        stated: The time that the record of each step states, nan where it states none.
        steps: Ascending.
        clocks: The best first.
    """
    import numpy as np

    found, at = np.array(stated, np.float64), np.array(steps)
    for clock in clocks:
        unknown = np.isnan(found)
        if not unknown.any():
            break
        found[unknown] = clock.at_each(at[unknown])
    times: list[float] = found.tolist()
    return times


def counted_back(
    origin: str, steps: Sequence[int], elapsed: Sequence[float], end: float
) -> Clock:
    """Return a clock from durations alone.

    Args:
        origin: See `Clock.origin`.
        steps: Ascending.
        elapsed: Seconds at each of them since some beginning, ascending.
        end: When the last of them was reached, in seconds since the epoch.
    """
    clock = Clock(origin, estimated=True)
    if len(steps):
        clock.note(steps, [end - elapsed[-1] + seconds for seconds in elapsed])
    return clock


@dataclass(slots=True)
class ElapsedTimes:
    """Seconds since some beginning at each of some steps, both ascending: of a progress bar, or
    summed up by timers.
    """

    steps: MutableSequence[int] = field(default_factory=lambda: array("q"))
    elapsed: MutableSequence[float] = field(default_factory=lambda: array("d"))

    def note(self, step: int, seconds: float) -> None:
        """Take in what a bar shows, unless it has gone back."""
        if not self.steps or (step > self.steps[-1] and seconds >= self.elapsed[-1]):
            self.steps.append(step)
            self.elapsed.append(seconds)

    def until(self, step: int) -> tuple[Sequence[int], Sequence[float]]:
        """Return the part up to a step, an empty one where nothing is known near it.

        Bars are drawn after their step's line, so the last step may be a stride ahead: it took as
        long as the one before it.
        """
        count = bisect_right(self.steps, step)
        steps, elapsed = self.steps[:count], self.elapsed[:count]
        if steps and steps[-1] == step:
            return steps, elapsed
        to = min(count, len(self.steps) - 1)
        if count < 2 or step - steps[-1] > self.steps[to] - self.steps[to - 1]:
            return (), ()
        each = (self.elapsed[to] - self.elapsed[to - 1]) / (
            self.steps[to] - self.steps[to - 1]
        )
        return [*steps, step], [*elapsed, elapsed[-1] + (step - steps[-1]) * each]

    def clock(self, step: int, end: float, origin: str) -> Clock:
        """Return a clock counted back from when a step was reached, empty where no step is near it.

        Args:
            step: The step.
            end: When it was reached, in seconds since the epoch.
            origin: See `Clock.origin`.
        """
        return counted_back(origin, *self.until(step), end)
