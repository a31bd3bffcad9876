"""Standard input as a log: `some-training 2>&1 | verl-tui -`. Nothing that has been read is
kept.
"""

from __future__ import annotations

import os
import select
from collections.abc import Sequence
from pathlib import Path
from time import time

from verl_tui.records import CLOSED, Record, Records, SourceStatus, Unreadable
from verl_tui.sources.files import CHUNK, Chunk, Tail, why_unread
from verl_tui.sources.formats import HEAD
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.format import Format, Reader
from verl_tui.sources.source import FileSource

name = "standard input"
rank = 3
anchor = False
"""Nothing lies beside it."""

PATH = Path("/dev/stdin")
_NAMES = (Path("stdin"), Path("stdin.csv"))
"""File names to try: some formats depend on the suffix."""
_FIRST_LINES = 8
"""Lines that are looked at together; each of those below is looked at alone."""
_DOCUMENTS = (b"[\n", b"{\n")
"""Beginnings of JSON whose first record goes over many lines."""
_PATIENCE = 0.2
"""Seconds waited for more at a time, where there is nothing else to do; other sources are read in
between.
"""
_TERMINAL = "/dev/tty"

descriptor = 0
"""Number of the open file that standard input is read from."""


def is_meant(spec: str) -> bool:
    """Return whether what the user named is standard input."""
    return spec in ("-", str(PATH))


def has_keys() -> bool:
    """Return whether there is a terminal to read keys from, whatever standard input is."""
    try:
        os.close(os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def make_way() -> None:
    """Put the terminal in the place of standard input, for programs that read keys there; the log
    is read elsewhere.

    Raises:
        OSError: There is no terminal.
    """
    global descriptor  # noqa: PLW0603 - a process has one standard input
    terminal = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY)
    descriptor = os.dup(0)
    os.dup2(terminal, 0)
    os.close(terminal)


def matches(path: Path, head: bytes) -> bool:
    """No file is standard input."""
    return False


def reader(path: Path) -> HeldReader:
    """Return what holds its beginning until that shows its format."""
    return HeldReader()


class HeldReader(Reader):
    """Holds the first lines back until they show the format."""

    def __init__(self) -> None:
        self.held = b""
        self._seen = 0
        """Bytes of the lines looked at."""
        self._lines = 0

    def feed(self, data: bytes) -> Sequence[Record]:
        """Keep further bytes."""
        self.held += data
        return ()

    def finish(self) -> Sequence[Record]:
        """Report that what is held is no text, if so, once."""
        why, self.held = why_unread(self.held), b""
        return () if why is None else (Unreadable(1, why, ""),)

    def recognised(self) -> Format | None:
        """Return the format, once known. Lines are looked at one by one as they come: what is found
        must not depend on how they came.
        """
        while (end := self.held.find(b"\n", self._seen, HEAD) + 1) > 0:
            line = self.held[self._seen : end]
            self._seen = end
            self._lines += 1
            together = self._lines <= _FIRST_LINES or self.held.startswith(_DOCUMENTS)
            begin = self.held[:end] if together else line
            # A table is known by a header with a row below it.
            names = _NAMES if 1 < self._lines <= _FIRST_LINES else _NAMES[:1]
            if (found := _format_of(begin, names)) is not None:
                return found
        return console if len(self.held) >= HEAD else None

    def at_end(self) -> Format | None:
        """Return the format of all that came: what is not recognised is a console."""
        if not self.held.strip() or why_unread(self.held):
            return None
        return _format_of(self.held[:HEAD], _NAMES) or console


def _format_of(begin: bytes, names: Sequence[Path]) -> Format | None:
    """Return the format of a text, as of a file under one of some names."""
    fits = (one for one in FORMATS if any(one.matches(path, begin) for path in names))
    return next(fits, None)


class PipeTail(Tail):
    """Reads the bytes of a pipe, as `Tail` reads those of a file."""

    def __init__(self) -> None:
        super().__init__(PATH)
        self.patience = 0.0
        """Seconds to wait where there is nothing; above 0, it is read to its end."""
        self.ended = False

    def read(self, limit: int = CHUNK) -> Chunk:
        """Read at most `limit` bytes.

        Raises:
            OSError: It cannot be read.
        """
        if self.ended or not limit:
            return Chunk(b"")
        if not select.select([descriptor], [], [], self.patience)[0]:
            return Chunk(b"", more=self.patience > 0)
        data = os.read(descriptor, limit)
        if data:
            self.offset = self.size = self.offset + len(data)
            self.modified = time()
        self.ended = not data
        return Chunk(data, more=bool(data))


class PipeSource(FileSource):
    """Standard input, read as it comes."""

    def __init__(self, format: Format, tail: PipeTail | None = None) -> None:
        self._pipe = tail or PipeTail()
        super().__init__(PATH, format, tail=self._pipe)

    @property
    def _place(self) -> str:
        return str(PATH)  # which leads to another place in each process

    def read(self) -> tuple[Records, bool]:
        """Return the records of the next bytes, and whether more wait; at its end the last ones."""
        had_ended = self._pipe.ended
        records, more = super().read()
        if isinstance(self._reader, HeldReader):
            records = self._begin(self._reader, self._reader.recognised())
        if self._pipe.ended and not had_ended:
            records = (*records, *self.finish())
        return records, more

    def status(self) -> SourceStatus:
        """Return how it is doing; who wrote to it is gone where nothing more can come."""
        is_over = self._pipe.ended and not self._pipe.patience
        return super().status()._replace(writer=CLOSED if is_over else None)

    def finish(self) -> Records:
        """Return what only waits for its end; while the format is unknown, silence means
        nothing.
        """
        if not isinstance(self._reader, HeldReader):
            return super().finish()
        if not self._pipe.ended:
            return ()
        return (*self._begin(self._reader, self._reader.at_end()), *super().finish())

    def _begin(self, held: HeldReader, found: Format | None) -> Records:
        """Read what was held as one of a format, if that is known."""
        if found is None:
            return ()
        self._format, self._reader = found, found.reader(_NAMES[0])
        return self.counted(self._reader.feed(held.held))

    def to_the_end(self) -> None:
        """Wait for more until nothing more can come."""
        self._pipe.patience = _PATIENCE
