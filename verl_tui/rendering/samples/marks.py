"""What is marked in a sample's text: hits of a search, a chat template's tokens, what repeats
itself.

Marks are spans `(start, end, role)`, ascending, none over another. Everything takes time linear in
the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from verl_tui.evaluation import TOKEN, runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.rendering.text.search import Search

MarkedSpan = tuple[int, int, str]

HIT, TAG, TOKEN_ROLE, REPEATED = "hit", "tag", "token", "repeated"
ROLES = (HIT, TAG, TOKEN_ROLE, REPEATED)

_SPECIAL = re.compile(
    r"(?P<tag></?(?:think|thinking|reason|reasoning|answer|solution|tool|tools|tool_call|tool_calls|tool_response"
    r"|function|code|interpreter|search|result|information|observation)>)"
    r"|<[|｜][^<>|｜\s]{1,48}[|｜]>"  # <|im_start|>, <|eot_id|>, <｜end▁of▁sentence｜>
    r"|</?(?:s|pad|unk|bos|eos|mask|start_of_turn|end_of_turn|image|img|video)>|\[/?(?:INST|PAD|CLS|SEP|MASK|TOOL_CALLS)\]|<</?SYS>>",
)
_N = 3
"""Words in a row that must come again."""
_LONG = 12
"""A passage of so many words counts when it comes a second time at once, a shorter one when it
comes a third time.
"""


def special(text: str) -> list[MarkedSpan]:
    """Return the tokens of chat templates, and the tags of thinking, answers and tools."""
    return [
        (*found.span(), TAG if found["tag"] else TOKEN_ROLE) for found in _SPECIAL.finditer(text)
    ]


def repeated(text: str) -> list[MarkedSpan]:
    """Return what says again what was just said: loops, from their second round on, and characters
    in runs.

    A loop is a passage that follows upon itself, word by word; numbers and signs between the words
    may differ in nothing but signs.
    """
    words = list(TOKEN.finditer(text))
    spans = [
        (words[first].start(), words[last - 1].end(), REPEATED) for first, last in _loops(words)
    ]
    same = [(start, end, REPEATED) for start, end in runs(text)]
    return over(spans, same) if spans else same


def _loops(words: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield first and last word (exclusive) of what loops repeat.

    Where each word is the one `period` words earlier, for long enough, a passage of that many words
    repeats.
    """
    said = [word.group().lower() for word in words]
    grams = list(zip(*(said[i:] for i in range(_N)), strict=False))
    seen: dict[tuple[str, ...], int] = {}
    failed: dict[int, int] = {}
    """Period -> where its words stopped repeating: before that it need not be tried again."""
    done = 0
    for at, gram in enumerate(grams):
        period = at - seen.get(gram, at)
        seen[gram] = at
        if not period or at < done or at < failed.get(period, 0):
            continue
        end = _loop_end(said, at, period)
        if end - at >= (period if period >= _LONG else max(6, 2 * period)):
            yield _loop_start(said, at, period, done), end
            done = end
        else:
            failed[period] = end


def _loop_end(said: Sequence[str], at: int, period: int) -> int:
    """Return the first word from `at` on that is not the one `period` words earlier."""
    while at < len(said) and said[at] == said[at - period]:
        at += 1
    return at


def _loop_start(said: Sequence[str], at: int, period: int, done: int) -> int:
    """Return the first word before `at`, after `done`, from which the words repeat."""
    while at > max(done, period) and said[at - 1] == said[at - 1 - period]:
        at -= 1
    return at


def hits(text: str, searches: Iterable[Search]) -> list[MarkedSpan]:
    """Return every hit; hits over one another are one."""
    found = sorted(span for search in searches for span in search.hits(text))
    merged: list[MarkedSpan] = []
    for start, end in found:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]), HIT)
        else:
            merged.append((start, end, HIT))
    return merged


def over(lower: Sequence[MarkedSpan], upper: Sequence[MarkedSpan]) -> list[MarkedSpan]:
    """Return the marks of both; where they meet, only the upper ones."""
    if not upper:
        return list(lower)
    result: list[MarkedSpan] = []
    at, taken = 0, 0
    for start, end, role in lower:
        while at < len(upper) and upper[at][0] < end:
            if max(start, taken) < upper[at][0]:
                result.append((max(start, taken), upper[at][0], role))
            result.append(upper[at])
            taken = upper[at][1]
            at += 1
        if max(start, taken) < end:
            result.append((max(start, taken), end, role))
    return result + list(upper[at:])


def pieces(
    text: str, start: int, end: int, spans: Sequence[MarkedSpan], plain: str
) -> list[tuple[str, str]]:
    """Return a part of a text as pieces with their roles, `plain` where there is no mark."""
    row: list[tuple[str, str]] = []
    at = max(0, bisect_right(spans, (start, len(text) + 1, "")) - 1)
    while start < end:
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        if at == len(spans) or spans[at][0] >= end:
            row.append((text[start:end], plain))
            break
        first, last, role = spans[at]
        if first > start:
            row.append((text[start:first], plain))
        row.append((text[max(first, start) : min(last, end)], role))
        start = last
    return row
