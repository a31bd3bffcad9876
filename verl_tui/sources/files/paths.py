"""What stands at a path. Where one may not look there is nothing; pathlib raises there, up to
Python 3.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from pathlib import Path


def is_folder(path: Path | os.DirEntry[str]) -> bool:
    """Tell whether a directory can be seen at a path."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_file(path: Path | os.DirEntry[str]) -> bool:
    """Tell whether a file can be seen at a path."""
    try:
        return path.is_file()
    except OSError:
        return False
