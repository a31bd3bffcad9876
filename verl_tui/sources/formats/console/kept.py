r"""Consoles as something else than a file keeps them.

Log collectors write each line into a JSON object, with the time it was printed: Docker's
`json-file` driver, which is its default, `{"log": "…\n", "stream": "stdout", "time": "…"}`; Loki,
Fluent Bit, journald (`journalctl -o json`) and Google Cloud the same under other names. Docker cuts
what is longer than 16 KiB into pieces, of which only the last ends with a line's end
(`daemon/logger/copier.go`).

A terminal shows a line in as many rows as it needs (`tmux capture-pane` without `-J`). That a log
is such a capture shows where a record goes on behind a row as wide as any; from then on rows are
put together, with the spaces that captures leave out at their ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

from verl_tui.patterns import pattern
from verl_tui.records import Pulse
from verl_tui.sources.fields.jsonl import unreadable
from verl_tui.sources.fields.row_batcher import MetricRow, joined_notes
from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.console.step_lines import STEP
from verl_tui.sources.formats.lines import LONGEST_LINE
from verl_tui.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verl_tui.records import Record

_TEXT = ("log", "line", "textPayload", "MESSAGE", "message", "msg")
_TIME = ("time", "timestamp", "@timestamp", "ts", "__REALTIME_TIMESTAMP")
_PIECE = 16 * 1024
"""Bytes of Docker's pieces."""
_MICROSECONDS = 10**14
"""Numbers from here on count microseconds, as journald does."""
_LONGEST = 20
"""Digits of a number that may be a time."""
_FRACTION = pattern(r"\.(\d{1,9})")
_EACH = 10.0
"""Seconds between two times that are passed on: lines come by the thousand."""

_NARROWEST, _WIDEST = 40, 1000
"""Columns of terminals."""
_MOST_ROWS = 2000
"""Rows of one line, two million characters; and those among which a wrapped record is looked
for.
"""
_NEVER_SHOWN = pattern(rb"\{\"|[^\x08\r\x1b]*[\x08\r\x1b]")
"""What is no row of a terminal: an object, and what moves the cursor or sets a colour."""
_BEGINS = pattern(
    rb"\((?:[^()\s]+ )?pid=|\[rank\d|step:-?\d+(?:e\d+)? - |\{'|Traceback \("
    rb"|20\d\d-\d\d-\d\d[ T]|[\w ]{0,40}:? {0,3}\d{1,3}%\||\s*$"
)
"""Begins a line, not a row."""
_STEP_GOES_ON = pattern(rb" ?(?:- )?[^ ]*(?: - [^ ]+)+(?: -)?$| ?[^ ]*[\d)]$")
_DICT_GOES_ON = pattern(rb"[^ ].*(?:': |\})|.*\d'?\}$")
"""Rows within a record; a program that breaks the lines of settings indents them."""
_BEFORE_SPACE, _BEHIND_SPACE = (b" -", b",", b":"), (b"- ", b"'", b'"')
"""Metrics have a space here, which captures leave out at the end of a row."""


class _Entry(NamedTuple):
    """What a collector keeps of a line, or of several."""

    text: bytes
    time: float | None
    """Seconds since the epoch."""
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
    return line if entry is None or entry.time is None else entry.text


