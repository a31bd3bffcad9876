"""Find the files that only processes which can be seen here write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

from verl_tui.sources.host.processes import sees_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_LOCAL = {
    "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "tmpfs", "xfs", "zfs",
}  # fmt: skip
"""File systems whose files no other host writes."""


def only_here(paths: Iterable[Path]) -> set[Path]:
    """Return those files that only processes which can be seen here write.

    A network's file may be written elsewhere. In a container only its own root is nobody else's: a
    volume may be written by another one's processes, or the host's.
    """
    try:
        # A later mount at the same place hides earlier ones.
        kinds = {one.mountpoint: one.fstype for one in psutil.disk_partitions(all=True)}
    except OSError:
        return set()
    whole = sees_all()
    return {path for path in paths if _is_here(path, kinds, whole=whole)}


def _is_here(path: Path, kinds: Mapping[str, str], *, whole: bool) -> bool:
    try:
        real = path.resolve()
    except OSError:
        return False
    places = map(str, (real, *real.parents))
    top = next((place for place in places if place in kinds), "")
    kind = kinds.get(top)
    return kind in _LOCAL and (whole or top == "/" or kind == "overlay")
