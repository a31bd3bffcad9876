"""Recognise the formats of files by their content.

The name only decides how much evidence is needed; files named like source code, weights or pictures
are never opened. A bounded amount of each file is read, and read again only if the file has grown.
Files that the user named one by one are read regardless of their names.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui import debug_log
from verl_tui.failures import in_full
from verl_tui.given_files import why
from verl_tui.patterns import pattern
from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import ROTATED, FoundFile
from verl_tui.sources.discovery.passed_over import EMPTY, UNKNOWN
from verl_tui.sources.files import (
    DEEPEST,
    head,
    is_binary,
    is_folder,
    opened,
    why_unread,
)
from verl_tui.sources.formats import HEAD, mlflow_files, swanlab, tensorboard, tutorial
from verl_tui.sources.formats.catalog import SINGLE, format_of, is_single, why_none
from verl_tui.sources.formats.console import reader as console
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.sources.formats.format import Format

HYDRA = ".hydra"
_SUFFIXES = toml_table(__file__, "suffixes.toml")
_OTHERS = pattern(
    r"\.(?:py[cix]?|ipynb|(?:ba|z|fi)?sh|cc?|cpp|cuh?|h|hpp|rs|go|m?js|tsx?|s?css|html?|java|rb|pl"
    r"|lua|sql|r|so|a|o|dll|exe|whl|egg|zip|tar|t?gz|bz2|xz|zst|7z|rar"
    r"|png|jpe?g|gif|svg|webp|bmp|ico|tiff?|pdf|mp[34]|wav|avi"
    r"|safetensors|pth?|bin|ckpt|onnx|gguf|np[yz]|pkl|pickle|h5|hdf5|arrow|feather|lmdb|tfrecord"
    r"|distcp|model|metadata|lock|toml|ini|cfg|ya?ml|xml|j2|jinja|tmpl|pid|prof|bib|tex"
    r"|docx|xlsx|pptx|ttf|woff2?|map|patch|diff|swp|tsv)"
)
"""Suffixes of code, weights, pictures and other files that are never logs."""
_WRITTEN = pattern(
    r"(?:readme|license|licence|notice|authors|contributing|changelog|changes|copying|manifest"
    r"|makefile|dockerfile|todo"
    r"|requirements|install|version|gemfile|procfile|vocab|merges|index|setup)\b.*",
    re.IGNORECASE,
)
"""Names of what people write, and of what comes with code and models."""
_FIRST_LINES = 8
"""Lines among which formats look for a record."""
_FIRST = 256
"""Bytes by which a file is known to be the same: enough to tell a rewritten one from a grown
one.
"""
_START = 4096
"""Bytes read to tell a binary file from a text."""
_GONE = (None, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors that are not reported: no file, no gzip, removed meanwhile, or a dangling link."""


class NameClass(Enum):
    """Classes of file names."""

    LOG = "log"
    """A name that logs have."""
    ODD = "odd"
    """A name that any file may have."""
    OTHER = "other"
    """A name that no log has."""


@lru_cache(maxsize=2**15)  # again every few seconds, with each scan
def classify_name(name: str) -> NameClass:
    """Return the class of a file's name."""
    if tensorboard.NAMED in name or name == mlflow_files.META:
        return NameClass.LOG
    suffix = suffix_of(name)
    if _OTHERS.fullmatch(suffix):
        return NameClass.OTHER
    hidden = name.startswith(".") or _WRITTEN.fullmatch(name) is not None
    return NameClass.ODD if hidden or suffix not in _SUFFIXES["logs"] else NameClass.LOG


def is_worth_reporting(name: str) -> bool:
    """True if hardly anything but a log has such a name."""
    return tensorboard.NAMED in name or suffix_of(name) in _SUFFIXES["reported"]


def suffix_of(name: str) -> str:
    """Return a file's suffix without that of a compression, and without what a rotation adds."""
    stem, packed = os.path.splitext(name)  # noqa: PTH122 - quick
    if (
        packed.lower() in _SUFFIXES["packed"]
        and suffix_of(stem) in _SUFFIXES["reported"]
    ):
        name = stem
    name = ROTATED.sub(r"\1", name.lower())
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - quick


