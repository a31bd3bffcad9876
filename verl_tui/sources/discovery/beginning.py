"""The first bytes of a file, by which its format is recognised."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.sources.files.compressed import head
from verl_tui.sources.formats import HEAD

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 4 * 2**20
"""Bytes read where one of the first records does not end before: five thousand metrics, a long
conversation.
"""
_FIRST_LINES = 8
"""Lines among which formats look for a record."""


class Beginning(NamedTuple):
    """The first bytes of a file."""

    data: bytes
    final: bool
    """True if their format is certainly the file's, whatever is appended."""


def beginning(path: Path) -> Beginning:
    """Return the first bytes of a file, decompressed if it is compressed.

    Raises:
        OSError: It cannot be read, or is no gzip file although it is called so.
    """
    data = head(path, HEAD)
    if len(data) < HEAD or not _is_within_record(data):
        return Beginning(data, len(data) >= HEAD)
    data = head(path, LONGEST)
    return Beginning(data, len(data) >= LONGEST or not _is_within_record(data))


def _is_within_record(data: bytes) -> bool:
    """Return whether bytes end within a record of JSON in one of the first lines."""
    if data.count(b"\n") >= _FIRST_LINES:
        return False
    return data.rpartition(b"\n")[2].lstrip(b"\xef\xbb\xbf \t").startswith(b"{")
