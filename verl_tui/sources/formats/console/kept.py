r"""Consoles as something else than a file keeps them.

Log collectors write each line into a JSON object, with the time it was printed: Docker's
`json-file` driver, which is its default, `{"log": "…\n", "stream": "stdout", "time": "…"}`; Loki,
Fluent Bit, journald (`journalctl -o json`) and Google Cloud the same under other names. Docker cuts
what is longer than 16 KiB into pieces, only the last of which ends with a line's end
(`daemon/logger/copier.go`).

A terminal shows a line in as many rows as it needs (`tmux capture-pane` without `-J`). That a log
is such a capture shows where a record goes on behind a row as wide as any; from then on rows are
put together, with the spaces that captures leave out at their ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import orjson

from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import names
from verl_tui.sources.formats.console.step_lines import STEP
from verl_tui.sources.formats.lines import LONGEST_LINE
from verl_tui.text import decoded
from verl_tui.times import parse_time

_TEXT, _TIME = names("kept_line"), names("kept_time")
_PIECE = 16 * 1024
"""Bytes of Docker's pieces."""
_MICROSECONDS = 10**14
"""Numbers from here on count microseconds, as journald does."""
_LONGEST = 20
"""Digits of a number that may be a time."""
_FRACTION = pattern(r"\.(\d{1,9})")

_NARROWEST, _WIDEST = 40, 1000
"""Columns of terminals."""
_MOST_ROWS = 2000
"""Rows of one line, two million characters; and those among which a wrapped record is looked
for.
"""
_NEVER_SHOWN = pattern(rb"\{\"|[^\x08\r\x1b]*[\x08\r\x1b]")
"""What is no row of a terminal: an object, and what moves the cursor or sets a colour."""
_BEGINS = pattern(
    rb"\((?:\S{1,99} )?pid=|\[rank\d|step:-?\d+(?:e\d+)? - |\{'|Traceback \("
    rb"|20\d\d-\d\d-\d\d[ T]|[\w ]{0,40}:? {0,3}\d{1,3}%\||\s*$"
)
"""Begins a line, not a row."""
_STEP_GOES_ON = pattern(rb" ?(?:- )?[^ ]*(?: - [^ ]+)+(?: -)?$| ?[^ ]*[\d)]$")
_DICT_GOES_ON = pattern(rb"[^ ].*(?:': |\})|.*\d'?\}$")
"""Rows within a record; a program that breaks the lines of settings indents them."""
_BEFORE_SPACE, _BEHIND_SPACE = (b" -", b",", b":"), (b"- ", b"'", b'"')
"""Metrics have a space here, which captures leave out at the end of a row."""


class PrintedLine(NamedTuple):
    """A line as it was printed."""

    text: bytes
    number: int
    time: float | None = None
    """Seconds since the epoch, where a collector says when it was printed."""


class _Entry(NamedTuple):
    """What a collector keeps of a line, or of several."""

    text: bytes
    time: float | None
    stream: str


def as_printed(head: bytes) -> bytes:
    """Return the beginning of a console as it was printed; nothing if no collector keeps it."""
    if not head.lstrip().startswith(b"{"):
        return b""
    entries = filter(None, map(_entry, head.split(b"\n")))
    return b"".join(one.text.removesuffix(b"\n") + b"\n" for one in entries)


def printed_line(line: bytes) -> bytes:
    """Return a line as it was printed, if a collector keeps it with its time."""
    entry = _entry(line) if line.startswith(b'{"') else None
    return line if not entry or entry.time is None else entry.text


