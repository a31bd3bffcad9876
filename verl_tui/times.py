"""Moments and durations: which clock to believe, and how to write a duration in few characters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import isnan, nan

from verl_tui.patterns import pattern

_ZONES = 26 * 3600.0
"""Seconds by which two honest clocks can differ through their time zones alone (UTC-12 to
UTC+14).
"""
COMPUTERS = 1e9
"""Seconds since the epoch, in 2001: an earlier time counts from elsewhere, such as the start of a
program.
"""
_YEAR = 365.25
"""Days."""
_WEEK, _HALF_A_YEAR = 6 * 86_400.0, 180 * 86_400.0
"""Seconds within which a day is named by its weekday, or needs no year."""
EARLIEST, LATEST = -6e10, 1e11
"""Seconds since the epoch, in the years 68 and 5138, beyond which a time is invalid: calendars end
with the year 9999, and milliseconds are larger.
"""


def dated(times: Sequence[float]) -> Sequence[float]:
    """Return the moments that a calendar has, nan in place of all others; nothing where it has none
    of them.
    """
    # never so where the first is nan
    if not times or (min(times) > EARLIEST and max(times) < LATEST):
        return times
    known = [time if EARLIEST < time < LATEST else nan for time in times]
    if all(map(isnan, known)):
        return ()
    return known


def parse_time(text: object) -> float | None:
    """Return seconds since the epoch of an ISO 8601 timestamp or a number; a time without a zone is
    local time.
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        if 1e8 < text < LATEST:
            return float(text)
        return None
    if not isinstance(text, str):
        return None
    try:
        # Python 3.10 knows no `Z`.
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


_CLOCK = pattern(r"(?:(\d{1,6}) days?, )?(\d{1,6}):(\d\d):(\d\d)(\.\d{1,9})?")
_WORDS = pattern(
    r"(?:(\d{1,6})d ?)?(?:(\d{1,6})h ?)?(?:(\d{1,6})m(?!s) ?)?(?:(\d{1,9})(\.\d{1,9})?s)?"
    r"(?:(\d{1,9})ms)?"
)


def parse_elapsed(text: object) -> float | None:
    """Return seconds of a duration: `0:01:03` and `3 days, 17:51:32` as Python does, `1h 2m 3s`
    and Prometheus's `1s500ms`; None otherwise.
    """
    if not isinstance(text, str):
        return None
    found = _CLOCK.fullmatch(text.strip()) or _WORDS.fullmatch(text.strip())
    if not found or not any(found.groups()):
        return None
    days, hours, minutes, seconds, rest, *thousandths = found.groups(default="0")
    return (
        int(days) * 86_400
        + int(hours) * 3600
        + int(minutes) * 60
        + int(seconds)
        + float(rest)
        + sum(map(int, thousandths)) / 1000
    )


def trusted_time(
    stated: float | None, modified: float | None, *, absolute: bool
) -> float | None:
    """Return when a record was written, of the time it states and the time its file changed.

    A stated time without a zone can be half a day off, the file's time is exact; but a copy of an
    old log carries a new file time, so a stated time that lies further back than zones explain is
    believed, and so is an absolute one.

    Args:
        stated: What the record states.
        modified: When its file changed last.
        absolute: Whether what is stated counts from the epoch: no zone is in doubt then.
    """
    if absolute and stated is not None and modified is not None:
        # No record is younger than its file: the clocks of two hosts differ.
        if stated > COMPUTERS:
            return min(stated, modified)
        return modified
    if stated is None or modified is None:
        return stated if modified is None else modified
    return stated if modified - stated > _ZONES else modified


def duration(seconds: float | None) -> str:
    """Return a duration as `8s`, `12m`, `3h 05m`, `2d 4h`; an en dash for None."""
    if seconds is None or isnan(seconds) or seconds < 0:
        return "–"
    if seconds == float("inf"):
        return "∞"
    minutes = int(seconds // 60)
    hours = int(seconds // 3600)
    if seconds < 60:
        return f"{int(seconds)}s"
    if minutes < 60:
        return f"{minutes}m"
    if hours < 48:
        return f"{hours}h {minutes % 60:02d}m"
    return f"{hours // 24}d {hours % 24}h"


def clock_time(moment: float, now: float) -> str:
    """Return the local time of a moment, with as much of the date as is needed: `14:32`, `Thu
    14:32` of the days to come, `03 Dec 14:32`, `2024-12-03`; empty where no calendar has it.
    """
    try:
        then, today = map(
            datetime.fromtimestamp, (moment, now)
        )  # the reader's own clock
    except (OverflowError, OSError, ValueError):
        return ""
    if then.date() == today.date():
        return f"{then:%H:%M}"
    if abs(moment - now) > _HALF_A_YEAR:
        return f"{then:%Y-%m-%d}"
    soon = 0 < moment - now < _WEEK
    return f"{then:%a %H:%M}" if soon else f"{then:%d %b %H:%M}"


def age(seconds: float | None) -> str:
    """Return an age that changes seldom, so that a quiet screen stays quiet: `now`, `20s`, `3m`,
    `2h 10m`, `12d`, `4.7y`.
    """
    if seconds is None or not 0 <= seconds < float("inf"):
        return duration(seconds)
    if seconds < 60:
        return "now" if seconds < 10 else f"{int(seconds // 10) * 10}s"
    days = seconds / 86_400
    if days >= 2 * _YEAR:
        return f"{days / _YEAR:.1f}y"
    return f"{int(days)}d" if days >= 10 else duration(seconds)
