"""The moments at which a run reached its steps, by one kind of evidence."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from verl_tui.times import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

_NAN = float("nan")


class Clock:
    """The moments of steps, both ascending; between two of them time is interpolated evenly.

    A run that was resumed passes some steps twice: the later pass holds. Of a progress bar, or of
    timers that are summed up, the moments are seconds since some beginning.
    """

    def __init__(
        self,
        origin: str = "",
        steps: Iterable[int] = (),
        times: Iterable[float] = (),
        *,
        estimated: bool = False,
    ) -> None:
        self.origin = origin
        """The origin of the moments, in words."""
        self.estimated = estimated
        """True if the moments were not noted but counted back from another."""
        self.steps = array("q", steps)
        self.times = array("d", times)
        """Seconds since the epoch."""

    def __len__(self) -> int:
        return len(self.steps)

    def note(self, steps: Sequence[int], times: Sequence[float]) -> None:
        """Take in moments, in the order in which they were written; those beyond any calendar are
        ignored.
        """
        if self.steps and max(steps) <= self.steps[-1] and max(times) <= self.times[-1]:
            return  # most metrics of a step have the same time
        for step, time in zip(steps, times, strict=True):
            if EARLIEST < time < LATEST and self._admits(step, time):
                self.steps.append(step)
                self.times.append(time)

    def _admits(self, step: int, time: float) -> bool:
        """Forget those of an earlier pass; return whether a moment comes after all others."""
        if not self.steps:
            return True
        if step < self.steps[-1] and time > self.times[-1]:
            at = bisect_left(self.steps, step)
            del self.steps[at:], self.times[at:]
            return True
        return step > self.steps[-1] and time >= self.times[-1]

    def at_each(self, steps: Sequence[int] | NDArray[np.int64]) -> list[float]:
        """Return when the run reached each of several steps, nan where unknown."""
        import numpy as np

        if not self.steps:
            return [_NAN] * len(steps)
        found: list[float] = np.interp(
            steps, self.steps, self.times, left=_NAN, right=_NAN
        ).tolist()
        return found

    def counted_back(self, step: int, end: float, origin: str) -> Clock:
        """Return seconds since some beginning as moments, empty where no step is near the last.

        Bars are drawn after their step's line, so the last step may be a stride ahead: it took as
        long as the one before it.

        Args:
            step: The last step.
            end: When it was reached, in seconds since the epoch.
            origin: See `Clock.origin`.
        """
        count = bisect_right(self.steps, step)
        steps, elapsed = self.steps[:count], self.times[:count]
        if steps and steps[-1] != step:
            to = min(count, len(self) - 1)
            stride = self.steps[to] - self.steps[to - 1] if to else 0
            ahead = step - steps[-1]
            if ahead > stride:
                return Clock(origin, estimated=True)
            took = self.times[to] - self.times[to - 1]
            steps.append(step)
            elapsed.append(elapsed[-1] + ahead * took / stride)
        times = [end - elapsed[-1] + seconds for seconds in elapsed]
        return Clock(origin, steps, times, estimated=True)


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
