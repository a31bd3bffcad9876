"""Files that mean something only once they are whole: a JSON document, a table.

The history of a training is written anew as it goes on: a longer one of the same training is no
restart, only what was added is passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.records import Restart
from verl_tui.sources.fields.jsonl import unreadable, values_of
from verl_tui.sources.fields.row_batcher import RowBatcher, joined_notes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow


class DamagedError(ValueError):
    """Bytes that end as a whole file does are none; the message says why, for people."""


class WholeReader:
    """Holds the bytes of a file until it is whole.

    A format says by its own `parse` what they mean.
    """

    ends: tuple[bytes, ...] = (b"}", b"]")
    """How a whole file ends, but for blanks."""
    incomplete = "not complete, or not JSON"
    """Said of a file that is not whole."""
    remark = ""
    """Said of a file that is too large."""
    once = True
    """True if nothing is read that follows a whole file."""

    def __init__(self, largest: int) -> None:
        """Begin; a file of more bytes than `largest` is given up."""
        self._largest = largest
        self._begin()

    def _begin(self) -> None:
        self._held = bytearray()
        self._is_done = False
        """True if the file was given up, or nothing that comes can be a part of it."""
        self._damage: str | None = None
        self._has_complained = False

    @property
    def note(self) -> str | None:
        """Return nothing; formats with remarks say so."""
        return None

    def parse(self, data: bytes) -> Iterable[Record]:
        """Return the records of the bytes that are there.

        Raises:
            ValueError: They are not whole.
            DamagedError: They cannot be.
        """
        raise NotImplementedError

    def feed(self, data: bytes) -> tuple[Record, ...]:
        """Return the records once the file is whole."""
        if self._is_done or not data:
            return ()
        self._held += data
        self._damage = None
        if len(self._held) > self._largest:
            self._held.clear()
            self._is_done = True
            return self._complain(f"larger than {self._largest >> 20} MiB{self.remark}")
        if not self._held[-64:].rstrip().endswith(self.ends):
            return ()
        try:
            records = tuple(self.parse(bytes(self._held)))
        except ValueError as error:  # the end of something within: more may follow
            self._damage = str(error) if isinstance(error, DamagedError) else None
            return ()
        self._read_on()
        return records

    def _read_on(self) -> None:
        """Expect something new behind what was whole."""
        self._held.clear()
        self._is_done = self.once

    def finish(self) -> tuple[Record, ...]:
        """Return a complaint where the file is not whole: nothing more comes."""
        if self._is_done or not self._held.strip():
            return ()
        return self._complain(self._damage or self.incomplete)

    def restart(self, reason: str) -> tuple[Record, ...]:
        """Forget everything: the file starts anew."""
        self._begin()
        return (Restart(reason),)

    def _complain(self, reason: str, excerpt: bytes = b"") -> tuple[Record, ...]:
        """Return a complaint, once."""
        if self._has_complained:
            return ()
        self._has_complained = True
        return (unreadable(excerpt, 1, reason),)


class HistoryReader(WholeReader):
    """Reads the history of a training; remembers the entries passed on from earlier documents. A
    format says by its own `read` what a document means.
    """

    remark = ": so long a history is not read"

    def __init__(self, largest: int) -> None:
        super().__init__(largest)
        self._batcher = RowBatcher()
        self._reported: list[int] = []
        """A hash of each entry of the history passed on so far."""
        self._is_open = False
        """True if a list was read whose end is missing."""

    @property
    def note(self) -> str | None:
        """Return what is to be said of replaced records, and of a list without its end."""
        has_no_end = "its list has no end (yet): what is there is read"
        return joined_notes(self._batcher.note, has_no_end if self._is_open else None)

    def read(self, values: list[Any]) -> Iterable[MetricRow | Record]:
        """Return what the values of a whole document add to those before."""
        raise NotImplementedError

    def parse(self, data: bytes) -> tuple[Record, ...]:
        """Return the records of a document, or of several one behind the other."""
        self._batcher.add(self.read(values_of(data)))
        self._is_open = False
        return self._batcher.take()

    def _read_on(self) -> None:
        """Keep what is there: more may follow."""

    def finish(self) -> tuple[Record, ...]:
        """Return a complaint where the document is not whole; of a list without its end what is
        there.
        """
        held = bytes(self._held).strip()
        try:
            values_of(held)
        except ValueError as error:
            try:
                records = self.parse(held.rstrip(b",") + b"]")
            except ValueError:
                return self._complain(str(error), held[:400])
            self._is_open = True
            return records
        return ()

    def restart(self, reason: str) -> tuple[Record, ...]:
        """Take the next document, which most likely continues this one."""
        super().restart(reason)
        return ()

    def added(
        self, entries: Sequence[Sequence[MetricRow | Record]]
    ) -> tuple[Sequence[Sequence[MetricRow | Record]], Sequence[Restart]]:
        """Return the entries of a history that have not been passed on, and a restart where it does
        not go on from the one before.
        """
        hashes = [hash(repr(entry)) for entry in entries]
        known = self._reported
        self._reported = hashes
        if hashes[: len(known)] == known:
            return entries[len(known) :], ()
        return entries, (Restart("another history was written"),)
