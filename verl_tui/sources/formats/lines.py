"""Cuts the bytes of a text file into lines, has them decoded and gathers what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import Record, Restart, Unreadable
from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes
from verl_tui.sources.formats.format import BufferingDecoder, Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.sources.fields.row_batcher import MetricRow
    from verl_tui.sources.formats.format import Decoder

LONGEST_LINE = 32 * 2**20
"""Bytes after which a line without an end is given up: no format writes such, a broken file
might.
"""
_BOM = b"\xef\xbb\xbf"
"""The mark that some programs of Windows begin a text with."""
_UNREAD = "its last line has no end and may not be complete: not read"


class LineReader(Reader):
    """Reads a text file line by line; half a line waits for its end."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self._patient = decoder if isinstance(decoder, BufferingDecoder) else None
        self._batcher = RowBatcher(holds_back=True)
        self._line = 0
        """Complete lines so far."""
        self._partial = bytearray()
        """The beginning of a line without an end."""
        self._skipping = False
        """True if the line that is being read has been given up."""
        self._is_unread = False
        """True if a last line without an end was not read."""

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
        if self._skipping:  # the end of a line that has been given up
            _, ended, data = data.partition(b"\n")
            self._skipping = not ended
            self._line += len(ended)
        end = data.rfind(b"\n") + 1
        if end:
            text = b"".join((self._partial, memoryview(data)[:end]))
            self._partial.clear()
            text = text if self._line else text.removeprefix(_BOM)
            self._batcher.add(self._decoded(text))
            self._line += text.count(b"\n")
        if rest := data[end:]:
            self._keep(rest)
        return self._batcher.take()

    def finish(self) -> tuple[Record, ...]:
        """Return the records of a last line without an end, where it is complete by itself."""
        partial = bytes(self._partial)
        partial = partial if self._line else partial.removeprefix(_BOM)
        self._is_unread = False
        if partial.strip():
            records = self.decoder.last(partial, self._line + 1)
            self._is_unread = records is None
            if records is not None:
                # Its content has been taken as it stood, only what comes after it counts.
                self._partial.clear()
                self._batcher.add(records)
        if self._patient is not None:
            self._batcher.add(self._patient.held())
        self._batcher.release()
        return self._batcher.take()

    def restart(self, reason: str) -> tuple[Record, ...]:
        """Forget everything, the file starts anew; return the records that say so."""
        self._line = 0
        self._partial.clear()
        self._skipping = False
        self._batcher.release()
        self._batcher.add(self.decoder.restart() or (Restart(reason),))
        return self._batcher.take()

    def _decoded(self, text: bytes) -> Iterable[MetricRow | Record]:
        """Return the records of complete lines."""
        if self._patient is not None:
            return self._patient.decode_all(text, self._line + 1)
        return items_of(self.decoder, text, self._line + 1)

    def _keep(self, rest: bytes) -> None:
        """Keep the beginning of a line, without as much as is certain: a bar may be the last thing
        on it for hours.
        """
        self._partial += rest
        if self._patient is not None and b"]" in rest:
            line = bytes(self._partial)
            sure = self._patient.early(line)
            if sure:
                self._batcher.add(self._patient.decode(line[:sure], self._line + 1))
                del self._partial[:sure]
        if len(self._partial) > LONGEST_LINE:
            self._skipping = True
            self._partial.clear()
            reason = f"no line end within {LONGEST_LINE >> 20} MiB"
            self._batcher.add((Unreadable(self._line + 1, reason, ""),))


def items_of(decoder: Decoder, text: bytes, number: int) -> list[MetricRow | Record]:
    """Return what complete lines say.

    Args:
        decoder: Decodes them.
        text: The lines with their ends.
        number: The number of the first.
    """
    found: list[MetricRow | Record] = []
    start = 0
    # Cut one by one: all at once would leave the processor's cache before they are decoded.
    while (end := text.find(b"\n", start)) >= 0:
        found += decoder.decode(text[start:end], number)
        number += 1
        start = end + 1
    return found