class KeptDecoder(ConsoleDecoder):
    """Decodes a console however it is kept: its first line shows whether by a collector."""

    def __init__(self) -> None:
        super().__init__()
        self._collected: bool | None = None
        """None until the first line."""
        self._pieces: dict[str, bytes] = {}
        """Stream -> the beginning of a line that goes on."""
        self._passed_on = 0.0
        """The last time that was passed on."""
        self._more = 0
        """Lines beyond the file's own: an object may hold several."""
        self._plain = False
        """True once it is known that no terminal wrapped the lines."""
        self._wrapped = False
        self._width = _NARROWEST
        """Width of the widest row."""
        self._rows: list[bytes] = []
        """The rows so far of a line that may go on."""
        self._first = 0
        """The number of the first of them."""

    @property
    def note(self) -> str | None:
        """Say that lines were put together, and all else that is to be said."""
        width = f"lines that a terminal of {self._width} columns wrapped"
        return joined_notes(
            super().note, f"{width} were put together" if self._wrapped else None
        )

    def last(self, line: bytes, number: int) -> Iterable[MetricRow | Record] | None:
        """Return the records of a line without an end; of an object only if it is whole."""
        if self._is_collected(line):
            return self.decode(line, number) if _entry(line) is not None else None
        if not self._wrapped:
            return super().last(line, number)
        return [*self.decode(line, number), *self._completed()]

    def early(self, line: bytes) -> int:
        """Return how many bytes of an unfinished line can be decoded: of an object or a row
        none.
        """
        may_be_row = not self._plain and _NEVER_SHOWN.match(line) is None
        return 0 if may_be_row or self._is_collected(line) else super().early(line)

    def held(self) -> Iterable[MetricRow | Record]:
        """Return the records that only wait for lines that may never come."""
        return [*self._completed(), *super().held()]

    def decode_all(self, text: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of complete lines."""
        out: list[MetricRow | Record] = []
        at = 0
        while at < len(text) and not (self._plain and self._collected is False):
            end = text.index(b"\n", at)
            out += self.decode(text[at:end], number)
            at = end + 1
            number += 1
        return [*out, *super().decode_all(text[at:], number)]

    def decode(self, line: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of one line, or of the line that a row completes."""
        if self._is_collected(line):
            return list(self._read_entry(line, number))
        read = super().decode if self._plain else self._read_row
        return read(line, number)

    def _is_collected(self, line: bytes) -> bool:
        if self._collected is None and line.strip():
            self._collected = bool(as_printed(line))
        return self._collected is True

    def _read_entry(self, line: bytes, number: int) -> Iterator[MetricRow | Record]:
        """Yield the records of what one object holds."""
        entry = _entry(line)
        if entry is None:
            if line.strip():
                yield unreadable(line, number, "no object with a line of the console")
            return
        text = self._pieces.pop(entry.stream, b"") + entry.text
        if len(entry.text) >= _PIECE and not text.endswith(b"\n"):
            self._pieces[entry.stream] = text[:LONGEST_LINE]
            return
        lines = text.removesuffix(b"\n").split(b"\n")
        for at, printed in enumerate(lines, number + self._more):
            found = super().decode(printed, at)
            yield from (_dated(one, entry.time) for one in found)
        self._more += len(lines) - 1
        time = entry.time
        if time is not None and not self._passed_on <= time < self._passed_on + _EACH:
            self._passed_on = time
            yield Pulse(time, "")

    # -- rows of a terminal ------------------------------------------------------------------------

    def _read_row(self, line: bytes, number: int) -> Iterable[MetricRow | Record]:
        row = line.removesuffix(b"\r")
        width = _characters(row)
        out = self._begun(row)
        self._plain = self._plain or self._is_no_row(row, width, number)
        may_go_on = self._wrapped or self._may_go_on(row, width)
        self._width = max(self._width, width)
        if self._plain or not may_go_on:
            return [*out, *self._completed(), *super().decode(line, number)]
        self._first = self._first if self._rows else number
        self._rows.append(row)
        is_last = width < self._width - 1 or len(self._rows) >= _MOST_ROWS
        return [*out, *self._completed()] if self._wrapped and is_last else out

    def _begun(self, row: bytes) -> Iterable[MetricRow | Record]:
        """Return the records of the rows before one, where they are a line without it."""
        if self._rows and self._goes_on(row):
            self._wrapped = True
        elif self._rows:
            # A step line that might have gone on did not.
            self._plain = not self._wrapped and STEP.search(self._rows[0]) is not None
            return self._completed()
        return ()

    def _is_no_row(self, row: bytes, width: int, number: int) -> bool:
        widest = self._width + 1 if self._wrapped else _WIDEST
        is_late = number > _MOST_ROWS and not self._wrapped
        return is_late or width > widest or _NEVER_SHOWN.match(row) is not None

    def _may_go_on(self, row: bytes, width: int) -> bool:
        """Return whether a row may be the first of a record; a space may have been left out."""
        if width + 1 < self._width:
            return False
        return STEP.search(row) is not None or row.rfind(b"{'") > row.rfind(b"}")

    def _goes_on(self, row: bytes) -> bool:
        """Return whether a row belongs to the line of the ones before."""
        before = self._rows[-1]
        if _BEGINS.match(row):
            return False
        if self._wrapped:
            lost = before.endswith(_BEFORE_SPACE) or row.startswith(_BEHIND_SPACE)
            return lost or _characters(before) == self._width
        if STEP.search(before) is not None:
            return _STEP_GOES_ON.match(row) is not None
        return _DICT_GOES_ON.match(row) is not None

    def _completed(self) -> Iterable[MetricRow | Record]:
        """Return the records of the line that the rows so far are, if there are any."""
        if not self._rows:
            return ()
        *rows, end = self._rows
        self._rows = []
        full = (row + b" " * (self._width - _characters(row)) for row in rows)
        return super().decode(b"".join((*full, end)), self._first)


def _dated(record: MetricRow | Record, time: float | None) -> MetricRow | Record:
    is_undated = isinstance(record, MetricRow) and record.time is None
    return record._replace(time=time) if is_undated else record  # type: ignore[call-arg]


def _characters(row: bytes) -> int:
    return len(row) if row.isascii() else len(row.decode("utf-8", "replace"))


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
