"""Cuts the bytes of a text file into lines, has them decoded and gathers what they say."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from verl_tui.records import Record, Restart, Unreadable
from verl_tui.sources.fields.row_batcher import MetricRow, RowBatcher, joined_notes
from verl_tui.sources.formats.format import BufferingDecoder, Parts
from verl_tui.sources.formats.placed import Placed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from verl_tui.sources.formats.format import Decoder, ReadAt

LONGEST_LINE = 32 * 2**20
"""Bytes after which a line without an end is given up: no format writes such, a broken file
might.
"""
_BOM = b"\xef\xbb\xbf"
"""The mark that some programs of Windows begin a text with."""
_UNREAD = "its last line has no end and is not complete: not read"
_NOT_FIRST = 1
"""Lines before those that are read apart: any number but none, as the first of a file may begin
with a mark.
"""
_WINDOW = 16 * 1024
"""Bytes in which the next line is looked for at once."""


class LineReader:
    """Reads a text file line by line; half a line waits for its end."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self._patient = decoder if isinstance(decoder, BufferingDecoder) else None
        self._batcher = RowBatcher(holds_back=True)
        self._line = 0
        """Complete lines so far."""
        self._partial = b""
        self._skipping = False
        """True if the line that is being read has been given up."""
        self._is_unread = False
        """True if a last line without an end was not read."""
        self._standing: object = None
        """The state that its decoder began with, if it was read apart from the lines before."""

    @property
    def note(self) -> str | None:
        """Return the decoder's note, what is to be said of replaced records, and whether the end is
        not read.
        """
        unread = _UNREAD if self._is_unread else None
        return joined_notes(self.decoder.note, self._batcher.note, unread)

    @property
    def needs_beginning(self) -> bool:
        """True if the steps of its records depend on those before."""
        return bool(getattr(self.decoder, "counts_steps", False))

    def feed(self, data: bytes) -> tuple[Record, ...]:
        """Return the records of the lines that these bytes complete."""
        self._is_unread = self._is_unread and not data
        if self._skipping:
            data = self._behind_skipped(data)
        patient = self._patient
        rest = (
            self._read_lines(data)
            if patient is None
            else self._read_text(patient, data)
        )
        if rest:
            self._keep(rest)
            if patient is not None and b"]" in rest:
                self._decode_early(patient)
        return self._batcher.take()

    def finish(self) -> tuple[Record, ...]:
        """Return the records of a last line without an end, where it is complete by itself."""
        partial = self._partial if self._line else self._partial.removeprefix(_BOM)
        records = None
        if partial.strip():
            records = self.decoder.last(partial, self._line + 1)
        self._is_unread = records is None and bool(partial.strip())
        if records is not None:
            # Its content has been taken as it stood, only what comes after it counts.
            self._partial = b""
            self._batcher.add(records)
        if self._patient is not None:
            self._batcher.add(self._patient.held())
        self._batcher.release()
        return self._batcher.take()

    def caught_up(self) -> tuple[Record, ...]:
        """Return the records that waited for more of what is there."""
        if self._patient is None:
            return ()
        self._batcher.add(self._patient.caught_up())
        return self._batcher.take()

    def restart(self, reason: str) -> tuple[Record, ...]:
        """Forget everything, the file starts anew; return the records that say so."""
        self._line = 0
        self._partial = b""
        self._skipping = False
        self._batcher.release()
        self._batcher.add(self.decoder.restart() or (Restart(reason),))
        return self._batcher.take()

    def apart(self, at: int) -> LineReader | None:  # noqa: ARG002
        """Return a reader for lines further on in the file, None where the decoder needs those in
        between.
        """
        standing = _standing(self.decoder)
        if standing is None:
            return None
        reader = LineReader(deepcopy(self.decoder))
        reader._line = _NOT_FIRST
        reader._standing = standing
        return reader

    def whole(self, data: bytes) -> int:
        """Return how many of some bytes are whole lines."""
        return data.rfind(b"\n") + 1

    def stretch_start(self, data: bytes) -> int | None:
        """Return where the first line begins that has another step than those before it."""
        at = 0
        step = None
        while end := data.find(b"\n", at) + 1:
            for item in self.decoder.decode(data[at : end - 1], 1):
                if isinstance(item, MetricRow):
                    if step not in (None, item.step):
                        return at
                    step = item.step
            at = end
        return None

    @property
    def stands_alone(self) -> bool:
        """True if lines between those that its decoder knows and those that it has read could
        hardly change what it has returned.
        """
        return self._batcher.ascends and _standing(self.decoder) is not None

    def goes_on_with(self, later: LineReader) -> bool:
        """Return whether the lines that another reader has read apart, and which come next in the
        file, mean the same behind those that were read here.
        """
        if self._partial or self._skipping or not later.stands_alone:
            return False
        same = _standing(self.decoder) == later._standing
        return same and self._batcher.goes_on_with(later._batcher)

    def go_on_with(self, later: LineReader) -> Placed:
        """Go on as if those lines had been read here; return what puts their records in place."""
        placed = Placed(self._batcher.count, self._line - _NOT_FIRST)
        self._batcher.go_on_with(later._batcher)
        self.decoder = later.decoder
        self._line += later._line - _NOT_FIRST
        return placed

    def _behind_skipped(self, data: bytes) -> bytes:
        """Return what stands behind the end of the line that has been given up."""
        _, end, rest = data.partition(b"\n")
        if end:
            self._skipping = False
            self._line += 1
        return rest

    def _read_lines(self, data: bytes) -> bytes:
        """Have complete lines decoded one by one; return what stands behind them."""
        decode = self.decoder.decode
        found: list[MetricRow | Record] = []
        start = 0
        # Cut one by one: all at once would leave the processor's cache before they are decoded.
        while (end := data.find(b"\n", start)) >= 0:
            line = data[start:end] if start else self._completed(data[:end])
            self._line += 1
            found += decode(line, self._line)
            start = end + 1
        self._batcher.add_many(found)
        return data[start:]

    def _read_text(self, decoder: BufferingDecoder, data: bytes) -> bytes:
        """Have complete lines decoded together; return what stands behind them."""
        end = data.rfind(b"\n") + 1
        if end:
            text = self._completed(memoryview(data)[:end])
            self._batcher.add(decoder.decode_all(text, self._line + 1))
            self._line += text.count(b"\n")
        return data[end:]

    def _completed(self, data: bytes | memoryview) -> bytes:
        """Return the end of a line, and what follows, with the line's beginning."""
        text = b"".join((self._partial, data))
        self._partial = b""
        if self._line:
            return text
        return text.removeprefix(_BOM)

    def _decode_early(self, decoder: BufferingDecoder) -> None:
        """Take as much of a line without an end as is certain: a bar may be the last thing on it
        for hours.
        """
        line = self._partial
        if sure := decoder.early(line):
            self._batcher.add(decoder.decode(line[:sure], self._line + 1))
            self._partial = line[sure:]

    def _keep(self, rest: bytes) -> None:
        self._partial += rest
        if len(self._partial) > LONGEST_LINE:
            self._skipping = True
            self._partial = b""
            reason = f"no line end within {LONGEST_LINE >> 20} MiB"
            self._batcher.add((Unreadable(self._line + 1, reason, ""),))


