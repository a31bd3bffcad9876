"""Tells what files are by what they hold, whatever they are called. Remembers what it has looked
at; stays cheap.

A file's name only says how hard to look: names of logs are believed more easily than others, and
what is called as source code, weights or pictures are is never opened. Of each file a bounded
amount is read, once; it is looked at again only where it has grown.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.sources.discovery import naming
from verl_tui.sources.files.compressed import SUFFIX, head, plain
from verl_tui.sources.files.rotated import base
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats import FORMATS, HEAD
from verl_tui.sources.formats.console import decoder as console
from verl_tui.sources.formats.console import first_signs as console_signs
from verl_tui.sources.formats.tensorboard import reader as tensorboard
from verl_tui.text import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.sources.formats.format import Format

DEEPEST = 4 * 2**20
"""Bytes of a text among which its first step is looked for: trainings print samples of a validation
before it.
"""
_WINDOW = 512 * 1024
_OVERLAP = 16 * 1024
"""Bytes of a window that are looked at again with the next: the mark of a console is no longer."""
_GLANCE = 4096
"""Bytes that tell a binary file from a text."""
_DEEP_BUDGET = 256 * 2**20
"""Bytes beyond the beginnings of files that are read in one scan: more waits for the next."""
MOST_ODD = 500
"""Files of a directory that are opened though they are not called as logs are."""
_GONE = (None, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors not worth a word: what is no file, went meanwhile, or is a link to nothing."""


_MANY = 2**15
"""Names kept in mind: a directory is looked at every few seconds."""


class Name(Enum):
    """How a file is called."""

    LOG = "log"
    """As logs are."""
    ODD = "odd"
    """In a way that says nothing."""
    OTHER = "other"
    """As something that is no log for certain."""


_LOGS = {
    ".jsonl",
    ".log",
    ".out",
    ".err",
    ".txt",
    ".json",
    ".csv",
    ".wandb",
    ".parquet",
    ".db",
    ".prom",
    "",
}
_TEXTS = {".log", ".out", ".err", ".txt", ""}
"""Suffixes of what programs print: a bar or a failed start is enough to know them by."""
TOLD = {".log", ".out", ".err", ".jsonl", ".wandb"}
"""Suffixes of files that deserve a word where nobody understands them: hardly anything else is
called so.
"""
_OTHERS = frozenset({
    ".py", ".pyc", ".pyi", ".pyx", ".ipynb", ".sh", ".bash", ".zsh", ".fish", ".c", ".cc", ".cpp", ".cu", ".cuh",
    ".h", ".hpp", ".rs", ".go", ".js", ".mjs", ".ts", ".tsx", ".css", ".scss", ".html", ".htm", ".java", ".rb",
    ".pl", ".lua", ".sql", ".r", ".so", ".a", ".o", ".dll", ".exe", ".whl", ".egg", ".zip", ".tar", ".tgz", ".bz2",
    ".xz", ".zst", ".7z", ".rar", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".ico", ".tif", ".tiff",
    ".pdf", ".mp4", ".mp3", ".wav", ".avi", ".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".onnx", ".gguf",
    ".npz", ".npy", ".pkl", ".pickle", ".h5", ".hdf5", ".arrow", ".feather", ".lmdb", ".tfrecord", ".distcp",
    ".model", ".metadata", ".lock", ".toml", ".ini", ".cfg", ".yaml", ".yml", ".xml", ".j2", ".jinja", ".tmpl",
    ".pid", ".prof", ".bib", ".tex", ".docx", ".xlsx", ".pptx", ".ttf", ".woff", ".woff2", ".map", ".patch",
    ".diff", ".swp", ".tsv"
})  # fmt: skip
_WRITTEN = re.compile(
    r"(?:readme|license|licence|notice|authors|contributing|changelog|changes|copying|manifest|makefile|dockerfile|todo"
    r"|requirements|install|version|gemfile|procfile|vocab|merges|index|setup)\b.*",
    re.IGNORECASE,
)
"""Names of what people write, and of what comes with code and models."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a file's content."""

    format: Format
    sure: bool = True
    """False where it is only a bar or a failed start so far: then it is a run only where no better
    log lies beside.
    """
    title: str = ""
    """What its beginning calls the experiment."""


