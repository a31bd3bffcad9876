"""Timestamps at the beginning of a console's lines, and the counters of heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.records import Pulse
from verl_tui.text import one_line
from verl_tui.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence

_STAMP = pattern(rb"20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_STAMP_WITHIN = 90
"""First bytes of a line in which its timestamp is looked for."""
_TENS = len("2026-11-22 11:31:2")
_COUNTERS = pattern(
    rb"[.,\d]*\]?:? ?(?P<counters>(?:[a-z_]{3,20}: \d{1,12}, ){1,8}[a-z_]{3,20}: \d{1,12})\s*$"
)
"""Counters that verl 0.9's trainer prints each minute while waiting (`ppo/v1/replay_buffer.py`)."""


def only_place(line: bytes) -> int | None:
    """Return where a line has its only timestamp, None where it has several, or none at its
    beginning.
    """
    places = [found.start() for found in _STAMP.finditer(line, 0, _STAMP_WITHIN)]
    is_only = len(places) == 1 and _STAMP.search(line, places[0] + 1) is None
    return places[0] if is_only else None


def has_counters(part: bytes) -> bool:
    """Return whether a line has the counters of a heartbeat behind its timestamp."""
    found = _STAMP.search(part)
    return found is not None and _COUNTERS.match(part, found.end()) is not None


class TimestampReader:
    """Reads the timestamps of one console."""

    def __init__(self) -> None:
        self.last = b""
        """The last timestamp reported, to ten seconds: lines come by the thousand."""

    def repeats(self, line: bytes) -> bool:
        """Return whether a line without counters has the timestamp that was reported last."""
        return bool(self.last) and self.last in line

    def read(self, part: bytes) -> Sequence[Pulse]:
        """Return the timestamp at the beginning of a line with the counters of a heartbeat, nothing
        if it was reported before.
        """
        found = None
        if b"20" in part[:_STAMP_WITHIN]:
            found = _STAMP.search(part, 0, _STAMP_WITHIN)
        if found is None:
            return ()
        counters = _COUNTERS.match(part, found.end())
        tens = found.group()[:_TENS]
        if counters is None and tens == self.last:
            return ()
        self.last = tens
        time = parse_time(found.group().decode().replace("T", " "))
        text = ""
        if counters is not None:
            text = one_line(counters["counters"].decode(), 120)
        return (Pulse(time, text),)