class NoLogError(Exception):
    """A file that the user named cannot be read as a log; the text says why."""

    def __init__(self, why: str, *, waits: bool = False) -> None:
        super().__init__(why)
        self.waits = waits
        """True if that may change."""


def beginning(path: Path) -> tuple[bytes, bool]:
    """Return the first bytes of a file, and whether their format is certainly the file's, whatever
    is appended.

    Raises:
        OSError: It cannot be read.
    """
    data = head(path, HEAD)
    if len(data) < HEAD or not _is_within_record(data):
        return data, len(data) >= HEAD
    data = head(path, DEEPEST)
    return data, len(data) >= DEEPEST or not _is_within_record(data)


def _is_within_record(data: bytes) -> bool:
    """Return whether bytes end within a record of JSON in one of the first lines."""
    if data.count(b"\n") >= _FIRST_LINES:
        return False
    return data.rpartition(b"\n")[2].lstrip(b"\xef\xbb\xbf \t").startswith(b"{")


class _Examined(NamedTuple):
    """What is known of a file by what was there of it."""

    known: FoundFile | None = None
    """With the format that it shows; where it has been rewritten and shows none yet, with the one
    that it had before.
    """
    begun: bool = False
    """True if so much of its beginning was there that it tells the format, whatever follows."""
    binary: bool = False
    size: int = 0
    inode: int = 0
    """Which file it was: another one may take its name."""
    first: bytes = b""
    reason: str = UNKNOWN
    """Why it has no format."""

    @property
    def is_final(self) -> bool:
        """True if further bytes can change nothing."""
        sure = self.known is not None and self.known.sure
        return self.binary or (sure and self.begun)

    def is_current(self, status: os.stat_result) -> bool:
        """Return whether examining it again would tell nothing: a file is read again often while it
        is short, later seldom.
        """
        same = self.inode == status.st_ino and self.size <= status.st_size
        return same and status.st_size <= self.size << (self.size >= DEEPEST)

    def remains(self, status: os.stat_result, begin: bytes) -> FoundFile | None:
        """Return what the file still is where it shows no format any more.

        What was taken for a log by the little that was there may be none; what was rewritten, or
        has zeros in its place, remains the log that it was until it shows more.
        """
        same = status.st_ino == self.inode and begin.startswith(self.first)
        continued = same and status.st_size >= self.size
        return None if continued and self.known and self.known.sure else self.known


class Probe:
    """Recognises the formats of files and remembers them."""

    def __init__(self) -> None:
        self._examined: dict[Path, _Examined] = {}
        self._assumed: dict[Path, Format] = {}
        """The formats of files that the user named and that show none so far."""
        self.begin()

    def begin(self) -> None:
        """Begin a scan: what could not be read may be readable now."""
        self.closed: dict[Path, str] = {}
        """Paths that could not be read, and why."""
        self.changed: set[Path] = set()
        """Files whose format is another one than it seemed: only a part of their beginning had been
        there.
        """

    def why_unknown(self, path: Path) -> str | None:
        """Return why a file has no known format, None for one that could not be opened, or was not
        because of its name.
        """
        found = self._examined.get(path)
        return None if not found or path in self.closed else found.reason

    def note(self, path: Path, error: Exception) -> None:
        """Note why a path that may be a log could not be read."""
        number = error.errno if isinstance(error, OSError) else 0
        if number is None and is_worth_reporting(path.name):
            self.closed[path] = str(error)
        elif number not in _GONE:
            self.closed[path] = reason_of(error)
            debug_log.note_error(f"looking at {path}", error)

    def known(self, path: Path) -> FoundFile | None:
        """Return a file with its format, None if it has none (yet)."""
        called = classify_name(path.name)
        if called is NameClass.OTHER and path not in self._examined:
            return None
        try:
            return self._examine(path, called).known
        except Exception as error:  # noqa: BLE001 - a net at the border: it costs this file alone
            self.note(path, error)
            return None

    def named(self, path: Path) -> FoundFile:
        """Return a file that the user named, with its format.

        Raises:
            NoLogError: It cannot be read as a log.
        """
        if kind := _SUFFIXES["quotes"].get(path.suffix.lower()):
            raise NoLogError(f"is {kind}, not a log: save what was printed as text")
        try:
            begin, _ = beginning(path)
            known = self._examine(path, NameClass.LOG).known
        except OSError as error:
            raise NoLogError(reason_of(error)) from None
        if not begin.strip():
            raise NoLogError(EMPTY, waits=True)
        if not known:
            format = self._assumed[path] = _assumed(path, begin)
            return FoundFile(path, format, title=naming.experiment_name(begin))
        if self._assumed.pop(path, known.format) is not known.format:
            self.changed.add(path)
        return known

    def _examine(self, path: Path, called: NameClass) -> _Examined:
        """Return what is known of a file with a name of a class; examine it if it is new or has
        grown enough.
        """
        before = self._examined.get(path, _Examined())
        if before.is_final:
            return before
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return _Examined()
        if before.is_current(status):
            return before
        found = self._examined[path] = _examine_again(path, before, status, called)
        was = before.known and before.known.format
        if was and (not found.known or found.known.format is not was):
            self.changed.add(path)
        return found


