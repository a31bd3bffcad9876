"""Names of files: those of runs, safe on every file system and unique even if letter case does not
count; and new files of the app under descriptive names, which never overwrite an existing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_LONGEST = 200
"""Bytes of a file's name: most file systems take 255, and a suffix has to fit."""


def unique_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return a file name for each name: none that is taken, none that a program could mistake for
    an option.
    """
    known = {name.casefold() for name in taken}
    unique = []
    for name in names:
        stem = re.sub(r"[^\w.+=-]+", "_", name).strip("._").lstrip("-+=") or "run"
        stem = stem.encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore")
        candidate = stem
        number = 1
        while candidate.casefold() in known:
            number += 1
            candidate = f"{stem}-{number}"
        known.add(candidate.casefold())
        unique.append(candidate)
    return unique


_MOST_NAMES = 1000
_LONGEST_WORD = 60
"""Characters of one word, so that a name of several stays within the limit of file systems."""


def named(*words: str) -> str:
    """Return a file name made of these words, without its suffix; discovery skips such files."""
    return "-".join(
        re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip("-.")[:_LONGEST_WORD] or "run"
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
            return tuple(made)
        except OSError as error:
            for path in made:
                path.unlink()
            if not isinstance(error, FileExistsError):
                raise
    raise FileExistsError(f"{name}{endings[0]}, and a thousand more of that name")
