"""The evidence by which the format of a file was recognised, down to the line that decided.

The formats' own tests are run again on less and less of the file, so that the evidence shown is
what they really use.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from verl_tui.secrets import hide
from verl_tui.sources.discovery.probing import beginning
from verl_tui.sources.files.compressed import (
    DEEPEST,
    head,
    is_binary,
    uncompressed_name,
)
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.console import reader as console
from verl_tui.text import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.sources.formats.format import Format

_SHOWN = 100
"""Characters shown of a line."""
_BYTES = 8
"""First bytes shown of a binary file."""


def format_evidence(path: Path, named: str) -> str:
    """Return why a file is read as a format.

    Args:
        path: The file or directory.
        named: Name of the format.

    Raises:
        OSError: It cannot be read.
    """
    if path.is_dir():
        return "its name, and the names of the files in it"
    format = next((one for one in FORMATS if one.name == named), None)
    if format is None:
        return "its name"
    begin = beginning(path)[0]
    if format.matches(uncompressed_name(path), begin):
        return _by_beginning(uncompressed_name(path), begin, format)
    found = _by_rest(path, len(begin)) if format is console else ""
    stated = f"you named it: its beginning fits no format, so it is read as {named}"
    return found or stated


def _by_beginning(path: Path, begin: bytes, format: Format) -> str:
    if format.matches(path, b""):
        return f"its name: {one_line(path.name)}"
    name = "" if format.matches(path.with_name("a"), begin) else ", and its name"
    if is_binary(begin):
        return f"its first bytes: {begin[:_BYTES].hex(' ')}{name}"
    lines = begin.splitlines(keepends=True)
    low = bisect_left(
        range(len(lines)),
        x=True,
        key=lambda last: format.matches(path, b"".join(lines[: last + 1])),
    )
    if low == len(lines):
        return f"its first {len(begin):,} bytes{name}"
    shown = _excerpt(lines[low])
    if format.matches(path, lines[low]):
        return f"line {low + 1:,}: {shown}{name}"
    return f"lines 1 to {low + 1:,} together, of which the last is: {shown}{name}"


def _by_rest(path: Path, begun: int) -> str:
    """Return why a file is a console though its beginning, of so many bytes, has no step; empty
    where nothing shows it.
    """
    data = head(path, DEEPEST)
    at = 0
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        at += len(line)
        if at > begun and console.matches(path, line):
            return f"line {number:,}: {_excerpt(line)}"
    if console.begins(data):
        return "the first lines of a training, and no step so far"
    if console.shows_bar(data):
        return "a progress bar, and no step so far"
    if console.failed(data, f"{path.parent.name}/{path.name}"):
        return "a start that failed, and no step"
    return f"a step behind its first {DEEPEST:,} bytes" if len(data) == DEEPEST else ""


def _excerpt(line: bytes) -> str:
    return f"`{hide(one_line(line.decode('utf-8', 'replace'), _SHOWN))}`"