class KeptLines:
    """Tells how a console is kept, and returns its lines as they were printed."""

    def __init__(self) -> None:
        self.is_plain = False
        """True once it is known that no collector keeps the lines and no terminal wrapped them."""
        self._collected: bool | None = None
        """None until the first line."""
        self._pieces: dict[str, bytes] = {}
        """Stream -> the beginning of a line that goes on."""
        self._more = 0
        """Lines beyond the file's own: an object may hold several."""
        self.wrapped = False
        self._width = _NARROWEST
        """Width of the widest row."""
        self._rows: list[bytes] = []
        """The rows so far of a line that may go on."""
        self._first = 0
        """The number of the first of them."""

    @property
    def note(self) -> str | None:
        """Say that lines were put together."""
        width = f"lines that a terminal of {self._width} columns wrapped"
        return f"{width} were put together" if self.wrapped else None

    def is_cut(self, line: bytes) -> bool:
        """Return whether a line without an end is an object that is not whole."""
        return self._is_collected(line) and _entry(line) is None

    def may_be_row(self, line: bytes) -> bool:
        """Return whether a line without an end may be half a row or an object."""
        is_row = not self.is_plain and _NEVER_SHOWN.match(line) is None
        return is_row or self._is_collected(line)

    def lines(self, line: bytes, number: int) -> Iterator[PrintedLine] | None:
        """Return the lines that one of the log completes; None if no line is in it."""
        if not self._is_collected(line):
            return self._unwrapped(line, number)
        entry = _entry(line)
        if not entry:
            return None if line.strip() else iter(())
        return self._of_entry(entry, number)

    def _is_collected(self, line: bytes) -> bool:
        if self._collected is None and line.strip():
            self._collected = bool(as_printed(line))
        return self._collected is True

    def _of_entry(self, entry: _Entry, number: int) -> Iterator[PrintedLine]:
        text = self._pieces.pop(entry.stream, b"") + entry.text
        if len(entry.text) >= _PIECE and not text.endswith(b"\n"):
            self._pieces[entry.stream] = text[:LONGEST_LINE]
            return
        lines = text.removesuffix(b"\n").split(b"\n")
        for at, printed in enumerate(lines, number + self._more):
            yield PrintedLine(printed, at, entry.time)
        self._more += len(lines) - 1

    def _unwrapped(self, line: bytes, number: int) -> Iterator[PrintedLine]:
        """Yield the lines that a row of a terminal completes, or that is none itself."""
        row = line.removesuffix(b"\r")
        width = _characters(row)
        yield from self._before(row)
        self.is_plain = self.is_plain or self._is_no_row(row, width, number)
        may_go_on = self._may_go_on(row, width)
        self._width = max(self._width, width)
        if self.is_plain or not may_go_on:
            yield from self.held()
            yield PrintedLine(line, number)
            return
        if not self._rows:
            self._first = number
        self._rows.append(row)
        is_last = width < self._width - 1 or len(self._rows) >= _MOST_ROWS
        if self.wrapped and is_last:
            yield from self.held()

    def _before(self, row: bytes) -> Iterator[PrintedLine]:
        """Yield the rows before one, where they are a line without it."""
        if self._rows and self._goes_on(row):
            self.wrapped = True
        elif self._rows:
            # A step line that might have gone on did not.
            self.is_plain = not self.wrapped and STEP.search(self._rows[0]) is not None
            yield from self.held()

    def _is_no_row(self, row: bytes, width: int, number: int) -> bool:
        widest = self._width + 1 if self.wrapped else _WIDEST
        is_late = number > _MOST_ROWS and not self.wrapped
        return is_late or width > widest or _NEVER_SHOWN.match(row) is not None

    def _may_go_on(self, row: bytes, width: int) -> bool:
        """Return whether a row may be one of several; a space may have been left out."""
        if self.wrapped or width + 1 < self._width:
            return self.wrapped
        return STEP.search(row) is not None or row.rfind(b"{'") > row.rfind(b"}")

    def _goes_on(self, row: bytes) -> bool:
        """Return whether a row belongs to the line of the ones before."""
        before = self._rows[-1]
        if _BEGINS.match(row):
            return False
        if self.wrapped:
            lost = before.endswith(_BEFORE_SPACE) or row.startswith(_BEHIND_SPACE)
            return lost or _characters(before) == self._width
        if STEP.search(before):
            return _STEP_GOES_ON.match(row) is not None
        return _DICT_GOES_ON.match(row) is not None

    def held(self) -> Iterator[PrintedLine]:
        """Yield the line that the rows so far are, if there are any."""
        if self._rows:
            *rows, end = self._rows
            self._rows = []
            full = (row + b" " * (self._width - _characters(row)) for row in rows)
            yield PrintedLine(b"".join((*full, end)), self._first)


def _characters(row: bytes) -> int:
    return len(row) if row.isascii() else len(decoded(row))


def _entry(line: bytes) -> _Entry | None:
    """Return the entry in an object; None if it is not an object, or holds no line."""
    try:
        found = orjson.loads(line)
        text = next(
            found[key] for key in _TEXT if isinstance(found.get(key), str | list)
        )
        # journald writes a line with control characters as a list of bytes
        printed = text.encode() if isinstance(text, str) else bytes(text)
    except (ValueError, TypeError, AttributeError, StopIteration):
        return None
    time = next((found[key] for key in _TIME if key in found), None)
    return _Entry(printed, _seconds(time), str(found.get("stream")))


def _seconds(value: object) -> float | None:
    if isinstance(value, str) and value.isdecimal():
        number = int(value[:_LONGEST])
        value = number / 1e6 if number >= _MICROSECONDS else number
    elif isinstance(value, str):
        # Docker writes up to nine digits, of which Python 3.10 reads three or six.
        value = _FRACTION.sub(lambda found: f".{found[1][:6]:0<6}", value)
    return parse_time(value)
