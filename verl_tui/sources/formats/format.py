"""A log format: a name, a look at the first bytes, and a reader of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from verl_tui.sources.fields.jsonl import unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from verl_tui.records import Record, Records


class Reader:
    """Turns the bytes of one file into records, the same however they are cut. Raises for no bytes
    whatever.
    """

    @property
    def note(self) -> str | None:
        """One sentence that users should know about the origin of its figures, None for most
        files.
        """
        return None

    def skip(self) -> bool:
        """Begin behind a part of the file that was left out; return whether that can be done."""
        return False

    @property
    def needs_beginning(self) -> bool:
        """True if what a reader of a part has returned depends on records before it, so that it may
        differ from what a reading of the whole file gives.
        """
        return False

    def feed(self, data: bytes) -> Sequence[Record]:
        """Return the records that these next bytes complete; what is not complete waits for
        more.
        """
        raise NotImplementedError

    def finish(self) -> Sequence[Record]:
        """Return what only waits for its end, where it is whole without one: nobody may look at
        this file again.
        """
        return ()

    def goes_on(self) -> bool:
        """Expect the file from its beginning; return whether it says the same as before, and more.
        Otherwise another reader reads it, as the next segment.
        """
        return False


class Format(Protocol):
    """One way of writing a log: a module in this folder, or an entry of one of several, and a line
    in `verl_tui.sources.formats.catalog`.
    """

    name: str
    """The name that users see, e.g. `tutorial JSONL`."""
    rank: int
    """Trust, 0..15: see `verl_tui.records.SourceStatus.rank`."""
    anchor: bool
    """True if a file of this format is a run by itself; samples and settings only belong to one."""

    def matches(self, path: Path, head: bytes) -> bool:
        """Tell from its path and first bytes whether a file is of this format."""
        ...

    def reader(self, path: Path) -> Reader:
        """Return a fresh reader for a file of this format; of lines, a
        `verl_tui.sources.formats.lines.LineReader`.
        """
        ...


@dataclass(eq=False)
class FileFormat:
    """A format of several in one module."""

    name: str
    rank: int
    matches: Callable[[Path, bytes], bool]
    reader: Callable[[Path], Reader]
    anchor: bool = False


class WholeReader(Reader):
    """Holds the bytes of a file until it is whole.

    A format says by its own `parse` what they mean. What is read by a source of its own, such as a
    database, has a reader that is never asked.
    """

    largest = 0
    """Bytes after which a file is given up."""
    ends: tuple[bytes, ...] = (b"}", b"]")
    """How a whole file ends, but for blanks."""
    incomplete = "not complete, or not JSON"
    """Said of a file that is not whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
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

    def feed(self, data: bytes) -> Records:
        """Return the records once the file is whole."""
        if self._is_done or not data:
            return ()
        self._held += data
        if len(self._held) > self.largest:
            self._held.clear()
            self._is_done = True
            return self._complain(f"larger than {self.largest >> 20} MiB")
        if not self._held[-64:].rstrip().endswith(self.ends):
            return ()
        try:
            records = tuple(self.parse(bytes(self._held)))
        except ValueError:  # the end of something within: more may follow
            return ()
        self._read_on()
        return records

    def _read_on(self) -> None:
        """Note that the file was whole: nothing is read that follows."""
        self._held.clear()
        self._is_done = True

    def finish(self) -> Records:
        """Return a complaint where the file is not whole: nothing more comes."""
        if self._is_done or not self._held.strip():
            return ()
        return self._complain(self.incomplete)

    def _complain(self, reason: str, excerpt: bytes = b"") -> Records:
        """Return a complaint, once."""
        if self._has_complained:
            return ()
        self._has_complained = True
        return (unreadable(excerpt, 1, reason),)
