"""Writes metrics as verl's `FileLogger` does: one compact JSON object a step, no header, no
time.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class FileLogger:
    """One `{project}/{experiment}.jsonl`: emptied at the start and open until the end, as verl does
    it.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb", buffering=0)
        weakref.finalize(self, self._file.close)

    def log(self, data: Mapping[str, float], step: int) -> None:
        """Append one step; each call leaves a whole line behind."""
        self._file.write(orjson.dumps({"step": step, "data": dict(data)}) + b"\n")

    def close(self) -> None:
        """Close the file: the run is over."""
        self._file.close()
