"""Select the entries of a directory that may belong to a run, by their names and links; recognise
the formats of files by their content.

The name only decides how much evidence is needed; files named like source code, weights or pictures
are never opened. A bounded amount of each file is read, and read again only if the file has grown.
Files that the user named one by one are read regardless of their names.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import defaultdict
from contextlib import suppress
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui import debug_log
from verl_tui.patterns import pattern
from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.found import FoundFile
from verl_tui.sources.discovery.passed_over import EMPTY, UNKNOWN
from verl_tui.sources.files import rotated
from verl_tui.sources.files.compressed import (
    DEEPEST,
    SUFFIX,
    head,
    is_binary,
    uncompressed_name,
    why_unread,
)
from verl_tui.sources.files.paths import checkpoint_step, is_folder
from verl_tui.sources.files.rotated import base
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats import HEAD, mlflow_files, swanlab, tensorboard, tutorial
from verl_tui.sources.formats.catalog import SINGLE, format_of, is_single, why_none
from verl_tui.sources.formats.console import reader as console
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.sources.formats.format import Format


HYDRA = ".hydra"
_EXPORTED = pattern(
    r"verl-tui-.+(?:-samples?(?:-\d+)*\.jsonl|\.csv|\.txt)|events\.out\.tfevents\..+\.verl-tui"
)
"""Files that verl-tui exported: read only if the user names them."""
_BOOKKEEPING = pattern(
    r"(?s)(?:[^/]*/)?(?:wandb/debug.*\.log|files/wandb-(?:summary|metadata)\.json)"
    r"|session_[^/]*/logs/(?:raylet|gcs_server|monitor|log_monitor|dashboard|runtime_env|agent"
    r"|ray_client|debug_state|io-worker|python-core|old|export|events?).*"
)
_WANDB_RUN = pattern(r"^(?:offline-)?run-\d{8}_\d{6}-(.+)$")
_WANDB_LOG = pattern(r"run-(.+)\.wandb")
_IN_WANDB_RUN = {"files", "logs"}
"""Directories beside the log of a W&B run."""
_SKIPPED = {"lost+found", "node_modules", "__pycache__", "site-packages"}
_LOGS = frozenset({
    ".jsonl", ".log", ".out", ".err", ".txt", ".json", ".csv", ".wandb", ".parquet", ".db",
    ".prom", ".swanlab", "",
})  # fmt: skip
_REPORTED = {".log", ".out", ".err", ".jsonl", ".wandb"}
"""Suffixes of files that are reported if their format is unknown: hardly any but logs have them."""
_PACKED = {".bz2", ".xz", ".zst", ".lz4"}
"""Suffixes of compressed files that are not read, but reported if they were logs."""
_OTHERS = frozenset({
    ".py", ".pyc", ".pyi", ".pyx", ".ipynb", ".sh", ".bash", ".zsh", ".fish", ".c", ".cc",
    ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs", ".go", ".js", ".mjs", ".ts", ".tsx", ".css",
    ".scss", ".html", ".htm", ".java", ".rb", ".pl", ".lua", ".sql", ".r", ".so", ".a",
    ".o", ".dll", ".exe", ".whl", ".egg", ".zip", ".tar", ".tgz", ".bz2", ".xz", ".zst",
    ".7z", ".rar", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".ico", ".tif",
    ".tiff", ".pdf", ".mp4", ".mp3", ".wav", ".avi", ".safetensors", ".pt", ".pth", ".bin",
    ".ckpt", ".onnx", ".gguf", ".npz", ".npy", ".pkl", ".pickle", ".h5", ".hdf5", ".arrow",
    ".feather", ".lmdb", ".tfrecord", ".distcp", ".model", ".metadata", ".lock", ".toml",
    ".ini", ".cfg", ".yaml", ".yml", ".xml", ".j2", ".jinja", ".tmpl", ".pid", ".prof",
    ".bib", ".tex", ".docx", ".xlsx", ".pptx", ".ttf", ".woff", ".woff2", ".map", ".patch",
    ".diff", ".swp", ".tsv",
})  # fmt: skip
"""Suffixes of code, weights, pictures and other files that are never logs."""
_WRITTEN = pattern(
    r"(?:readme|license|licence|notice|authors|contributing|changelog|changes|copying|manifest"
    r"|makefile|dockerfile|todo"
    r"|requirements|install|version|gemfile|procfile|vocab|merges|index|setup)\b.*",
    re.IGNORECASE,
)
"""Names of what people write, and of what comes with code and models."""


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
    if suffix in _OTHERS:
        return NameClass.OTHER
    hidden = name.startswith(".") or _WRITTEN.fullmatch(name) is not None
    return NameClass.ODD if hidden or suffix not in _LOGS else NameClass.LOG


def is_worth_reporting(name: str) -> bool:
    """True if hardly anything but a log has such a name."""
    return tensorboard.NAMED in name or suffix_of(name) in _REPORTED


@lru_cache(maxsize=2**15)
def suffix_of(name: str) -> str:
    """Return a file's suffix without that of a rotation or a compression."""
    stem, packed = os.path.splitext(name)  # noqa: PTH122 - quick
    if packed.lower() in _PACKED and suffix_of(stem) in _REPORTED:
        name = stem
    name = base(name) or name.lower().removesuffix(SUFFIX)
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - quick


