"""Logs that were rotated: `train.log.2.gz`, `train.log.1` and `train.log` are one log, in this
order.

The parts are named as logrotate does it (`x.log.1`, `x.log-20241205.gz`), and as Python's
`RotatingFileHandler` (`x.log.1`) and `TimedRotatingFileHandler` (`x.log.2024-12-05`,
`x.log.2024-12-05_13-00`).
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.files.compressed import SUFFIX, CompressedTail, is_compressed
from verl_tui.sources.files.paths import file_size, why
from verl_tui.sources.files.tail import CHUNK, Chunk, Follower, Tail

if TYPE_CHECKING:
    from pathlib import Path

_PART = pattern(
    r"(?P<base>(?:.*\.(?:log|jsonl|out|err|txt)|stdout|stderr|output|nohup|console|log))"
    r"(?:\.(?P<number>\d{1,4})|[.-](?P<date>\d{4}-?\d\d-?\d\d"
    r"(?:[T_-]\d\d[-:]?\d\d(?:[-:]?\d\d)?|-\d{10})?))(?:\.gz)?",
    re.IGNORECASE,
)


@lru_cache(maxsize=2**15)
def base(name: str) -> str | None:
    """Return the name of the log that a file is an older part of; None if it is none."""
    found = _PART.fullmatch(name)
    return found["base"] if found else None


def parts(path: Path) -> list[Path]:
    """Return the older parts of a log, the oldest first: by date, then by numbers, the highest
    first.
    """
    try:
        every = os.listdir(path.parent)  # noqa: PTH208 - names are enough
    except OSError:
        return []
    aged = {}
    for name in every:
        # one that is being compressed lies there twice for a moment
        twice = name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in every
        found = _PART.fullmatch(name)
        if found and found["base"] == path.name and not twice:
            aged[name] = found["date"] or "~", -int(found["number"] or 0)
    return [path.parent / name for name in sorted(aged, key=aged.__getitem__)]


def newest_part(path: Path) -> Path:
    """Return the file with the newest lines of a log: its own, or the last part while there is
    none.
    """
    older = () if file_size(path) else parts(path)
    return older[-1] if older else path


class RotatedTail(Follower):
    """Reads the parts of a log one after the other, then follows the file that is written, also
    over its rotation.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._tails: list[Tail | CompressedTail] = []
        """Of the parts that are left, the oldest first, and of the file that is written."""
        self._parts = 0
        """Parts that have been read."""
        self._before = 0
        """Their bytes."""

    @property
    def note(self) -> str | None:
        """Say how many older parts of the log there were."""
        if not self._parts:
            return None
        parts = "older part" if self._parts == 1 else f"{self._parts} older parts"
        return f"read with its {parts}"

    def read(self, limit: int = CHUNK) -> Chunk:
        """Read at most `limit` new bytes.

        Raises:
            OSError: The file that is written is gone or may not be read.
        """
        if not self._tails:
            self._tails = [*map(_tail_of, parts(self.path)), Tail(self.path)]
        try:
            return self._of_part(limit) if self._tails[1:] else self._of_file(limit)
        finally:
            tail, *waiting = self._tails
            self.offset = self._before + tail.offset
            ahead = sum(file_size(one.path) for one in waiting)
            self.size = self._before + tail.size + ahead
            self.modified = tail.modified or self.modified

    def _of_part(self, limit: int) -> Chunk:
        tail, *waiting = self._tails
        try:
            chunk = tail.read(limit)
        except OSError as error:
            chunk = Chunk(b"", lost=f"{tail.path.name}: {why(error)}")
        if not chunk.more:
            self._before += tail.size
            self._parts += 1
            self._tails = waiting
            chunk.more = len(waiting) > 1 or self.path.exists()
        return chunk

    def _of_file(self, limit: int) -> Chunk:
        """Read the file that is written, or turn to the part that it has become."""
        (tail,) = self._tails
        known, last = tail.offset, getattr(tail, "last", b"")
        try:
            chunk = tail.read(limit)
        except FileNotFoundError:
            if self._turned(known, last):
                return Chunk(b"", more=True)
            if not self._before:
                raise
            return Chunk(b"")  # renamed, and nothing has been written since
        if chunk.restarted is not None and self._turned(known, last):
            return Chunk(b"", more=True)
        return chunk

    def _turned(self, known: int, last: bytes) -> bool:
        """Turn to the part that the file has become, where it was renamed, copied away or
        compressed since; return whether there is one.

        Args:
            known: The bytes that had been read of the file.
            last: The last ones.
        """
        older = parts(self.path) if known else []
        for at in reversed(range(len(older))):
            tail = _tail_of(older[at])
            if _is_continued(tail, known, last):
                later = map(_tail_of, older[at + 1 :])
                self._tails = [tail, *later, Tail(self.path)]
                return True
        return False


def _tail_of(part: Path) -> Tail | CompressedTail:
    return CompressedTail(part) if is_compressed(part) else Tail(part)


def _is_continued(tail: Tail | CompressedTail, known: int, last: bytes) -> bool:
    """Return whether a part begins with what had been read of a file, and read as far."""
    left, found, more = known, b"", True
    if isinstance(tail, Tail):
        left = len(last)
        tail.offset = known - left
    with suppress(OSError):
        while left > 0 and more:
            chunk = tail.read(min(left, CHUNK))
            left, more = left - len(chunk.data), chunk.more
            found = (found + chunk.data)[-len(last) :]
    return not left and found == last
