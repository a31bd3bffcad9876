"""New files of the app, under descriptive names; an existing file is never overwritten."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MOST_NAMES = 1000
_LONGEST = 60
"""Characters of one word, so that a name of several stays within the limit of file systems."""


def named(*words: str) -> str:
    """Return a file name made of these words, without its suffix; discovery skips such files."""
    return "-".join(
        re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip("-.")[:_LONGEST] or "run"
        for word in ("verl-tui", *words)
    )


def create(folder: Path, name: str, *endings: str) -> tuple[Path, ...]:
    """Create empty files of one name with several suffixes; numbered if one of them exists.

    Raises:
        OSError: They cannot be made.
    """
    for number in range(1, _MOST_NAMES):
        stem = f"{name}-{number}" if number > 1 else name
        made: list[Path] = []
        try:
            for ending in endings:
                path = folder / f"{stem}{ending}"
                path.open("xb").close()
                made.append(path)
        except FileExistsError:
            _remove(made)
            continue
        except OSError:
            _remove(made)
            raise
        return tuple(made)
    raise FileExistsError(f"{name}{endings[0]}, and a thousand more of that name")


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink()
