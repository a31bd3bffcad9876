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

from contextlib import suppress
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
_MICROSECONDS = 1e14
"""Numbers from here on count microseconds, as journald does; as seconds they would lie three
million years ahead.
"""
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
    """One entry of a collector, mostly a line."""

    text: bytes
    time: float | None
    """Seconds since the epoch."""
    stream: str


def as_printed(head: bytes) -> bytes:
    """Return the beginning of a console as it was printed; nothing if no collector keeps it."""
    if not head.lstrip().startswith(b"{"):
        return b""
    entries = filter(None, map(_entry, head.split(b"\n")))
    return b"".join(entry.text.removesuffix(b"\n") + b"\n" for entry in entries)


def printed_line(line: bytes) -> bytes:
    """Return a line as it was printed, if a collector keeps it with its time."""
    entry = _entry(line) if line.startswith(b'{"') else None
    return line if entry is None or entry.time is None else entry.text


class KeptDecoder(ConsoleDecoder):
    """Decodes a console however it is kept: its first line shows whether by a collector."""

    def __init__(self, *, patient: bool = True) -> None:
        """Begin.

        Args:
            patient: Whether the first record may wait for the next line, which tells whether
                records are wrapped.
        """
        super().__init__()
        self._collected: bool | None = None
        """None until the first line."""
        self._pieces: dict[str, bytes] = {}
        """Stream -> the beginning of a line that goes on."""
        self._passed_on = 0.0
        """The last time that was passed on."""
        self._more = 0
        """Lines beyond the file's own: an object may hold several."""
        self._patient = patient
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
        together = (
            f"lines that a terminal of {self._width} columns wrapped were put together"
        )
        return joined_notes(super().note, together if self._wrapped else None)

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
        if self._plain:
            return super().decode(line, number)
        return self._read_row(line, number)

    def _is_collected(self, line: bytes) -> bool:
        if self._collected is None and line.strip():
            self._collected = bool(as_printed(line))
        return self._collected is not False

    def _read_entry(self, line: bytes, number: int) -> Iterator[MetricRow | Record]:
        """Yield the records of what one object holds."""
        entry = _entry(line)
        if entry is None:
            if line.strip():
                yield unreadable(line, number, "no object with a line of the console")
            return
        text = self._pieces.pop(entry.stream, b"") + entry.text
        is_piece = len(entry.text) >= _PIECE and not entry.text.endswith(b"\n")
        if is_piece and len(text) < LONGEST_LINE:
            self._pieces = {**dict(list(self._pieces.items())[-1:]), entry.stream: text}
            return
        time = entry.time
        self._more -= 1
        for printed in text.removesuffix(b"\n").split(b"\n"):
            self._more += 1
            for record in super().decode(printed, number + self._more):
                is_undated = isinstance(record, MetricRow) and record.time is None
                yield record._replace(time=time) if is_undated else record
        if time is not None and not self._passed_on <= time < self._passed_on + _EACH:
            self._passed_on = time
            yield Pulse(time, "")

    # -- rows of a terminal ------------------------------------------------------------------------

    def _read_row(self, line: bytes, number: int) -> Iterable[MetricRow | Record]:
        row = line.removesuffix(b"\r")
        width = _characters(row)
        goes_on = bool(self._rows) and self._goes_on(row)
        too_wide = width > (self._width + 1 if self._wrapped else _WIDEST)
        self._plain = too_wide or _NEVER_SHOWN.match(row) is not None
        if not (self._wrapped or goes_on):
            is_whole = bool(self._rows) and STEP.search(self._rows[0]) is not None
            self._plain |= is_whole or number > _MOST_ROWS
        out = [] if goes_on and not self._plain else [*self._completed()]
        if self._plain or not (self._wrapped or goes_on or self._may_go_on(row, width)):
            self._width = max(self._width, width)
            return [*out, *super().decode(line, number)]
        self._wrapped = self._wrapped or goes_on
        self._width = max(self._width, width)
        self._first = self._first if self._rows else number
        self._rows.append(row)
        is_last = width < self._width - 1 or len(self._rows) >= _MOST_ROWS
        return [*out, *self._completed()] if self._wrapped and is_last else out

    def _may_go_on(self, row: bytes, width: int) -> bool:
        """Return whether a row may be the first of a record; a space may have been left out."""
        if not self._patient or width + 1 < self._width:
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
        form = _STEP_GOES_ON if STEP.search(before) else _DICT_GOES_ON
        return form.match(row) is not None

    def _completed(self) -> Iterable[MetricRow | Record]:
        """Return the records of the line that the rows so far are, if there are any."""
        if not self._rows:
            return ()
        *rows, end = self._rows
        self._rows = []
        full = (row + b" " * (self._width - _characters(row)) for row in rows)
        return super().decode(b"".join((*full, end)), self._first)


def _characters(row: bytes) -> int:
    return len(row) if row.isascii() else len(row.decode("utf-8", "replace"))


def _entry(line: bytes) -> _Entry | None:
    """Return the entry in an object; None if it is not an object, or holds no line."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, dict):
        return None
    texts = (_text(found.get(key)) for key in _TEXT)
    text = next((one for one in texts if one is not None), None)
    if text is None:
        return None
    time = next((found[key] for key in _TIME if key in found), None)
    return _Entry(text, _time(time), str(found.get("stream")))


def _text(value: object) -> bytes | None:
    """Return a line; journald writes one that is no UTF-8 as a list of bytes."""
    if isinstance(value, str):
        return value.encode()
    with suppress(TypeError, ValueError):
        return bytes(value) if isinstance(value, list) else None
    return None


def _time(value: object) -> float | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < _LONGEST:
        value = float(value)
    if isinstance(value, str):
        # Docker writes up to nine digits, of which Python 3.10 reads three or six.
        return parse_time(_FRACTION.sub(lambda found: f".{found[1][:6]:0<6}", value))
    if isinstance(value, int | float) and value >= _MICROSECONDS:
        return parse_time(value / 1e6)
    return parse_time(value)
