r"""Consoles as log collectors keep them: each line in a JSON object, with the time it was printed.

Docker's `json-file` driver, which is its default, writes `{"log": "…\n", "stream": "stdout",
"time": "…"}`; Loki, Fluent Bit, journald (`journalctl -o json`) and Google Cloud write the same
under other names. Docker cuts what is longer than 16 KiB into pieces, of which only the last ends
with a line's end (`daemon/logger/copier.go`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import orjson

from verl_tui.patterns import pattern
from verl_tui.records import Pulse, Unreadable
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.lines import LONGEST_LINE
from verl_tui.text import one_line
from verl_tui.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verl_tui.records import Record

_TEXT = ("log", "line", "textPayload", "MESSAGE", "message", "msg")
_TIME = ("time", "timestamp", "@timestamp", "ts", "__REALTIME_TIMESTAMP")
_STREAM = "stream"
_PIECE = 16 * 1024
"""Bytes of Docker's pieces."""
_MOST_STREAMS = 8
"""Most streams with pieces that wait: there are two."""
_MICROSECONDS = 1e14
"""Numbers from here on count microseconds, as journald does; as seconds they would lie three
million years ahead.
"""
_LONGEST = 20
"""Digits of a number that may be a time."""
_FRACTION = pattern(r"\.(\d{1,9})")
_EACH = 10.0
"""Seconds between two times that are passed on: lines come by the thousand."""


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
    if entry is None or entry.time is None:
        return line
    return entry.text


class CollectedDecoder(ConsoleDecoder):
    """Decodes a console, whether a collector keeps it or not: its first line shows it."""

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

    def _is_collected(self, line: bytes) -> bool:
        if self._collected is None and line.strip():
            self._collected = bool(as_printed(line))
        return self._collected is not False

    def last(self, line: bytes, number: int) -> Iterable[MetricRow | Record] | None:
        """Return the records of a line without an end; of an object only if it is whole."""
        if not self._is_collected(line):
            return super().last(line, number)
        return self.decode(line, number) if _entry(line) is not None else None

    def early(self, line: bytes) -> int:
        """Return how many bytes of an unfinished line can be decoded: of an object none."""
        return 0 if self._is_collected(line) else super().early(line)

    def decode_all(self, text: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of complete lines."""
        if not self._is_collected(text.lstrip().partition(b"\n")[0]):
            return super().decode_all(text, number)
        lines = enumerate(text.splitlines(), number)
        return [one for at, line in lines for one in self._read_entry(line, at)]

    def decode(self, line: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of one line, or of a part of it."""
        if not self._is_collected(line):
            return super().decode(line, number)
        return list(self._read_entry(line, number))

    def _read_entry(self, line: bytes, number: int) -> Iterator[MetricRow | Record]:
        """Yield the records of what one object holds."""
        entry = _entry(line)
        if entry is None:
            if line.strip():
                reason = "no object with a line of the console"
                excerpt = one_line(line.decode("utf-8", "replace"), 200)
                yield Unreadable(number, reason, excerpt)
            return
        text = self._whole(entry)
        if text is None:
            return
        for printed in text.removesuffix(b"\n").split(b"\n"):
            for record in super().decode(printed, number + self._more):
                if isinstance(record, MetricRow) and record.time is None:
                    yield record._replace(time=entry.time)
                else:
                    yield record
            self._more += 1
        self._more -= 1
        time = entry.time
        if time is not None and not self._passed_on <= time < self._passed_on + _EACH:
            self._passed_on = time
            yield Pulse(time, "")

    def _whole(self, entry: _Entry) -> bytes | None:
        """Return the text of an entry with the pieces before it, None while more are to come."""
        text = self._pieces.pop(entry.stream, b"") + entry.text
        is_piece = len(entry.text) >= _PIECE and not entry.text.endswith(b"\n")
        if is_piece and len(text) < LONGEST_LINE and len(self._pieces) < _MOST_STREAMS:
            self._pieces[entry.stream] = text
            return None
        return text


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
    return _Entry(text, _time(time), str(found.get(_STREAM)))


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