def _standing(decoder: Decoder) -> object:
    """Return the state that the meaning of later lines depends on, to be compared with another
    decoder's; None if it depends on each line before, as it does unless a decoder says otherwise.
    """
    return getattr(decoder, "standing", None)


class LineParts(Parts[LineReader]):
    """Reads parts of a text file, from a line on."""

    def __init__(self, decoder: Callable[[], Decoder], *, cut: int = 1) -> None:
        """Describe a format.

        Args:
            decoder: Returns a fresh decoder.
            cut: Number of steps at the beginning of a part that may be incomplete.
        """
        self._decoder = decoder
        self.cut = cut

    def begin(self, read: ReadAt, at: int, stop: int) -> int | None:
        """Return where the first line begins, None where none does before `stop`."""
        at -= 1
        while at < stop - 1 and (data := read(at, min(_WINDOW, stop - 1 - at))):
            found = data.find(b"\n")
            if found >= 0:
                return at + found + 1
            at += len(data)
        return None

    def opening(self, path: Path) -> LineReader:  # noqa: ARG002
        """Return a fresh reader."""
        return LineReader(self._decoder())

    def reader(self, opening: LineReader, at: int) -> LineReader:  # noqa: ARG002
        """Return a fresh reader, which knows nothing of the beginning."""
        return LineReader(self._decoder())