@dataclass(slots=True)
class _Look:
    """What has been looked at of a file."""

    size: int
    """Of the file then."""
    at: int = 0
    """Bytes from its beginning that hold no mark of a console."""
    known: Known | None = None
    binary: bool = False


@lru_cache(maxsize=_MANY)
def kind(name: str) -> Name:
    """Return how a file is called."""
    if tensorboard.NAMED in name:
        return Name.LOG
    suffix = _suffix(name)
    if suffix in _OTHERS:
        return Name.OTHER
    if suffix not in _LOGS or _WRITTEN.fullmatch(name):
        return Name.ODD
    return Name.ODD if name.startswith(".") else Name.LOG


@lru_cache(maxsize=_MANY)
def deserves_a_word(name: str) -> bool:
    """Tell whether a file is called as hardly anything but a log is."""
    return tensorboard.NAMED in name or _suffix(name) in TOLD


@lru_cache(maxsize=_MANY)
def _suffix(name: str) -> str:
    name = base(name) or name.lower().removesuffix(SUFFIX)
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - quick


class Probe:
    """Tells the formats of files."""

    def __init__(self) -> None:
        self._looks: dict[Path, _Look] = {}
        self.closed: dict[Path, str] = {}
        """What could not be looked at, and why, since `begin`."""
        self._odd: Counter[Path] = Counter()
        """Files opened in each directory though they are not called as logs are."""
        self.crowded: set[Path] = set()
        """Directories in which there are too many of these."""
        self._budget = _DEEP_BUDGET
        self._titles: dict[Path, tuple[int, str]] = {}
        """Files of settings with their time, and what each calls the experiment."""

    def begin(self) -> None:
        """Begin a scan: what was closed may be open now."""
        self.closed.clear()
        self._budget = _DEEP_BUDGET

    def sizes(self, top: Path) -> dict[Path, int]:
        """Return the files below a directory that nobody has understood, with their sizes."""
        return {
            path: look.size
            for path, look in self._looks.items()
            if look.known is None and top in path.parents
        }

    def size(self, path: Path) -> int:
        """Return how large a file was when it was looked at."""
        look = self._looks.get(path)
        return look.size if look is not None else 0

    def title(self, path: Path) -> str:
        """Return what a file of settings calls the experiment, empty where it does not."""
        try:
            changed = path.stat().st_mtime_ns
            if self._titles.get(path, (None, ""))[0] != changed:
                self._titles[path] = changed, naming.title(head(path, HEAD))
        except OSError:
            return ""
        return self._titles[path][1]

    def note(self, path: Path, error: Exception) -> None:
        """Keep why something that may be a log could not be looked at."""
        if not isinstance(error, OSError) or error.errno not in _GONE:
            self.closed[path] = why(error)

    def known(self, path: Path, *, doubted: bool = False) -> Known | None:
        """Return what a file is, None where nobody knows (yet).

        Args:
            path: The file.
            doubted: Whether a console needs more than a mark to be sure.
        """
        look = self._looks.get(path)
        if look is not None and (look.binary or (look.known is not None and look.known.sure)):
            return look.known
        called = kind(path.name)
        if called is Name.OTHER or (
            look is None and called is Name.ODD and not self._has_room(path)
        ):
            return None
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                return None
            if look is None:
                look = self._looks[path] = _Look(-1)
            if _is_worth_it(look, status.st_size, called):
                self._look(path, look, status.st_size, called)
        except Exception as error:  # noqa: BLE001 - a net at the border: it costs this file alone
            self.note(path, error)
            if look is not None and look.size < 0:
                del self._looks[path]
            return None
        known = look.known
        if (
            doubted
            and known is not None
            and known.sure
            and known.format is console
            and not console.is_sure(head(path, HEAD))
        ):
            look.known = known = replace(known, sure=False)
        return known

    def _has_room(self, path: Path) -> bool:
        if self._odd[path.parent] >= MOST_ODD:
            self.crowded.add(path.parent)
            return False
        self._odd[path.parent] += 1
        return True

    def _look(self, path: Path, look: _Look, size: int, called: Name) -> None:
        """Look at a file that is new or has grown."""
        known = (
            self._by_beginning(path, look, size, called)
            if look.size < HEAD or size < look.size
            else None
        )
        if (
            known is None
            and not look.binary
            and called is Name.LOG
            and _suffix(path.name) in _TEXTS
        ):
            known = self._deeper(path, look, size) or _by_signs(path, size)
        # A log that was known by its bar remains one; what it is besides, it may say later.
        look.known = known or look.known
        look.size = size

    def _by_beginning(self, path: Path, look: _Look, size: int, called: Name) -> Known | None:
        begin = head(path, _GLANCE)
        look.binary = b"\0" in begin.strip(b"\0") and size >= _GLANCE
        if size > _GLANCE and not look.binary:
            begin = head(path, HEAD)
        if not begin.strip():
            return None
        fits = _surely if called is Name.ODD else _matching
        format = fits(plain(path), begin)
        return Known(format, title=naming.title(begin)) if format is not None else None

    def _deeper(self, path: Path, look: _Look, size: int) -> Known | None:
        """Look for a console's marks behind the beginning: up to `DEEPEST`, beyond only at the
        newest.
        """
        if plain(path) != path or size <= HEAD:
            return None
        at = min(max(look.at, HEAD), size)
        with opened(path) as file:
            while at < min(size, DEEPEST) and self._budget > 0:
                data = os.pread(file.fileno(), _WINDOW, at - _OVERLAP)
                self._budget -= len(data)
                if console.matches(path, data):
                    return Known(console)
                if len(data) <= _OVERLAP:
                    break
                at += len(data) - _OVERLAP
            look.at = at
            if size > DEEPEST and console.matches(
                path, os.pread(file.fileno(), _WINDOW, size - _WINDOW)
            ):
                return Known(console)
        return None


