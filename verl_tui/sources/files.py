"""Files as bytes, followed as they grow; what a path is, where unreadable places count as missing
(pathlib raises up to Python 3.13); and a source, which most files are. It keeps a bounded number of
metrics: a broken file, or one with a name for each sample, has any number of them.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import (
    Event,
    EventKind,
    Histogram,
    MetricRows,
    Record,
    Records,
    SourceStatus,
    Unreadable,
)

# -- paths -----------------------------------------------------------------------------------------

_CHECKPOINT = pattern(r"^(?:global_step_|policy-step-|checkpoint-|step_?)(\d{1,15})$")
HOMES = ("checkpoints", "ckpts", "ckpt", "checkpoint")
"""Folders below a run in which checkpoints lie; the run's own folder is looked at too."""


def checkpoint_step(name: str) -> int | None:
    """Return the step in a directory's name if it is a checkpoint, else None."""
    found = _CHECKPOINT.match(name)
    return int(found[1]) if found else None


def one_spelling(path: str) -> Path:
    """Return a path in the one spelling that we use: absolute, without `.` and `..`.

    A link to a directory stays: what lies in it is named through it. A link to a file is followed,
    since the run's other files lie beside the target; unless that has another ending, by which
    formats are recognised.

    Raises:
        OSError: The current directory is gone.
    """
    absolute = Path(path).absolute()
    real = Path(os.path.realpath(absolute))
    if (
        ".." in absolute.parts
    ):  # behind a link it leads to another place than the text says
        return real
    followed = os.path.islink(absolute) and is_file(real)  # noqa: PTH114 - pathlib's may raise
    if followed and real.suffix == absolute.suffix:
        return real
    return absolute


_ESCAPED = str.maketrans({"%": "%25", "/": "%2F", "\0": "%00"})


def is_folder(path: Path | os.DirEntry[str]) -> bool:
    """Return whether a directory can be seen at a path."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_file(path: Path | os.DirEntry[str]) -> bool:
    """Return whether a file can be seen at a path."""
    try:
        return path.is_file()
    except OSError:
        return False


def status_at(path: Path) -> os.stat_result | None:
    """Return the status of what lies at a path, None where nothing can be seen."""
    try:
        return path.stat()
    except OSError:
        return None


def file_size(path: Path) -> int:
    """Return the bytes of a file, 0 where it cannot be seen."""
    return getattr(status_at(path), "st_size", 0)


def file_and_part(path: Path) -> tuple[Path, str | None]:
    """Return the file in which a run lies, and the part of it that is the run; the path itself
    where it names no part.
    """
    above = path.parent
    if above.name and is_file(above):
        return (above, path.name)
    return (path, None)


def escaped(name: str) -> str:
    """Return a name as the last part of a path."""
    return name.translate(_ESCAPED)


def unescaped(part: str) -> str:
    """Return the name that the last part of a path stands for."""
    return part.replace("%2F", "/").replace("%25", "%").replace("%00", "")


# -- growing files ---------------------------------------------------------------------------------

_PRINT = 256
"""Bytes compared at the head and before the offset: enough to tell a rewritten file from a grown
one.
"""
CHUNK = 2**18
"""Bytes that are read at once: of more the screen stutters while a log loads."""
NEWEST = "checkpoint-*"
"""In a path: the newest checkpoint with this file in it."""


class Chunk(NamedTuple):
    """The bytes of one read."""

    data: bytes
    """The next bytes."""
    restarted: str | None = None
    """Why they are a new beginning of the file."""
    more: bool = False
    """True if further bytes wait to be read."""


def opened(path: Path, buffering: int = 0) -> BinaryIO:
    """Open a file to be read. A pipe or a device would block, and bytes taken from it would be
    missing elsewhere.

    Raises:
        OSError: It cannot be read, or is no file.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError("not a file; `verl-tui -` reads pipes")
    return path.open("rb", buffering=buffering)


