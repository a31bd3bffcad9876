"""Quiet hours: a stretch of each day, by the local clock, in which nothing is sent."""

from __future__ import annotations

import time
from typing import NamedTuple

from verl_tui.patterns import pattern

_SPAN = pattern(r"([01]?\d|2[0-3]):([0-5]\d)\s*[-–]\s*([01]?\d|2[0-3]):([0-5]\d)")


class QuietHours(NamedTuple):
    """From one minute of the day to before another one; over midnight if the second is earlier."""

    begin: int
    end: int

    @classmethod
    def of(cls, text: str) -> QuietHours:
        """Return the quiet hours of a text such as `22:00-07:30`.

        Raises:
            ValueError: It is no such text, or names no stretch of time.
        """
        found = _SPAN.fullmatch(text.strip())
        if found is None:
            raise ValueError("two times of the day, such as 22:00-07:30")
        begin_hour, begin_minute, end_hour, end_minute = map(int, found.groups())
        begin = begin_hour * 60 + begin_minute
        end = end_hour * 60 + end_minute
        if begin == end:
            raise ValueError("two different times, such as 22:00-07:30")
        return cls(begin, end)

    def hold(self, minute: int) -> bool:
        """Return whether a minute of the day (0 to 1439) lies in them."""
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


def minute_of_day(now: float) -> int:
    """Return the minute of the day by the local clock, of seconds since the epoch."""
    local = time.localtime(now)
    return local.tm_hour * 60 + local.tm_min