def list_entries(directory: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a directory by name, links last: a run gets its own name, not `latest`.

    Raises:
        OSError: It cannot be read.
    """
    with os.scandir(directory) as entries:
        logs = [entry for entry in entries if not _EXPORTED.fullmatch(entry.name)]
    return sorted(logs, key=lambda entry: (entry.is_symlink(), entry.name))


def leads_within(link: os.DirEntry[str], top: Path) -> bool:
    """True if a link leads to a place inside or above `top`, or to a checkpoint."""
    if not link.is_symlink():
        return False
    target, whole = Path(os.path.realpath(link.path)), Path(os.path.realpath(top))
    if whole in target.parents:
        below = target.relative_to(whole).parts
        return not any(part.startswith(".") for part in below)
    return target in (whole, *whole.parents) or checkpoint_step(target.name) is not None


def is_skipped(name: str, wandb: str) -> bool:
    """True if a directory, of the W&B run of an id, is not entered because of its name."""
    if name.startswith("."):
        return name != HYDRA
    own = bool(wandb) and name == "logs"
    return own or name in _SKIPPED or checkpoint_step(name) is not None


def is_bookkeeping(path: Path) -> bool:
    """True for what W&B and Ray write of themselves beside logs."""
    return _BOOKKEEPING.fullmatch("/".join(path.parts[-3:])) is not None


def wandb_id(directory: Path, names: Iterable[str] = ()) -> str:
    """Return the id of the W&B run whose directory a path is or lies in, or which has, under
    another name, these entries; empty outside of any.
    """
    logs = map(_WANDB_LOG.fullmatch, () if _IN_WANDB_RUN.isdisjoint(names) else names)
    of_parts = map(_WANDB_RUN.match, reversed(directory.parts))
    found = next(filter(None, (*of_parts, *logs)), None)
    return found[1] if found else ""


_FIRST_LINES = 8
"""Lines among which formats look for a record."""
_FIRST = 256
"""Bytes by which a file is known to be the same: enough to tell a rewritten one from a grown
one.
"""
_START = 4096
"""Bytes read to tell a binary file from a text."""
MOST_ODD = 500
"""Files of a directory that are opened though they are not called as logs are."""
_GONE = (None, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors that are not reported: no file, no gzip, removed meanwhile, or a dangling link."""
_TEXTS = {".log", ".out", ".err", ".txt", ""}
"""Suffixes of what programs print: a bar or a failed start is enough to know them by."""
_QUOTES = {
    ".ipynb": "a notebook",
    ".html": "a web page",
    ".htm": "a web page",
    ".cast": "a recording of a terminal",
}
"""Files that quote what was printed in signs of their own: some of each line would be lost."""


class NoLogError(Exception):
    """A file that the user named cannot be read as a log; the text says why."""

    def __init__(self, why: str, *, waits: bool = False) -> None:
        super().__init__(why)
        self.waits = waits
        """True if that may change."""


def beginning(path: Path) -> tuple[bytes, bool]:
    """Return the first bytes of a file, decompressed if it is compressed, and whether their format
    is certainly the file's, whatever is appended.

    Raises:
        OSError: It cannot be read, or is no gzip file although it is called so.
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


class _Look(NamedTuple):
    """What is known of a file by what was there of it."""

    size: int = 0
    inode: int = 0
    """Which file it was: another one may take its name."""
    first: bytes = b""
    known: FoundFile | None = None
    """With the format that it shows; where it has been rewritten and shows none yet, with the one
    that it had before.
    """
    begun: bool = False
    """True if so much of its beginning was there that it tells the format, whatever follows."""
    binary: bool = False
    reason: str = UNKNOWN
    """Why it has no format."""

    @property
    def is_final(self) -> bool:
        """True if further bytes can change nothing."""
        sure = self.known is not None and self.known.sure
        return self.binary or (sure and self.begun)

    def remains(self, status: os.stat_result, begin: bytes) -> FoundFile | None:
        """Return what the file still is where it shows no format any more.

        What was taken for a log by the little that was there may be none; what was rewritten, or
        has zeros in its place, remains the log that it was until it shows more.
        """
        same = status.st_ino == self.inode and begin.startswith(self.first)
        doubted = self.known is None or (self.known.sure and not self.begun)
        continued = same and status.st_size >= self.size
        return None if continued and doubted else self.known

    def is_current(self, status: os.stat_result, called: NameClass) -> bool:
        """Return whether another look would tell nothing: a file is read again often while it is
        short, later seldom.
        """
        often = DEEPEST if called is NameClass.LOG else HEAD
        grown = self.size < status.st_size and self.size < often
        doubled = not self.size <= status.st_size <= 2 * self.size
        return status.st_ino == self.inode and not (grown or doubled)


class Probe:
    """Recognises the formats of files and remembers them."""

    def __init__(self) -> None:
        self._looks: dict[Path, _Look] = {}
        self._assumed: dict[Path, Format] = {}
        """The formats of files that the user named and that show none so far."""
        self.closed: dict[Path, str] = {}
        """Paths that could not be read, and why, since `begin`."""
        self._odd: defaultdict[Path, set[str]] = defaultdict(set)
        """Files opened in each directory though they are not called as logs are."""
        self.crowded: set[Path] = set()
        """Directories in which there are too many of these."""
        self.changed: set[Path] = set()
        """Files whose format is another one than it seemed, since `begin`: only a part of their
        beginning had been there.
        """

    def begin(self) -> None:
        """Begin a scan: what could not be read may be readable now."""
        self.closed.clear()
        self.changed.clear()

    def why_unknown(self, path: Path) -> str | None:
        """Return why a file has no known format, None for one that could not be opened, or was not
        because of its name.
        """
        look = self._looks.get(path)
        if look is None or path in self.closed:
            return None
        return look.reason if look.size else EMPTY

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
        if path not in self._looks and not self._may_open(path, called):
            return None
        try:
            return self._look(path, path, called).known
        except Exception as error:  # noqa: BLE001 - a net at the border: it costs this file alone
            self.note(path, error)
            return None

    def any(self, paths: Iterable[Path], format: Format) -> bool:
        """Return whether one of some files has a format."""
        return any(one.format is format for one in filter(None, map(self.known, paths)))

    def named(self, path: Path) -> FoundFile:
        """Return a file that the user named, with its format.

        Raises:
            NoLogError: It cannot be read as a log.
        """
        kind = _QUOTES.get(path.suffix.lower())
        if kind is not None:
            raise NoLogError(f"is {kind}, not a log: save what was printed as text")
        part = rotated.newest_part(path)
        try:
            begin, _ = beginning(part)
            known = self._look(path, part, NameClass.LOG).known
        except OSError as error:
            raise NoLogError(reason_of(error)) from None
        if not begin.strip():
            raise NoLogError(EMPTY, waits=True)
        if known is None:
            format = self._assumed[path] = _assumed(path, begin)
            return FoundFile(path, format, title=naming.experiment_name(begin))
        if self._assumed.pop(path, known.format) is not known.format:
            self.changed.add(path)
        return known._replace(path=path)

    def _may_open(self, path: Path, called: NameClass) -> bool:
        """Return whether a file may be a log by its name; not many of any name are opened."""
        if called is not NameClass.ODD:
            return called is NameClass.LOG
        opened_here = self._odd[path.parent]
        if len(opened_here) >= MOST_ODD and path.name not in opened_here:
            self.crowded.add(path.parent)
            return False
        opened_here.add(path.name)
        return True

    def _look(self, path: Path, part: Path, called: NameClass) -> _Look:
        """Return what is known of a file; look at it if it is new or has grown enough.

        Args:
            path: The file.
            part: What holds its newest lines.
            called: The class of its name.
        """
        before = self._looks.get(path, _Look())
        if before.is_final:
            return before
        status = part.stat()
        if not stat.S_ISREG(status.st_mode):
            return _Look()
        if path in self._looks and before.is_current(status, called):
            return before
        look = self._looks[path] = _looked(part, before, status, called)
        was = before.known.format if before.known else None
        if was is not None and (look.known is None or look.known.format is not was):
            self.changed.add(path)
        return look


def _looked(
    part: Path, before: _Look, status: os.stat_result, called: NameClass
) -> _Look:
    """Return what is known of a file after another look."""
    data, begun = head(part, _START), False
    first, whole = data[:_FIRST], len(data) < _START
    binary = is_binary(data) and not whole
    if not (whole or binary):
        data, begun = beginning(part)
    found = _by_beginning(part, data, called)
    named = called is NameClass.LOG and suffix_of(part.name) in _TEXTS
    if found is None and named and not binary:
        found = _as_console(part, status.st_size)
    known = found or before.remains(status, data)
    why = "" if known else _why_none(data)
    return _Look(status.st_size, status.st_ino, first, known, begun, binary, why)


def title_in(path: Path) -> str:
    """Return what a file of settings calls the experiment, empty if it does not."""
    with suppress(OSError):
        return _title_in(path, path.stat().st_mtime_ns)
    return ""


@lru_cache(maxsize=2**15)
def _title_in(path: Path, _changed: int) -> str:
    return naming.experiment_name(head(path, HEAD))


def _why_none(begin: bytes) -> str:
    return why_none(begin) or why_unread(begin) or UNKNOWN


def _by_beginning(path: Path, begin: bytes, called: NameClass) -> FoundFile | None:
    """Recognise a file by its beginning."""
    format = format_of(uncompressed_name(path), begin) if begin.strip() else None
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
    """Recognise a console by its marks behind its beginning, and one without a step by its first
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
    if (what := why_none(begin)) is not None:
        raise NoLogError(f"is {what}")
    if is_single(begin):
        raise NoLogError(f"holds {SINGLE}", waits=True)
    if is_binary(begin):
        raise NoLogError(f"is {why_unread(begin) or 'a binary file, not a log'}")
    is_json = uncompressed_name(path).suffix in (".jsonl", ".json")
    return tutorial if is_json else console


def reason_of(error: Exception) -> str:
    """Return in a few words why a path cannot be read."""
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return one_line(f"could not be examined: {type(error).__name__}: {error}", 200)
