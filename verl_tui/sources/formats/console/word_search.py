"""A fast filter for relevant lines: most lines of a log contain none of the words that matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMMON = " etaoinsrhl_d:c.ufm,pgwybv/kxjqz"
"""Characters of English text and logs, the most common first; all others are rarer."""
_LEAST = 4
"""Fewest letters of a word that are searched for."""


def any_of(words: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern that matches all texts that contain one of the words, and few others.

    A search pauses wherever a word might begin, so each word is searched from its rarest letter on.
    """
    by_letter: dict[str, set[str]] = {}
    for word in words:
        part = _from_rarest(word)
        by_letter.setdefault(part[0], set()).add(re.escape(part[1:]))
    parts = (
        f"{re.escape(letter)}(?:{'|'.join(sorted(rest))})"
        for letter, rest in sorted(by_letter.items())
    )
    return pattern("|".join(parts).encode())


def _from_rarest(word: str) -> str:
    starts = range(max(1, len(word) - _LEAST + 1))
    return word[max(starts, key=lambda at: _COMMON.find(word[at]) % (len(_COMMON) + 1)) :]
