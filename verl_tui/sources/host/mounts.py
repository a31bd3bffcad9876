"""Find the file system that a path lies on."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_LOCAL = frozenset(
    ("btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "tmpfs", "xfs", "zfs")
)
"""File systems of which no other host writes a file."""


class Mount(NamedTuple):
    """The file system that a file lies on."""

    kind: str
    root: bool
    """True if it is the root of all."""

    @property
    def local(self) -> bool:
        """True if no other host writes a file of it."""
        return self.kind in _LOCAL


def mount(path: Path) -> Mount | None:
    """Return the file system that a file lies on, None if unknown."""
    try:
        place = str(path.resolve())
    except OSError:
        return None
    for top, kind in mounts():
        if place == top or place.startswith(top.rstrip("/") + "/"):
            return Mount(kind, top == "/")
    return None


@lru_cache(maxsize=1)
def mounts() -> list[tuple[str, str]]:
    """Return where file systems are mounted and of which kind they are, the deepest first."""
    import psutil  # 15 ms, only where a log has no writer

    try:
        mounted = psutil.disk_partitions(all=True)  # type: ignore[no-untyped-call]
    except OSError:
        return []
    return sorted(((one.mountpoint, one.fstype) for one in mounted), key=lambda one: -len(one[0]))
