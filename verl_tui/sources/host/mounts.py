"""Find the file system that a path lies on."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from pathlib import Path

_LOCAL = frozenset(
    ("btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "tmpfs", "xfs", "zfs")
)
"""File systems whose files no other host writes."""
_OCTAL = pattern(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """The file system that a file lies on."""

    kind: str
    root: bool
    """True if it is the root of all."""

    @property
    def local(self) -> bool:
        """True if no other host writes a file of it."""
        return self.kind in _LOCAL


def mount(path: Path, proc: Path) -> Mount | None:
    """Return the file system that a file lies on, None if unknown.

    Args:
        path: The file.
        proc: Where proc(5) is.
    """
    try:
        place = str(path.resolve())
    except OSError:
        return None
    for top, kind in _mounts(proc):
        if place == top or place.startswith(top.rstrip("/") + "/"):
            return Mount(kind, top == "/")
    return None


@lru_cache(maxsize=1)
def _mounts(proc: Path) -> list[tuple[str, str]]:
    """Return the mount points of file systems with their kinds, the deepest first."""
    try:
        lines = os.fsdecode((proc / "self" / "mounts").read_bytes()).split("\n")
    except OSError:
        return []
    rows = (line.split(" ") for line in lines)
    # A later mount at the same place hides earlier ones.
    kinds = {_plain(words[1]): words[2] for words in rows if len(words) > 2}
    return sorted(kinds.items(), key=lambda one: -len(one[0]))


def _plain(place: str) -> str:
    """Return a path whose blanks and backslashes are octal numbers, see fstab(5)."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), place)
