"""Tell what a path is; unreadable places count as missing, where pathlib raises up to
Python 3.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from pathlib import Path


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


def bytes_of(path: Path) -> int:
    """Return the bytes of a file, 0 where it cannot be seen."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
