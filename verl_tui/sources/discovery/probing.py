"""Recognise the formats of files by their content.

The name only decides how much evidence is needed; files named like source code, weights or pictures
are never opened. A bounded amount of each file is read, and read again only if the file has grown.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from verl_tui import debug_log
from verl_tui.sources.discovery import naming, passed_over
from verl_tui.sources.discovery.beginning import beginning
from verl_tui.sources.discovery.name_classes import (
    NameClass,
    classify_name,
    is_worth_reporting,
    suffix_of,
)
from verl_tui.sources.files.binary import is_binary
from verl_tui.sources.files.compressed import head, is_compressed, uncompressed_name
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats import HEAD, no_logs
from verl_tui.sources.formats.catalog import format_of
from verl_tui.sources.formats.console import first_signs as console_signs
from verl_tui.sources.formats.console import reader as console
from verl_tui.text import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.sources.formats.format import Format

DEEPEST = 4 * 2**20
"""Bytes in which a console's first step is searched: validation samples may come before it."""
_WINDOW = 512 * 1024
_OVERLAP = 16 * 1024
"""Bytes that two windows share: no mark of a console is longer."""
FIRST = 256
"""Bytes by which a file is known to be the same: enough to tell a rewritten one from a grown
one.
"""
_START = 4096
"""Bytes read to tell a binary file from a text."""
_DEEP_BUDGET = 256 * 2**20
"""Bytes beyond the beginnings of files that are read in one scan: more waits for the next."""
MOST_ODD = 500
"""Files of a directory that are opened though they are not called as logs are."""
_GONE = (None, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors that are not reported: no file, no gzip, removed meanwhile, or a dangling link."""
_TEXTS = {".log", ".out", ".err", ".txt", ""}
"""Suffixes of what programs print: a bar or a failed start is enough to know them by."""


class Recognised(NamedTuple):
    """The format of a file."""

    format: Format
    sure: bool = True
    """False if it is only a bar or a failed start so far: then it is a run only where no better
    log lies beside.
    """
    title: str = ""
    """Name of the experiment in its beginning."""


@dataclass(slots=True)
class Inspection:
    """The part of a file that has been inspected, and its format."""

    size: int
    """Size of the file at that time."""
    inode: int = 0
    """Which file it was: another one may take its name."""
    first: bytes = b""
    """Its first bytes."""
    begun: bool = False
    """True if so much of its beginning was there that it tells the format, whatever follows."""
    at: int = 0
    """Bytes from its beginning that hold no mark of a console."""
    known: Recognised | None = None
    inherited: bool = False
    """True if that is the format of what stood there before: the file has been rewritten, and its
    new content shows no format yet.
    """
    binary: bool = False
    reason: str | None = None
    """What it is, where it is known to be no log."""

    @property
    def is_final(self) -> bool:
        """True if further bytes can change nothing."""
        return self.binary or (
            self.known is not None and self.known.sure and self.begun
        )

    @property
    def is_provisional(self) -> bool:
        """True if it is a log by the little that was there of it."""
        by_content = self.known is not None and self.known.sure and not self.inherited
        return by_content and not self.begun

    def note(
        self,
        known: Recognised | None,
        status: os.stat_result,
        first: bytes,
        *,
        drops: bool,
    ) -> None:
        """Note the result of a look at the file.

        Args:
            known: The format that the file shows.
            status: The file's status.
            first: Its first bytes.
            drops: Whether a file that shows none has none; else it keeps the one it had.
        """
        self.inherited = known is None and self.known is not None and not drops
        self.known = self.known if self.inherited else known
        self.first = first
        self.size = status.st_size
        self.inode = status.st_ino

    def is_continued(self, status: os.stat_result, first: bytes) -> bool:
        """Return whether the file is still the one that was looked at, with more bytes at most.

        Args:
            status: The file's present status.
            first: Its first bytes: another file may have the same inode, zeros take its place.
        """
        return (
            status.st_size >= self.size
            and status.st_ino == self.inode
            and first.startswith(self.first)
        )


class Probe:
    """Recognises the formats of files and remembers them."""

    def __init__(self) -> None:
        self._inspections: dict[Path, Inspection] = {}
        self.closed: dict[Path, str] = {}
        """Paths that could not be read, and why, since `begin`."""
        self._odd: defaultdict[Path, set[str]] = defaultdict(set)
        """Files opened in each directory though they are not called as logs are."""
        self.crowded: set[Path] = set()
        """Directories in which there are too many of these."""
        self._budget = _DEEP_BUDGET
        self.changed: set[Path] = set()
        """Files whose format is another one than it seemed, since `begin`: only a part of their
        beginning had been there.
        """
        self._titles: dict[Path, tuple[int, str]] = {}
        """Files of settings with their time, and what each calls the experiment."""

    def begin(self) -> None:
        """Begin a scan: what could not be read may be readable now."""
        self.closed.clear()
        self.changed.clear()
        self._budget = _DEEP_BUDGET

    def sizes(self, top: Path) -> dict[Path, int]:
        """Return the sizes of the files below a directory without a known format."""
        return {
            path: inspection.size
            for path, inspection in self._inspections.items()
            if inspection.known is None and top in path.parents
        }

    def size(self, path: Path) -> int:
        """Return how large a file was when it was looked at."""
        inspection = self._inspections.get(path)
        return inspection.size if inspection is not None else 0

    def why_unknown(self, path: Path) -> str:
        """Return why a file has no known format."""
        inspection = self._inspections.get(path)
        if inspection is None:
            return passed_over.UNKNOWN
        return inspection.reason or passed_over.why_unknown(inspection.first)

    def title(self, path: Path) -> str:
        """Return what a file of settings calls the experiment, empty if it does not."""
        try:
            changed = path.stat().st_mtime_ns
            if self._titles.get(path, (None, ""))[0] != changed:
                self._titles[path] = changed, naming.experiment_name(head(path, HEAD))
        except OSError:
            return ""
        return self._titles[path][1]

    def note(self, path: Path, error: Exception) -> None:
        """Note why a path that may be a log could not be read."""
        if (
            isinstance(error, OSError)
            and error.errno is None
            and is_worth_reporting(path.name)
        ):
            self.closed[path] = str(error)
        elif not isinstance(error, OSError) or error.errno not in _GONE:
            self.closed[path] = reason_of(error)
            debug_log.note_error(f"looking at {path}", error)
        inspection = self._inspections.get(path)
        if inspection is not None and inspection.known is None:
            # why it cannot be read says more of it than that it has no format
            del self._inspections[path]

    def known(self, path: Path, *, doubted: bool = False) -> Recognised | None:
        """Return the format of a file, None if it has none (yet).

        Args:
            path: The file.
            doubted: Whether a console needs more than a mark to be sure.
        """
        inspection = self._inspections.get(path)
        if inspection is not None and inspection.is_final:
            return inspection.known
        if inspection is None and not self._may_open(path):
            return None
        try:
            known = self._inspect(path, inspection)
        except Exception as error:  # noqa: BLE001 - a net at the border: it costs this file alone
            self.note(path, error)
            return None
        if known is not None and doubted and _is_doubtful(path, known):
            known = self._inspections[path].known = known._replace(sure=False)
        return known

    def _may_open(self, path: Path) -> bool:
        name_class = classify_name(path.name)
        if name_class is NameClass.OTHER:
            return False
        return name_class is NameClass.LOG or self._has_room(path)

    def _inspect(self, path: Path, inspection: Inspection | None) -> Recognised | None:
        """Read a file that is new or has grown; return its format."""
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return None
        name_class = classify_name(path.name)
        inspection = inspection or Inspection(-1, status.st_ino)
        if _is_worth_it(inspection, status, name_class):
            self._update(path, inspection, status, name_class)
        self._inspections[path] = inspection
        return inspection.known

    def _has_room(self, path: Path) -> bool:
        opened_here = self._odd[path.parent]
        if len(opened_here) >= MOST_ODD and path.name not in opened_here:
            self.crowded.add(path.parent)
            return False
        opened_here.add(path.name)
        return True

    def _update(
        self,
        path: Path,
        inspection: Inspection,
        status: os.stat_result,
        called: NameClass,
    ) -> None:
        """Look at a file that is new or has grown."""
        before = inspection.known
        begin = head(path, _START)
        first = begin[:FIRST]
        continued = inspection.is_continued(status, first)
        provisional = inspection.is_provisional
        known = None
        if not inspection.begun or not continued:
            known = self._by_beginning(path, inspection, begin, called)
        known = known or self._as_console(path, inspection, status.st_size, called)
        # A file known by its bar, or rewritten, remains a log until it shows more.
        drops = continued and (provisional or inspection.binary)
        inspection.note(known, status, first, drops=drops)
        if before is not None and format_in(inspection.known) is not before.format:
            self.changed.add(path)

    def _as_console(
        self, path: Path, inspection: Inspection, size: int, called: NameClass
    ) -> Recognised | None:
        """Look for what shows that a text is a console behind its beginning."""
        if (
            inspection.binary
            or called is not NameClass.LOG
            or suffix_of(path.name) not in _TEXTS
        ):
            return None
        return self._deeper(path, inspection, size) or _by_signs(path, size)

    def _by_beginning(
        self, path: Path, inspection: Inspection, begin: bytes, called: NameClass
    ) -> Recognised | None:
        inspection.begun = False
        inspection.binary = is_binary(begin) and len(begin) >= _START
        if len(begin) >= _START and not inspection.binary:
            begin, inspection.begun = beginning(path)
        if not begin.strip():
            return None
        fits = _surely if called is NameClass.ODD else format_of
        format = fits(uncompressed_name(path), begin)
        inspection.reason = no_logs.reason(begin) if format is None else None
        if format is None:
            return None
        return Recognised(format, title=naming.experiment_name(begin))

    def _deeper(
        self, path: Path, inspection: Inspection, size: int
    ) -> Recognised | None:
        """Look for a console's marks after the beginning: up to `DEEPEST`, then at the end only."""
        if is_compressed(path) or size <= HEAD:
            return None
        at = min(max(inspection.at, HEAD), size)
        with opened(path) as file:
            while at < min(size, DEEPEST) and self._budget > 0:
                data = os.pread(file.fileno(), _WINDOW, at - _OVERLAP)
                self._budget -= len(data)
                if console.matches(path, data):
                    return Recognised(console)
                if len(data) <= _OVERLAP:
                    break
                at += len(data) - _OVERLAP
            inspection.at = at
            if size > DEEPEST and console.matches(
                path, os.pread(file.fileno(), _WINDOW, size - _WINDOW)
            ):
                return Recognised(console)
        return None


def format_in(known: Recognised | None) -> Format | None:
    """Return the format that a file has been recognised as, if it has been."""
    return known.format if known is not None else None


def _is_doubtful(path: Path, known: Recognised) -> bool:
    """True if a file has a console's mark and nothing else of one."""
    return (
        known.sure and known.format is console and not console.is_sure(head(path, HEAD))
    )


def _by_signs(path: Path, size: int) -> Recognised | None:
    """Recognise a console without a step by its beginning, a bar or an error."""
    text = head(path, HEAD)
    if not is_compressed(path) and size > HEAD:
        with opened(path) as file:
            text += b"\n" + os.pread(file.fileno(), HEAD, max(HEAD, size - HEAD))
    named = f"{path.parent.name}/{path.name}"
    signs = (
        console_signs.begins(text)
        or console_signs.bar(text)
        or console_signs.failed(text, named)
    )
    if not signs:
        return None
    return Recognised(console, sure=False, title=naming.experiment_name(text))


def _is_worth_it(
    inspection: Inspection, status: os.stat_result, called: NameClass
) -> bool:
    """True if a file has grown enough to be read again: often while short, later seldom."""
    if status.st_size == inspection.size and status.st_ino == inspection.inode:
        return False
    often = DEEPEST if called is NameClass.LOG else HEAD
    return (
        not inspection.size <= status.st_size <= 2 * inspection.size
        or status.st_ino != inspection.inode
        or inspection.size < often
    )


def _surely(path: Path, begin: bytes) -> Format | None:
    """Return the format of a file with any name: a console needs more than a mark here."""
    format = format_of(path, begin)
    if format is console and not console.is_sure(begin):
        return None
    return format


def reason_of(error: Exception) -> str:
    """Return in a few words why a path cannot be read."""
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return one_line(f"could not be examined: {type(error).__name__}: {error}", 200)
