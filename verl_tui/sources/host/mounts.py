"""Find the file system that a path lies on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import psutil

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LOCAL = frozenset(
    ("btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "tmpfs", "xfs", "zfs")
)
"""File systems whose files no other host writes."""


class Mount(NamedTuple):
    """The file system that a file lies on."""

    kind: str
    root: bool
    """True if it is the root of all."""

    @property
    def local(self) -> bool:
        """True if no other host writes a file of it."""
        return self.kind in _LOCAL


def mounts() -> dict[str, str]:
    """Return the kinds of the file systems by where they are mounted, the deepest first."""
    try:
        every = psutil.disk_partitions(all=True)
    except OSError:
        return {}
    # A later mount at the same place hides earlier ones.
    kinds = {one.mountpoint: one.fstype for one in every}
    return {top: kinds[top] for top in sorted(kinds, key=len, reverse=True)}


def mount(path: Path, every: Mapping[str, str]) -> Mount | None:
    """Return which of all file systems a file lies on, None if unknown."""
    try:
        place = str(path.resolve())
    except OSError:
        return None
    for top, kind in every.items():
        if place == top or place.startswith(top.rstrip("/") + "/"):
            return Mount(kind, top == "/")
    return None
