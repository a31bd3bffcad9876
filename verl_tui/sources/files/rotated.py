"""Logs that were rotated: `train.log.2.gz`, `train.log.1` and `train.log` are one log, in this
order.

The parts are named as logrotate does it (`x.log.1`, `x.log-20241205.gz`), as Python's
`RotatingFileHandler` (`x.log.1`) and `TimedRotatingFileHandler` (`x.log.2024-12-05`,
`x.log.2024-12-05_13-00`), and as loguru does it (`x.2024-12-05_13-00-00_123456.log`).
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.files.compressed import SUFFIX, CompressedTail, is_compressed
from verl_tui.sources.files.paths import file_size, why
from verl_tui.sources.files.tail import CHUNK, Chunk, Tail

if TYPE_CHECKING:
    from pathlib import Path

_DATE = r"\d{4}-?\d\d-?\d\d(?:[T_-]\d\d[-:]?\d\d(?:[-:]?\d\d)?|-\d{10})?"
_PART = pattern(
    r"(?P<base>(?:.*\.(?:log|jsonl|out|err|txt)|stdout|stderr|output|nohup|console|log))"
    rf"(?:\.(?P<number>\d{{1,4}})|[.-](?P<date>{_DATE}))",
    re.IGNORECASE,
)
_LOGURU = pattern(
    r"(?P<stem>.+)\.(?P<date>\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{6})(?P<suffix>\.(?:log|jsonl|out"
    r"|txt))"
)


@lru_cache(maxsize=2**15)
def base(name: str) -> str | None:
    """Return the name of the log that a file is an older part of; None if it is none."""
    name = name[: -len(SUFFIX)] if name.lower().endswith(SUFFIX) else name
    if found := _PART.fullmatch(name):
        return found["base"]
    found = _LOGURU.fullmatch(name)
    if not found:
        return None
    return found["stem"] + found["suffix"]


def parts(path: Path) -> list[Path]:
    """Return the older parts of a log, the oldest first."""
    try:
        every = os.listdir(path.parent)  # noqa: PTH208 - names are enough
        names = [name for name in every if base(name) == path.name]
    except OSError:
        return []
    # A part that is being compressed lies there twice for a moment.
    whole = [
        name
        for name in names
        if not name.lower().endswith(SUFFIX) or name[: -len(SUFFIX)] not in names
    ]
    return [path.parent / name for name in sorted(whole, key=_age)]


def newest_part(path: Path) -> Path:
    """Return the file with the newest lines of a log: its own, or the last part while there is
    none.
    """
    older = () if file_size(path) else parts(path)
    return older[-1] if older else path


def _age(name: str) -> tuple[bool, int, str]:
    """Return what sorts the parts of a log, the oldest first: by date, then by numbers, the highest
    first.
    """
    plain = name[: -len(SUFFIX)] if name.lower().endswith(SUFFIX) else name
    found = _PART.fullmatch(plain) or _LOGURU.fullmatch(plain)
    number = found.groupdict().get("number") if found else None
    return (number is not None, -int(number or 0), found["date"] or "" if found else "")


class RotatedTail:
    """Reads the parts of a log one after the other, then follows the file that is written, also
    over its rotation.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tails: list[Tail | CompressedTail] = [Tail(path)]
        """Of the parts, the oldest first, and of the file that is written."""
        self._at = 0
        """Which of them is read."""
        self._is_begun = False
        self._before = 0
        """Bytes of the parts that have been read."""

    @property
    def _tail(self) -> Tail | CompressedTail:
        return self._tails[self._at]

    @property
    def offset(self) -> int:
        """Bytes read so far, of all parts."""
        return self._before + self._tail.offset

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        waiting = self._tails[self._at + 1 :]
        return (
            self._before + self._tail.size + sum(file_size(one.path) for one in waiting)
        )

    @property
    def modified(self) -> float | None:
        """Time of the last change of the file that is read."""
        return self._tail.modified or self._tails[max(0, self._at - 1)].modified

    @property
    def note(self) -> str | None:
        """Say how many older parts of the log there were."""
        if not self._at:
            return None
        parts = "older part" if self._at == 1 else f"{self._at} older parts"
        return f"read with its {parts}"

    def read(self, limit: int = CHUNK) -> Chunk:
        """Read at most `limit` new bytes.

        Raises:
            OSError: The file that is written is gone or may not be read.
        """
        if not self._is_begun:
            self._is_begun = True
            self._tails = [*map(_tail_of, parts(self.path)), Tail(self.path)]
        if self._tail is self._tails[-1]:
            self._follow()
        tail = self._tail
        if tail is self._tails[-1]:
            try:
                return tail.read(limit)
            except FileNotFoundError:
                if not self._before:
                    raise
                # it has been renamed, and nothing has been written since
                return Chunk(b"")
        try:
            chunk = tail.read(limit)
        except OSError as error:
            chunk = Chunk(b"", lost=f"{tail.path.name}: {why(error)}")
        more = chunk.more
        if not more:
            self._before += tail.size
            self._at += 1
            more = self._tail is not self._tails[-1] or self.path.exists()
        return Chunk(chunk.data, None, more=more, lost=chunk.lost)

    def _follow(self) -> None:
        """Turn to the part that the file has become, where it was renamed, copied away or
        compressed since.
        """
        tail = self._tail
        if not isinstance(tail, Tail) or tail.is_there() or not tail.identity:
            return
        older = parts(self.path)
        for at in reversed(range(len(older))):
            found = _continued(tail, older[at])
            if found is not None:
                later = map(_tail_of, older[at + 1 :])
                self._tails[-1:] = [found, *later, Tail(self.path)]
                return


def _tail_of(part: Path) -> Tail | CompressedTail:
    return CompressedTail(part) if is_compressed(part) else Tail(part)


def _continued(tail: Tail, part: Path) -> Tail | CompressedTail | None:
    """Return what reads on in a part from where a file has been read, None if the part is
    another.
    """
    try:
        if not is_compressed(part):
            if not tail.is_continued_by(part):
                return None
            tail.path = part
            return tail
        return _skipped(tail, part)
    except OSError:
        return None


def _skipped(tail: Tail, part: Path) -> CompressedTail | None:
    """Return a compressed part, read as far as the file before it was compressed; None if it is
    another.
    """
    packed = CompressedTail(part)
    begin = b""
    last = b""
    left = tail.offset
    while left > 0:
        chunk = packed.read(min(left, CHUNK))
        if not chunk.data and not chunk.more:
            return None
        begin = begin or chunk.data
        if not begin.startswith(tail.head[: len(begin)]):
            return None
        last = (last + chunk.data)[-CHUNK:]
        left = left - len(chunk.data)
    if tail.offset and last.endswith(tail.last):
        return packed
    return None
