"""Writes metrics as verl's `FileLogger` does: one compact JSON object a step, no header, no
time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class FileLogger:
    """One `{project}/{experiment}.jsonl`. Like verl's, it empties the file when it starts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")

    def log(self, data: Mapping[str, float], step: int) -> None:
        """Append one step; each call leaves a whole line behind."""
        with self._path.open("ab", buffering=0) as file:
            file.write(orjson.dumps({"step": step, "data": dict(data)}) + b"\n")
