"""Logs of one JSON object a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def write_jsonl(path: Path, rows: Iterable[object], *, after: str = "") -> Path:
    """Write rows, and text as it is; make the directories above; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) + "\n" for row in rows]
    path.write_text("".join([*lines, after]), encoding="utf-8")
    return path
