"""JSON documents that are written anew as a training goes on: read once they are whole.

A longer history of the same training is no restart: only what was added is passed on.
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


class DocumentReader:
    """Holds the bytes of a document until it is whole; remembers the entries passed on from earlier
    ones. A format says by its own `read` what a document means.
    """

    def __init__(self, largest: int) -> None:
        """Begin; a document of more bytes than `largest` is given up."""
        self._largest = largest
        self._batcher = RowBatcher()
        self._held = bytearray()
        self._reported: list[int] = []
        """A hash of each entry of the history passed on so far."""
        self._complained = False
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

    def feed(self, data: bytes) -> tuple[Record, ...]:
        """Return the records of the document once it is complete."""
        self._held += data
        if len(self._held) > self._largest:
            self._held.clear()
            return self._complain(
                f"larger than {self._largest >> 20} MiB: so long a history is not read",
                b"",
            )
        if not data or not self._held[-64:].rstrip().endswith((b"}", b"]")):
            return ()
        try:
            values = values_of(bytes(self._held))
        except ValueError:
            return ()  # a brace of an entry: more follows
        self._is_open = False
        return self._taken(values)

    def finish(self) -> tuple[Record, ...]:
        """Return a complaint where the document is not whole and nothing more comes; of a list
        without its end what is there.
        """
        held = bytes(self._held).strip()
        try:
            values_of(held)
        except ValueError as error:
            reason = str(error)
        else:
            return ()
        try:
            values = values_of(held.rstrip(b",") + b"]")
        except ValueError:
            return self._complain(reason, held[:400])
        self._is_open = True
        return self._taken(values)

    def restart(self, reason: str) -> tuple[Record, ...]:  # noqa: ARG002
        """Take the next document, which most likely continues this one."""
        self._held.clear()
        self._complained = False
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

    def _taken(self, values: list[Any]) -> tuple[Record, ...]:
        self._batcher.add(self.read(values))
        return self._batcher.take()

    def _complain(self, reason: str, excerpt: bytes) -> tuple[Record, ...]:
        if self._complained:
            return ()
        self._complained = True
        return (unreadable(excerpt, 1, reason),)
