"""Timestamps at the beginning of a console's lines, and the counters of heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Pulse
from verl_tui.text import one_line
from verl_tui.times import parse_time

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

_STAMP = pattern(rb"20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_STAMP_WITHIN = 90
"""First bytes of a line in which its timestamp is looked for."""
_TENS = len("2026-11-22 11:31:2")
_COUNTERS = pattern(
    rb"[.,\d]*\]?:? ?(?P<counters>(?:[a-z_]{3,20}: \d{1,12}, ){1,8}[a-z_]{3,20}: \d{1,12})\s*$"
)
"""Counters that verl 0.9's trainer prints each minute while waiting (`ppo/v1/replay_buffer.py`)."""


def stamp_in(line: bytes) -> re.Match[bytes] | None:
    """Return the timestamp at the beginning of a line, None without one."""
    if b"20" not in line[:_STAMP_WITHIN]:
        return None
    return _STAMP.search(line, 0, _STAMP_WITHIN)


def has_counters(line: bytes) -> bool:
    """Return whether a line has the counters of a heartbeat behind its timestamp."""
    found = stamp_in(line)
    return found is not None and _COUNTERS.match(line, found.end()) is not None


class TimestampReader:
    """Reads the timestamps of one console."""

    def __init__(self) -> None:
        self.last = b""
        """The last timestamp reported, to ten seconds: lines come by the thousand."""

    def read(self, line: bytes) -> Sequence[Pulse]:
        """Return the timestamp at the beginning of a line with the counters of a heartbeat, nothing
        if it was reported before.
        """
        found = stamp_in(line)
        if found is None:
            return ()
        counters = _COUNTERS.match(line, found.end())
        tens = found.group()[:_TENS]
        if counters is None and tens == self.last:
            return ()
        self.last = tens
        time = parse_time(found.group().decode().replace("T", " "))
        text = ""
        if counters is not None:
            text = one_line(counters["counters"].decode(), 120)
        return (Pulse(time, text),)