def _examine_again(
    path: Path, before: _Examined, status: os.stat_result, called: NameClass
) -> _Examined:
    """Return what is known of a file, examined again."""
    data, begun = head(path, _START), False
    first, whole = data[:_FIRST], len(data) < _START
    binary = is_binary(data) and not whole
    if not (whole or binary):
        data, begun = beginning(path)
    found = _by_beginning(path, data, called)
    named = called is NameClass.LOG and suffix_of(path.name) in _SUFFIXES["texts"]
    if not found and named and not binary:
        found = _as_console(path, status.st_size)
    known = found or before.remains(status, data)
    why = "" if known else _why_none(data)
    return _Examined(known, begun, binary, status.st_size, status.st_ino, first, why)


def _why_none(begin: bytes) -> str:
    return why_none(begin) or why_unread(begin) or (UNKNOWN if begin else EMPTY)


def _by_beginning(path: Path, begin: bytes, called: NameClass) -> FoundFile | None:
    """Recognise a file by its beginning."""
    format = format_of(path, begin) if begin.strip() else None
    # With any name a console needs more than a mark; Hydra's own log holds only what went through
    # Python's logging, not what was printed.
    odd = called is NameClass.ODD
    hydra = path.suffix == ".log" and is_folder(path.parent / HYDRA)
    sure = format is not console or not (odd or hydra) or console.is_sure(begin)
    if format is None or (odd and not sure):
        return None
    named = swanlab.run_title if format is swanlab else naming.experiment_name
    return FoundFile(path, format, sure=sure, title=named(begin))


def _as_console(path: Path, size: int) -> FoundFile | None:
    """Recognise a console by its marks after its beginning, and one without a step by its first
    lines, a bar or an error.
    """
    text = head(path, DEEPEST)
    with opened(path) as file:
        end = os.pread(file.fileno(), HEAD, max(DEEPEST, size - HEAD))
    behind = text[HEAD // 2 :] if len(text) > HEAD else b""
    if console.matches(path, behind) or console.matches(path, end):
        return FoundFile(path, console)
    text = text[:HEAD] + b"\n" + (end or text[HEAD:])[-HEAD:]
    named = f"{path.parent.name}/{path.name}"
    signs = (
        console.begins(text) or console.shows_bar(text) or console.failed(text, named)
    )
    title = naming.experiment_name(text)
    return FoundFile(path, console, sure=False, title=title) if signs else None


def _assumed(path: Path, begin: bytes) -> Format:
    """Return how a text is read whose beginning fits no format yet.

    Raises:
        NoLogError: It is no text, or known to be something else.
    """
    if what := why_none(begin):
        raise NoLogError(f"is {what}")
    if is_single(begin):
        raise NoLogError(f"holds {SINGLE}", waits=True)
    if is_binary(begin):
        raise NoLogError(f"is {why_unread(begin) or 'a binary file, not a log'}")
    is_json = path.suffix in (".jsonl", ".json")
    return tutorial if is_json else console


def reason_of(error: Exception) -> str:
    """Return in a few words why a path cannot be read."""
    if isinstance(error, OSError):
        return why(error)
    return f"could not be examined: {in_full(error)}"
