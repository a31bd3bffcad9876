"""Files with what a test wants in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_file(path: Path, content: str | bytes) -> Path:
    """Write a file; make the directories above; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def prefixed(prefix: str, text: str) -> str:
    """Return a text with a prefix before each line."""
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())
