"""A fast filter for relevant lines: most lines of a log contain none of the words that matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

_ORDER = "zqjxkvbywgp?mfu,.c:d_lhrsnioate "
"""Letters by how well they are searched for: those that are rare in English text and in logs, yet
in many words, then all others (`?`), then the common ones.
"""


def any_of(words: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern that is found in all texts that contain one of the words, and in no others.

    A search pauses at each letter that it looks for, and tries one after the other. So these are
    few and rare ones, the most common first; from there it looks back at what stands before.
    """
    by_letter: dict[str, set[str]] = {}
    for word in words:
        letter = min(word, key=_place)
        before, _, behind = word.partition(letter)
        known = f"(?<={re.escape(before + letter)})" if before else ""
        by_letter.setdefault(letter, set()).add(known + re.escape(behind))
    parts = (
        f"{re.escape(letter)}(?:{'|'.join(sorted(rest))})"
        for letter, rest in sorted(by_letter.items(), key=lambda one: -_place(one[0]))
    )
    return pattern("|".join(parts).encode())


def _place(letter: str) -> int:
    if letter in _ORDER:
        return _ORDER.find(letter)
    return _ORDER.index("?")