class Tail:
    """Reads a file as it grows. Raises OSError where the file cannot be read; may be asked again
    later.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.moved: Path | None = None
        """Where it lies now if a rotation moved it away beneath its writer."""
        self.offset = 0
        """Bytes read so far."""
        self.size = 0
        """Bytes there are, counted alike."""
        self.modified: float | None = None
        """Time of the last change."""
        self.identity: tuple[int, int] | None = None
        """Device and inode of the file that was read last."""
        self._stamp: tuple[int, ...] = ()
        """Stamp of the file when it was last opened."""
        self.head = b""
        """The first bytes read."""
        self.last = b""
        """The last bytes read."""

    def read(self, limit: int = CHUNK) -> Chunk:
        """Read at most `limit` new bytes.

        Raises:
            OSError: The file is gone or may not be read.
        """
        path, self.moved = newest_checkpoint_file(self.path), None
        known = status_at(path) or self._moved(path)
        self.size = known.st_size
        self.modified = known.st_mtime
        identity = known.st_dev, known.st_ino
        # An inode may be used again at once, so the time belongs to what makes a file the same.
        stamp = (*identity, known.st_size, known.st_mtime_ns)
        if self._stamp == stamp and known.st_size == self.offset:
            return Chunk(b"")
        self._stamp = stamp
        with opened(self.moved or path) as file:
            why = self._check(file.fileno(), identity)
            if why is not None:
                return Chunk(b"", why, more=True)
            data = os.pread(file.fileno(), limit, self.offset)
        if self.offset == len(self.head):  # both 0 at the beginning
            self.head = (self.head + data)[:_PRINT]
        self.last = (self.last + data[-_PRINT:])[-_PRINT:]
        self.offset += len(data)
        return Chunk(data, more=bool(data) and self.offset < known.st_size)

    def _moved(self, path: Path) -> os.stat_result:
        """Return the status of a file that does not lie at its place any more, and note where it
        lies beside it; raise OSError where it does not.
        """
        for one in path.parent.glob(f"{glob.escape(path.name)}?*"):
            info = status_at(one)
            if info and (info.st_dev, info.st_ino) == self.identity:
                self.moved = one
                return info
        return path.stat()

    def _check(self, descriptor: int, identity: tuple[int, int]) -> str | None:
        """Return why the file is not the one we have been reading, and start over; None if it
        is. Log shippers replace a file by a longer copy of itself: that is the same.
        """
        before, self.identity = self.identity, identity
        shrunk = self.size < self.offset
        ends = (self.last, self.offset - len(self.last)), (self.head, 0)
        if not before or (
            not shrunk
            and all(os.pread(descriptor, len(end), at) == end for end, at in ends)
        ):
            return None
        self.offset = 0
        self.head = self.last = b""
        if before != identity:
            return "file was replaced"
        return "file was truncated" if shrunk else "file was rewritten"


def is_checkpoint(name: str) -> bool:
    """Return whether a directory is called as the trainer of Hugging Face calls its checkpoints."""
    return name.startswith("checkpoint-") and checkpoint_step(name) is not None


def newest_checkpoint_file(path: Path) -> Path:
    """Return the file of the newest checkpoint that a path with `checkpoint-*` in it stands for;
    any other path as it is.
    """
    home = path.parent
    if home.name != NEWEST:
        return path
    try:
        every = os.listdir(home.parent)  # noqa: PTH208 - names are enough
    except OSError:
        return path
    names = sorted(filter(is_checkpoint, every), key=lambda name: (len(name), name))
    files = (home.with_name(name) / path.name for name in reversed(names))
    return next(filter(is_file, files), path)


# -- beginnings ------------------------------------------------------------------------------------

DEEPEST = 4 * 2**20
"""Bytes in which a console's first step is searched, validation samples may come before it; and
those read where one of the first records does not end before: five thousand metrics, a long chat.
"""
PACKED = "compressed: unpack it to have it read"
WIDE = "UTF-16, as PowerShell writes it: convert it to UTF-8 to have it read"
_UNREAD = {
    b"\x1f\x8b": PACKED,  # gzip
    b"BZh": PACKED,  # bzip2
    b"\xfd7zXZ\0": PACKED,
    b"\x28\xb5\x2f\xfd": PACKED,  # zstd
    b"\x04\x22\x4d\x18": PACKED,  # lz4
    b"PK\x03\x04": PACKED,  # zip
    b"\xff\xfe": WIDE,
    b"\xfe\xff": WIDE,
}
"""How files begin that cannot be read as a text, and why."""
_TEXT = bytes({*b"\0\a\b\t\n\v\f\r\x1b", *range(0x20, 0x100)})
_LOOKED_AT = 4096
"""Bytes that tell: enough to hold what is between the names in a binary file."""


def why_unread(begin: bytes) -> str | None:
    """Return why a file that begins so cannot be read as a text, None where it may be one."""
    return next((why for sign, why in _UNREAD.items() if begin.startswith(sign)), None)


def is_binary(data: bytes) -> bool:
    """Return whether the beginning of a file is that of no text.

    Zero bytes alone do not tell: a log that was emptied beneath its writer begins with as many as
    it had bytes, and a machine that has failed may leave some anywhere.
    """
    if why_unread(data) == WIDE:
        return True
    begin = data.lstrip(b"\0")[:_LOOKED_AT]
    odd = (
        begin.translate(None, delete=_TEXT) or b"ustar" in begin
    )  # an archive of texts
    return b"\0" in begin and bool(odd)


def head(path: Path, limit: int) -> bytes:
    """Return the first bytes of a file; raise OSError where it cannot be read."""
    with opened(path) as file:
        return file.read(limit)


# -- sources ---------------------------------------------------------------------------------------


MOST_METRICS = 20_000
"""Metrics kept of a source, those that came first: some times what verl logs of hundreds of data
sources.
"""
_REPORTED_UNREADABLE = 1000
"""Unreadable lines handed on one by one; further ones are only counted, a binary file has
millions.
"""


class Source:
    """Read by one thread, a bounded amount at a time. Keeps what it says of itself."""

    format = ""
    rank = 0
    absolute = False
    """True if its records state seconds since the epoch."""

    def __init__(self, path: Path, ordinal: int = 0) -> None:
        self.path = path
        self.ordinal = ordinal
        self._records = self._unreadable = 0
        self._bytes = self._pending = 0
        """Bytes that have been read, and that wait."""
        self._modified: float | None = None
        """Seconds since the epoch."""
        self._problem: str | None = None
        """Why nothing can be read at present."""
        self.moved: Path | None = None
        """Where it is read if it was moved beneath its writer."""
        self._kept: set[str] = set()
        """Those that are kept."""
        self._is_full = False
        """True if there were more metrics."""

    @property
    def note(self) -> str | None:
        """Return a remark on its figures, None without one."""
        return None

    def read(self) -> tuple[Records, bool]:
        """Return the next records, and whether more wait to be read at once. Never raises for what
        a file holds.
        """
        raise NotImplementedError

    def finish(self) -> Records:
        """Return the record that only waits for a line end: this is the last read."""
        return ()

    def counted(self, records: Iterable[Record]) -> Records:
        """Count records that were read; return them without what is only counted, or not kept. Of
        a histogram the quantiles count, and any text may hold lines of trouble.
        """
        kept: list[Record] = []
        for record in records:
            known: Record | None = record
            if isinstance(record, Unreadable):
                self._unreadable += 1
                if self._unreadable > _REPORTED_UNREADABLE:
                    known = None
            elif isinstance(record, MetricRows):
                self._records += len(record.steps)
                if not self._kept.issuperset(record.keys):
                    known = self._learn(record)
            elif isinstance(record, Histogram):
                known = record if self._has_room([record.key]) else None
            elif not (isinstance(record, Event) and record.kind is EventKind.WARNING):
                self._records += 1
            kept += filter(None, [known])
        return tuple(kept)

    def _learn(self, rows: MetricRows) -> MetricRows:
        """Return rows with further metrics, with those that there is room for."""
        if self._has_room(rows.keys):
            return rows
        places = [at for at, key in enumerate(rows.keys) if key in self._kept]
        return rows._replace(
            keys=tuple([rows.keys[at] for at in places]),
            columns=tuple([rows.columns[at] for at in places]),
        )

    def _has_room(self, keys: Sequence[str]) -> bool:
        """Keep metrics as far as there is room; return whether there is for all."""
        new = [key for key in keys if key not in self._kept]
        room = MOST_METRICS - len(self._kept)
        self._kept.update(new[:room])
        self._is_full |= len(new) > room
        return len(new) <= room

    def status(self) -> SourceStatus:
        """Return how the source is doing."""
        most = f"only the first {MOST_METRICS:,} metrics are kept"
        full = most if self._is_full else None
        return SourceStatus(
            str(self.path),
            self.format,
            self.rank,
            self.ordinal,
            self._records,
            self._unreadable,
            self._bytes,
            self._bytes + self._pending,
            self._modified,
            self._problem,
            "; ".join(filter(None, (self.note, full))) or None,
            self.absolute,
        )
