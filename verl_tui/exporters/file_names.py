"""File names that are safe on every file system, and unique even if letter case does not count."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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
