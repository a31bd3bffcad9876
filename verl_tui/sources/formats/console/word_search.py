"""Finds out quickly whether a line may say anything: most lines of a log hold none of the words
that matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMMON = " etaoinsrhl_d:c.ufm,pgwybv/kxjqz"
"""Signs of English text and of logs, the most common first; all others are rarer."""
_LEAST = 4
"""Letters that are left of a word at least."""


def any_of(words: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern that finds all texts with one of the words in them, and few others.

    A search stops wherever a word might begin, so each word is looked for from its rarest letter
    on.
    """
    by_letter: dict[str, set[str]] = {}
    for word in words:
        part = _from_rarest(word)
        by_letter.setdefault(part[0], set()).add(re.escape(part[1:]))
    parts = (
        f"{re.escape(letter)}(?:{'|'.join(sorted(rest))})"
        for letter, rest in sorted(by_letter.items())
    )
    return re.compile("|".join(parts).encode())


def _from_rarest(word: str) -> str:
    starts = range(max(1, len(word) - _LEAST + 1))
    return word[max(starts, key=lambda at: _COMMON.find(word[at]) % (len(_COMMON) + 1)) :]
