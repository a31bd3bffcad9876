"""ms-swift's directories, one a start: `out/v0-20261122-182019`, `out/v1-20261122-182521`, …
(`add_version`).

A start that goes on from a checkpoint of another says so in its `args.json`:
`"resume_from_checkpoint": "/…/v0-20261122-182019/checkpoint-10"`. The two are one run.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import loads
from verl_tui.sources.files.tail import opened

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = pattern(r"v(\d{1,6})-\d{8}-\d{6}")
_LARGEST = 2**20
"""Bytes; a larger file is no configuration."""


def version(name: str) -> int | None:
    """Return the number of the start in a directory's name, None for any other name."""
    found = _VERSION.fullmatch(name)
    return int(found[1]) if found else None


def resumed_from(directory: Path) -> str | None:
    """Return the name of the directory whose checkpoint a start resumed, None if it did not."""
    path = directory / "args.json"
    try:
        stat = path.stat()
    except OSError:
        return None
    if stat.st_size <= _LARGEST:
        return _stated(path, stat.st_mtime_ns)
    return None


@lru_cache(maxsize=1024)  # at another time it has another content
def _stated(path: Path, modified: int) -> str | None:
    try:
        with opened(path) as file:
            settings = loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None
    stated = None
    if isinstance(settings, dict):
        stated = settings.get("resume_from_checkpoint")
    if not isinstance(stated, str):
        return None
    parts = PurePosixPath(stated.replace("\\", "/")).parts
    return next((part for part in reversed(parts) if version(part) is not None), None)
