r"""Consoles as log collectors keep them: each line in a JSON object, with the time it was printed.

Docker's `json-file` driver, which is its default, writes `{"log": "…\n", "stream": "stdout",
"time": "…"}`; Loki, Fluent Bit, journald (`journalctl -o json`) and Google Cloud write the same
under other names. Docker cuts what is longer than 16 KiB into pieces, of which only the last ends
with a line's end (`daemon/logger/copier.go`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, cast

import orjson

from verl_tui.patterns import pattern
from verl_tui.records import Pulse, Unreadable
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.console.layer import ConsoleLayer
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
_MOST_PIECES = 2000
"""Pieces of a line that are put together: 32 MiB of Docker's, as of other lines."""
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


class CollectedDecoder(ConsoleLayer):
    """Decodes a console, whether a collector keeps it or not: its first line shows it."""

    def _begin(self) -> None:
        self._collected: bool | None = None
        """None until the first line."""
        self._pieces: dict[str, list[bytes]] = {}
        """Stream -> the pieces so far of a line that goes on."""
        self._passed_on = 0.0
        """The last time that was passed on."""
        self._added = 0
        """Lines beyond the file's own: an object may hold several."""

    def _restores(self, line: bytes) -> bool:
        if self._collected is None and line.strip():
            self._collected = bool(as_printed(line))
        return self._collected is not False

    def last(self, line: bytes, number: int) -> Iterable[MetricRow | Record] | None:
        """Return the records of a line without an end; of an object only if it is whole."""
        if not self._restores(line):
            return self.console.last(line, number)
        return self._read(line, number) if _entry(line) is not None else None

    def early(self, line: bytes) -> int:
        """Return how many bytes of an unfinished line can be decoded: of an object none."""
        return 0 if self._restores(line) else self.console.early(line)

    def _read(self, line: bytes, number: int) -> Iterator[MetricRow | Record]:
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
            for record in self.console.decode(printed, number + self._added):
                untimed = isinstance(record, MetricRow) and record.time is None
                yield (
                    cast("MetricRow", record)._replace(time=entry.time)
                    if untimed
                    else record
                )
            self._added += 1
        self._added -= 1
        yield from self._pulse(entry.time)

    def _whole(self, entry: _Entry) -> bytes | None:
        """Return the text of an entry with the pieces before it, None while more are to come."""
        pieces = self._pieces.setdefault(entry.stream, [])
        pieces.append(entry.text)
        goes_on = len(entry.text) >= _PIECE and not entry.text.endswith(b"\n")
        has_room = len(pieces) < _MOST_PIECES and len(self._pieces) <= _MOST_STREAMS
        if goes_on and has_room:
            return None
        del self._pieces[entry.stream]
        return b"".join(pieces)

    def _pulse(self, time: float | None) -> Iterator[Pulse]:
        if time is not None and not self._passed_on <= time < self._passed_on + _EACH:
            self._passed_on = time
            yield Pulse(time, "")


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
