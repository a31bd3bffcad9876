"""Cuts the bytes of a text file into lines, has them decoded and gathers what they say."""

from __future__ import annotations

from collections.abc import Iterable

from verl_tui.records import Records, Unreadable
from verl_tui.sources.fields.jsonl import Fields, objects, unreadable
from verl_tui.sources.fields.row_batcher import (
    Item,
    RowBatcher,
    joined_notes,
)
from verl_tui.sources.formats.format import Reader

LONGEST_LINE = 32 * 2**20
"""Bytes after which a line without an end is given up: no format writes such, a broken file
might.
"""
_BOM = b"\xef\xbb\xbf"
"""The mark that some programs of Windows begin a text with."""
_UNREAD = "its last line has no end and may not be complete: not read"


class Decoder:
    """Turns the lines of one file into records; remembers what lines before have said."""

    parted = False
    """True if lines state their steps, so that the end of a file can be read by itself."""
    skipped = False
    """True if lines before the first one were left out."""
    lines = 0
    """Complete lines so far."""

    @property
    def counts_steps(self) -> bool:
        """True if the steps of its records depend on those before."""
        return False

    @property
    def counts_most(self) -> bool:
        """True if most steps were counted: none is stated."""
        return False

    @property
    def note(self) -> str | None:
        """The same as a `Reader` has."""
        return None

    def decode(self, line: bytes, number: int) -> Iterable[Item]:
        """Return the records of one complete line.

        Args:
            line: The line without its end; any bytes.
            number: Its number in the file, from 1.
        """
        raise NotImplementedError

    def decode_all(self, text: bytes, start: int = 0) -> Iterable[Item]:
        """Return the records of the next complete lines: those that end in a text, from a place
        on.
        """
        found: list[Item] = []
        # Cut one by one: all at once would leave the processor's cache before they are decoded.
        while (end := text.find(b"\n", start)) >= 0:
            self.lines += 1
            found += self.decode(text[start:end], self.lines)
            start = end + 1
        return found

    def early(self, line: bytes) -> int:  # noqa: ARG002
        """Return how many bytes of a line that has no end yet mean the same whatever follows."""
        return 0

    def last(self, line: bytes, number: int) -> Iterable[Item] | None:
        """Return the records of a last line that has no end, None where only its end would tell
        what it says.
        """
        return self.decode(line, number)

    def held(self) -> Iterable[Item]:
        """Return the records that only wait for lines that may never come."""
        return ()


class JsonDecoder(Decoder):
    """Decodes a file of JSON lines; a format says what one object means by its own `read`."""

    def decode(self, line: bytes, number: int) -> Iterable[Item]:
        """Return the records of one line."""
        try:
            found = objects(line)
        except ValueError as error:
            return self.odd(line, number, str(error)) if line.strip() else ()
        return self.records(found, line, number)

    def records(self, found: Iterable[Fields], line: bytes, number: int) -> list[Item]:
        """Return the records of the objects of one line."""
        out: list[Item] = []
        for record in found:
            try:
                out += self.read(record)
            except ValueError as error:  # noqa: PERF203 - its neighbours are read
                out.append(unreadable(line, number, str(error)))
        return out

    def last(self, line: bytes, number: int) -> Iterable[Item] | None:
        """Return the records of a line without an end: a complete object needs none."""
        try:
            objects(line)
        except ValueError:
            return None
        return self.decode(line, number)

    def read(self, record: Fields) -> Iterable[Item]:
        """Return what one object means.

        Raises:
            ValueError: It is not of this format; the message says why.
        """
        raise NotImplementedError

    def odd(self, line: bytes, number: int, reason: str) -> Iterable[Item]:
        """Return what a line that is no JSON means."""
        return (unreadable(line, number, reason),)


class LineReader(Reader):
    """Reads a text file line by line; half a line waits for its end."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self._batcher = RowBatcher(holds_back=True)
        self._partial = bytearray()
        """The beginning of a line without an end."""
        self._skipping = False
        """True if the line that is being read has been given up."""
        self._is_unread = False
        """True if a last line without an end was not read."""

    @property
    def note(self) -> str | None:
        """Return the decoder's note, one on replaced records, and whether the end is not read."""
        unread = _UNREAD if self._is_unread else None
        return joined_notes(self.decoder.note, self._batcher.note, unread)

    def skip(self) -> bool:
        """Begin with a later line; return whether its lines state their steps."""
        self.decoder.skipped = True
        return self.decoder.parted

    @property
    def needs_beginning(self) -> bool:
        """True if the steps of its records depend on those before."""
        return self.decoder.counts_steps

    def feed(self, data: bytes) -> Records:
        """Return the records of the lines that these bytes complete."""
        self._is_unread &= not data
        if self._skipping:  # the end of a line that has been given up
            _, ended, data = data.partition(b"\n")
            self._skipping = not ended
            self.decoder.lines += len(ended)
        end = data.rfind(b"\n") + 1
        if end:
            # Only the first line is put together: all of it would be copied.
            start = data.find(b"\n") + 1
            first = bytes(self._partial) + data[:start]
            self._partial.clear()
            first = first if self.decoder.lines else first.removeprefix(_BOM)
            self._batcher.add(self.decoder.decode_all(first))
            self._batcher.add(self.decoder.decode_all(data, start))
        if rest := data[end:]:
            self._keep(rest)
        return self._batcher.take()

    def finish(self) -> Records:
        """Return the records of a last line without an end, where it is complete by itself."""
        partial = bytes(self._partial)
        partial = partial if self.decoder.lines else partial.removeprefix(_BOM)
        self._is_unread = False
        if partial.strip():
            records = self.decoder.last(partial, self.decoder.lines + 1)
            self._is_unread = records is None
            if records is not None:
                # Its content has been taken as it stood, only what comes after it counts.
                self._partial.clear()
                self._batcher.add(records)
        self._batcher.add(self.decoder.held())
        self._batcher.release()
        return self._batcher.take()

    def _keep(self, rest: bytes) -> None:
        """Keep the beginning of a line, without as much as is certain: a bar may be the last thing
        on it for hours.
        """
        self._partial += rest
        if b"]" in rest:
            line = bytes(self._partial)
            if sure := self.decoder.early(line):
                number = self.decoder.lines + 1
                self._batcher.add(self.decoder.decode(line[:sure], number))
                del self._partial[:sure]
        if len(self._partial) > LONGEST_LINE:
            self._skipping = True
            self._partial.clear()
            reason = f"no line end within {LONGEST_LINE >> 20} MiB"
            self._batcher.add((Unreadable(self.decoder.lines + 1, reason, ""),))
