"""Files that the app writes beside whatever lies there: under names that say what is in them, over
no other file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MOST_NAMES = 1000
_LONGEST = 60
"""Characters of one word: with several of them a name stays below what file systems take."""


def named(*words: str) -> str:
    """Return a name of these words, without its ending; whoever looks for logs passes over files of
    such names.
    """
    return "-".join(
        re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip("-.")[:_LONGEST] or "run"
        for word in ("verl-tui", *words)
    )


def create(folder: Path, name: str, *endings: str) -> tuple[Path, ...]:
    """Make empty files of one name with several endings; with a number behind it where one of them
    is taken.

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
