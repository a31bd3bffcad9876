"""Marks in a sample's text: search hits, tokens of chat templates, repetition.

All functions take linear time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.samples.signs import template_signs
from verl_tui.repetition import TOKEN, runs

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.text.piece import MarkedSpan

TAG = "tag"
TOKEN_ROLE = "token"  # noqa: S105 - a role, no password
REPEATED = "repeated"

_N = 3
"""Number of consecutive words that must repeat."""
_LONG = 12
"""Words of a passage that is marked when repeated once; a shorter one must be repeated twice."""


def special(text: str) -> list[MarkedSpan]:
    """Return the tokens of chat templates, and the tags of thinking, answers and tools."""
    return [
        (sign.start, sign.end, TAG if sign.does in ("open", "close") else TOKEN_ROLE)
        for sign in template_signs(text)
        if sign.does != "fence"
    ]


def repeated(text: str) -> list[MarkedSpan]:
    """Return repetitions: loops from their second round on, and runs of one character.

    A loop is a passage that repeats word by word; signs between the words may differ.
    """
    words = list(TOKEN.finditer(text))
    spans = [
        (words[first].start(), words[last - 1].end(), REPEATED)
        for first, last in _loops(words)
    ]
    return over(spans, [(start, end, REPEATED) for start, end in runs(text)])


def _loops(words: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield first and last word (exclusive) of the repetitions in loops.

    A passage of `period` words repeats if enough consecutive words equal those `period` earlier.
    """
    texts = [word.group().lower() for word in words]
    seen: dict[tuple[str, ...], int] = {}
    failed: dict[int, int] = {}
    """Words up to which a period need not be tried again, by period."""
    done = 0
    for at, gram in enumerate(zip(*(texts[i:] for i in range(_N)), strict=False)):
        period = at - seen.get(gram, at)
        seen[gram] = at
        if not period or at < max(done, failed.get(period, 0)):
            continue
        end = _same_until(texts, at, period)
        if end - at < (period if period >= _LONG else max(6, 2 * period)):
            failed[period] = end
            continue
        start, first = at, max(done, period)
        while start > first and texts[start - 1] == texts[start - 1 - period]:
            start -= 1
        yield start, end
        done = end


def _same_until(texts: Sequence[str], at: int, period: int) -> int:
    """Return the first word from `at` on that differs from the one `period` words earlier."""
    while at < len(texts) and texts[at] == texts[at - period]:
        at += 1
    return at


def over(lower: Sequence[MarkedSpan], upper: Sequence[MarkedSpan]) -> list[MarkedSpan]:
    """Merge marks; where they overlap the upper ones win."""
    result: list[MarkedSpan] = []
    at = 0
    taken = 0
    for start, end, role in lower:
        begin = max(start, taken)
        while at < len(upper) and upper[at][0] < end:
            first, taken, _ = upper[at]
            if begin < first:
                result.append((begin, first, role))
            result.append(upper[at])
            begin = max(start, taken)
            at += 1
        if begin < end:
            result.append((begin, end, role))
    return result + list(upper[at:])
