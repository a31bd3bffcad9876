"""Files that mean something only once they are whole: a JSON document, a table.

The history of a training is written anew as it goes on: a longer one of the same training is no
restart, only what was added is passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import Restart
from verl_tui.sources.fields.jsonl import unreadable
from verl_tui.sources.formats.format import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.records import Record


class WholeReader(Reader):
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
        self._has_complained = False

    def parse(self, data: bytes) -> Iterable[Record]:
        """Return the records of the bytes that are there.

        Raises:
            ValueError: They are not whole.
        """
        raise NotImplementedError

    def feed(self, data: bytes) -> tuple[Record, ...]:
        """Return the records once the file is whole."""
        if self._is_done or not data:
            return ()
        self._held += data
        if len(self._held) > self._largest:
            self._held.clear()
            self._is_done = True
            return self._complain(f"larger than {self._largest >> 20} MiB{self.remark}")
        if not self._held[-64:].rstrip().endswith(self.ends):
            return ()
        try:
            records = tuple(self.parse(bytes(self._held)))
        except ValueError:  # the end of something within: more may follow
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
        return self._complain(self.incomplete)

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


class NoReader(WholeReader):
    """Says that what is queried, and not read from end to end, has to lie as such on a disk."""

    incomplete = "a database is read only where it lies as a file of its own"

    def feed(self, data: bytes) -> tuple[Record, ...]:
        """Keep that there is something."""
        self._held = self._held or bytearray(data[:1])
        return ()