def _by_signs(path: Path, size: int) -> Known | None:
    """Return that a text is a console though it has no step: it begins as one, has a bar or says
    why it failed.
    """
    text = head(path, HEAD)
    if plain(path) == path and size > HEAD:
        with opened(path) as file:
            text += b"\n" + os.pread(file.fileno(), HEAD, max(HEAD, size - HEAD))
    named = f"{path.parent.name}/{path.name}"
    signs = (
        console_signs.begins(text) or console_signs.bar(text) or console_signs.failed(text, named)
    )
    return Known(console, sure=False, title=naming.title(text)) if signs else None


def _is_worth_it(look: _Look, size: int, called: Name) -> bool:
    """Tell whether a file has grown enough to be looked at again: often while it is short, then
    ever more seldom.
    """
    if size == look.size:
        return False
    often = DEEPEST if called is Name.LOG else _GLANCE
    return size < look.size or look.size < often or size > 2 * look.size


def _matching(path: Path, begin: bytes) -> Format | None:
    return next((one for one in FORMATS if one.matches(path, begin)), None)


def _surely(path: Path, begin: bytes) -> Format | None:
    """Return the format of a file whose name says nothing, or something else: here a single mark is
    not enough.
    """
    format = _matching(path, begin)
    return None if format is console and not console.is_sure(begin) else format


def why(error: Exception) -> str:
    """Return in a few words why something cannot be looked at."""
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return one_line(f"could not be looked at: {type(error).__name__}: {error}", 200)
