"""What stands before the text of a console's line, and Ray's count behind it: names of the process
that printed it, before those the additions of containers, schedulers and log collectors, and the
time, with the counters of heartbeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import Pulse
from verl_tui.sources.formats.console.events import TABLE
from verl_tui.text import one_line
from verl_tui.times import parse_time

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

_PROCESS = pattern(
    rb"(?:\s?(?:\((?:[^()\s]+ )?(?:pid=[^()]*|raylet[^()]*)\)|\[rank\d+\]:) ?){1,3}"
)
"""Ray's `(TaskRunner pid=12, ip=10.0.0.2) `, torchrun's `[rank0]: `, and one behind another."""
ANOTHER = r"\s*(?:\((?:[^()\s]+ )?pid=|\[rank\d|\[?20\d\d-\d\d-\d\d|(?:DEBUG|INFO|WARN|ERROR)\w*\b)"
"""Begins what another process prints, also right behind something else."""
_ADDED = pattern(
    b"(?:(?:%b)(?: |(?<=:)|$)){1,3}"
    % b"|".join(one["match"].encode() for one in TABLE["added"])
)

_REPEATED = pattern(rb"\[repeated (\d+)x across cluster\]")
"""Ray's note behind a line that many processes printed."""
_MOST_DIGITS = 9

_STAMP = pattern(rb"20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_STAMP_WITHIN = 90
"""First bytes of a line in which its timestamp is looked for."""
_TENS = len("2026-11-22 11:31:2")
_COUNTERS = pattern(
    rb"[.,\d]*\]?:? ?(?P<counters>(?:[a-z_]{3,20}: \d{1,12}, ){1,8}[a-z_]{3,20}: \d{1,12})\s*$"
)
"""Counters that verl 0.9's trainer prints each minute while waiting (`ppo/v1/replay_buffer.py`)."""


class LineParts(NamedTuple):
    """A line in its parts."""

    added: bytes
    """What was put before the line after it was printed."""
    prefix: bytes
    """Ray's prefix, or torchrun's."""
    text: bytes


def parted(line: bytes, *, added: bool = True) -> LineParts:
    """Return the parts of a line without colours; `added` tells whether something may have been put
    before it.
    """
    lead = _ADDED.match(line) if added else None
    at = lead.end() if lead is not None else 0
    prefix = _PROCESS.match(line, at)
    end = prefix.end() if prefix is not None else at
    return LineParts(line[:at], line[at:end], line[end:])


def unrepeated(line: bytes) -> tuple[bytes, int]:
    """Return a line without the note, and how often the note says that it was printed."""
    found = _REPEATED.search(line)
    if found is None:
        return line, 1
    return line[: found.start()].rstrip(), max(1, int(found[1][:_MOST_DIGITS]))


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
        text = counters["counters"].decode() if counters is not None else ""
        return (Pulse(time, one_line(text, 120)),)
