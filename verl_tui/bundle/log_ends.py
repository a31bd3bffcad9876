"""The last lines of a log and the tracebacks in it, within a bounded number of bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.files.compressed import CompressedTail, is_compressed
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats.console.bars import has_bar
from verl_tui.text import safe, strip_ansi
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

END_BYTES = 512 * 1024
"""Bytes at the end of a log from which the last lines are taken."""
LINE_BYTES = 4000
"""Characters of one line that are kept."""
SEARCHED = 32 * 2**20
"""Bytes at the beginning and as many at the end in which tracebacks are searched."""
_UNPACKED = 256 * 2**20
"""Most bytes of a compressed log that are unpacked."""
_KINDS = 5
"""Kinds of tracebacks kept from the front and from the back: the first is mostly the cause."""
_TRACEBACK_LINES = 200
_TRACEBACK_BYTES = 64 * 1024
_MOST_TRACEBACKS = 1000
"""Tracebacks looked at in a log."""
_MARK = b"Traceback (most recent call last)"
_PREFIX = pattern(r"^(?:\([^)\n]{1,120}\) |\[?rank\d+\]?: ?|\[\w+(?: \d*)?\] ?)")
"""`(TaskRunner pid=123) ` and `[rank0]: `, which distinguish the lines of several processes."""
_CONTINUED = (b"During handling of the above", b"the direct cause of the following")
_NEAR = 200
"""Bytes before a traceback that may say that it belongs to the one above."""
_GOES_ON = ("During handling of the above", "The above exception was")
_VARIES = pattern(r"0x[0-9a-f]+|\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The part of a log that is kept."""

    lines: Sequence[str]
    """Its last ones."""
    note: str
    """Which part of it this is."""
    tracebacks: Sequence[str]
    """Each kind once, in their order."""
    head: str
    """Its beginning and its end, where versions are searched for."""


def read_end(path: Path, most: int) -> LogEnd:
    """Return the last lines of a log, and its tracebacks.

    Args:
        path: The file, which may be compressed.
        most: Lines kept.

    Raises:
        OSError: The file cannot be read.
    """
    front, back, size = _ends(path)
    data = back[-END_BYTES:]
    if len(data) < size:
        data = data.partition(b"\n")[2] or data
    lines = list(_lines(data))
    kept = lines[-most:]
    all_kept = len(data) == size and len(kept) == len(lines)
    part = "all of it" if all_kept else "its end"
    all_searched = size <= 2 * SEARCHED
    searched = "all of it" if all_searched else "its beginning and its end"
    note = (
        f"{counted(len(kept), 'line')}, {part}, of {size:,} bytes; tracebacks were searched in "
        f"{searched}"
    )
    both = front + b"\n" * bool(front) + back
    versions = both[:END_BYTES] + b"\n" + data
    head = versions.decode("utf-8", "replace")
    return LogEnd(kept, note, _kinds(_tracebacks(both)), head)


def _ends(path: Path) -> tuple[bytes, bytes, int]:
    """Return the beginning and the end of a log, which do not overlap, and its size."""
    if is_compressed(path):
        return _unpacked(path)
    with opened(path) as file:
        size = file.seek(0, 2)
        at = max(0, size - SEARCHED)
        file.seek(0)
        front = file.read(min(SEARCHED, at))
        file.seek(at)
        return front, file.read(SEARCHED), size


def _unpacked(path: Path) -> tuple[bytes, bytes, int]:
    tail = CompressedTail(path)
    size = 0
    more = True
    front = bytearray()
    back = bytearray()
    while more and size < _UNPACKED:
        try:
            chunk = tail.read()
        except OSError:
            if not size:
                raise
            break
        size += len(chunk.data)
        more = chunk.more
        front += chunk.data[: max(0, SEARCHED - len(front))]
        back = (back + chunk.data)[-SEARCHED:]
    return (b"" if size == len(back) else bytes(front)), bytes(back), size


def _lines(data: bytes) -> Iterator[str]:
    """Yield the lines in some bytes; of a progress bar that overwrote itself, only the last
    state.
    """
    for line in data.removesuffix(b"\n").split(b"\n"):
        printed = line.rstrip(b"\r").split(b"\r")
        states = [state for state in printed if state.strip()] or [b""]
        others = [state for state in states[:-1] if not has_bar(state)]
        for state in (*others, states[-1]):
            text = strip_ansi(state[: 4 * LINE_BYTES]).decode("utf-8", "replace")
            yield safe(text, LINE_BYTES).replace("\n", " ").rstrip()


def _tracebacks(data: bytes) -> Iterator[str]:
    at = data.find(_MARK)
    for _ in range(_MOST_TRACEBACKS):
        if at < 0:
            return
        if not any(words in data[max(0, at - _NEAR) : at] for words in _CONTINUED):
            start = data.rfind(b"\n", 0, at) + 1
            yield "\n".join(_traceback(_lines(data[start : start + _TRACEBACK_BYTES])))
        at = data.find(_MARK, at + len(_MARK))


def _traceback(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of the traceback that these begin with, those of its process alone."""
    first = next(lines)
    prefix = _prefix(first)
    yield first
    ended = False
    for _, line in zip(range(_TRACEBACK_LINES), lines, strict=False):
        if _prefix(line) != prefix:
            continue
        said = line.removeprefix(prefix)
        goes_on = said.startswith((*_GOES_ON, "Traceback"))
        indented = not said[:1].strip()
        if ended and not (goes_on or indented):
            return
        yield line
        # The lines of another process's traceback may follow its own last line, indented.
        ended = not goes_on and not indented


def _prefix(line: str) -> str:
    found = _PREFIX.match(line)
    return found[0] if found else ""


def _kinds(tracebacks: Iterable[str]) -> list[str]:
    """Return each kind of traceback once with its count; of many kinds, the first and the last."""
    kinds: dict[str, list[str]] = {}
    for one in tracebacks:
        kinds.setdefault(_VARIES.sub("#", one), []).append(one)
    texts = []
    for first, *more in kinds.values():
        note = f"\n[{len(more) + 1:,} of this kind]" if more else ""
        texts.append(f"{first}{note}")
    left = len(texts) - 2 * _KINDS
    if left > 0:
        texts[_KINDS:-_KINDS] = [f"[{counted(left, 'further kind')} left out]"]
    return texts
