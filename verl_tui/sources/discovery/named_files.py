"""Recognise the files that a user named one by one: these are read regardless of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.discovery import naming, passed_over
from verl_tui.sources.discovery.beginning import beginning
from verl_tui.sources.discovery.found import FoundFile
from verl_tui.sources.discovery.probing import (
    FIRST,
    Inspection,
    Recognised,
    format_in,
    reason_of,
)
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


class NamedFiles:
    """The files that the user named; remembers what they were taken for."""

    def __init__(self) -> None:
        self._looks: dict[Path, Inspection] = {}
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
        first = begin[:FIRST]
        is_new = path not in self._looks
        look = self._looks.get(path) or Inspection(status.st_size, status.st_ino)
        before = look.known
        # A file that was cut or replaced is read as before until it shows another format.
        drops = look.is_continued(status, first) and not look.inherited
        if format is None and (before is None or drops):
            other = _other_than_log(begin)
            if other is not None:
                return other
            format = _assumed(path, begin)
        found = Recognised(format) if format is not None else None
        look.note(found, status, first, drops=drops)
        self._looks[path] = look
        format = format_in(look.known)
        if not is_new and format is not format_in(before):
            self.changed.add(path)
        return _named(path, format, begin)


def _named(path: Path, format: Format | None, begin: bytes) -> Named:
    if format is None:
        return Named(None, _no_log(begin))
    return Named(FoundFile(path, format, title=naming.experiment_name(begin)))


def _no_log(begin: bytes) -> str:
    """Return why a file that is no text cannot be read."""
    why = passed_over.why_unknown(begin)
    return "is a binary file, not a log" if why == passed_over.UNKNOWN else f"is {why}"


def _assumed(path: Path, begin: bytes) -> Format | None:
    """Return how a text is read whose beginning fits no format yet; None for what is no text."""
    if is_binary(begin):
        return None
    if uncompressed_name(path).suffix in (".jsonl", ".json"):
        return tutorial
    return console


def _other_than_log(begin: bytes) -> Named | None:
    """Return what a file without a format is known to be, None where it may be a log."""
    if (what := no_logs.reason(begin)) is not None:
        return Named(None, f"is {what}")
    if no_logs.is_single(begin):
        return Named(None, f"holds {no_logs.SINGLE}", wait=True)
    return None
