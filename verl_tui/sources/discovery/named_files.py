"""Recognise the files that a user named one by one: these are read regardless of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.discovery import naming, passed_over
from verl_tui.sources.discovery.beginning import beginning
from verl_tui.sources.discovery.found import FoundFile
from verl_tui.sources.discovery.probing import reason_of
from verl_tui.sources.files import rotated
from verl_tui.sources.files.binary import is_binary
from verl_tui.sources.files.compressed import uncompressed_name
from verl_tui.sources.formats import no_logs, tutorial
from verl_tui.sources.formats.catalog import format_of
from verl_tui.sources.formats.console import reader as console

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from verl_tui.sources.formats.format import Format

_FIRST = 256
"""Bytes by which a file is known to be the same."""


_QUOTES = {
    ".ipynb": "a notebook",
    ".html": "a web page",
    ".htm": "a web page",
    ".cast": "a recording of a terminal",
}
"""Files that quote what was printed in signs of their own: some of each line would be lost."""


class Named(NamedTuple):
    """The outcome for a file that the user named."""

    file: FoundFile | None
    reason: str = ""
    """Why it cannot be read."""
    wait: bool = False
    """Whether that may change."""


class _Look(NamedTuple):
    """The state of a file when it was last examined, and its format then."""

    status: os.stat_result
    first: bytes
    """Its first bytes."""
    format: Format | None
    inherited: bool = False
    """True if that is the format of what stood there before: the file has been rewritten, and its
    new content shows no format yet.
    """


class NamedFiles:
    """The files that the user named; remembers what they were taken for."""

    def __init__(self) -> None:
        self._looks: dict[Path, _Look] = {}
        self.changed: set[Path] = set()
        """Files whose format is another one than it seemed, since `begin`."""

    def begin(self) -> None:
        """Begin a scan."""
        self.changed.clear()

    def recognise(self, path: Path) -> Named:
        """Return a file with its format, or why it cannot be read."""
        kind = _QUOTES.get(path.suffix.lower())
        if kind is not None:
            return Named(None, f"is {kind}, not a log: save what was printed as text")
        part = rotated.newest_part(path)
        try:
            begin = beginning(part).data
            status = part.stat()
        except OSError as error:
            return Named(None, reason_of(error))
        if not begin.strip():
            return Named(None, "empty so far", wait=True)
        return self._by_beginning(path, begin, status)

    def _by_beginning(self, path: Path, begin: bytes, status: os.stat_result) -> Named:
        format = format_of(uncompressed_name(path), begin)
        look = _Look(status, begin[:_FIRST], format)
        if format is None and (before := self._before(path, look)) is not None:
            look = look._replace(format=before, inherited=True)
        elif format is None and (what := no_logs.reason(begin)) is not None:
            return Named(None, f"is {what}")
        elif format is None and no_logs.is_single(begin):
            return Named(None, f"holds {no_logs.SINGLE}", wait=True)
        elif format is None and not is_binary(begin):
            look = look._replace(format=_assumed(path))
        format = look.format
        self._note(path, look)
        if format is None:
            return Named(None, _no_log(begin))
        return Named(FoundFile(path, format, title=naming.experiment_name(begin)))

    def _before(self, path: Path, look: _Look) -> Format | None:
        """Return the format of a file before it was cut or replaced, None if it has only grown: it
        is read as that format until its content shows another.
        """
        before = self._looks.get(path)
        if before is None or (_grown(before, look) and not before.inherited):
            return None
        return before.format

    def _note(self, path: Path, look: _Look) -> None:
        before = self._looks.get(path)
        if before is not None and before.format is not look.format:
            self.changed.add(path)
        self._looks[path] = look


def _no_log(begin: bytes) -> str:
    """Return why a file that is no text cannot be read."""
    why = passed_over.why_unknown(begin)
    return "is a binary file, not a log" if why == passed_over.UNKNOWN else f"is {why}"


def _assumed(path: Path) -> Format:
    """Return how a text is read whose beginning fits no format yet."""
    if uncompressed_name(path).suffix in (".jsonl", ".json"):
        return tutorial
    return console


def _grown(before: _Look, now: _Look) -> bool:
    """Return whether a file is the one that was looked at, with more bytes at most."""
    return (
        now.status.st_ino == before.status.st_ino
        and now.status.st_size >= before.status.st_size
        and now.first.startswith(before.first)
    )
