"""Words that differ between two texts, and two responses side by side with these marked."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.rendering.samples.speakers import over, special
from verl_tui.rendering.text.piece import cells_of, pieces
from verl_tui.rendering.text.printable import cut
from verl_tui.rendering.text.wrap import spans

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from verl_tui.rendering.text.piece import Pieces

DIFFERS = "differs"
"""Role of a word that the other text does not have there."""
_WORD = pattern(r"\w+|[^\w\s]")
_MOST_PAIRS = 400_000
"""Equal words of two texts, pair by pair, that are compared in order: some 0.2 s at worst."""
_SIDE_BY_SIDE = 60
"""Width from which on the texts stand side by side, in cells; below that one after the other."""
_MOST_ROWS = 2000


def changed_words(
    first: str, second: str
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the spans of the words in each text that the other does not have there.

    Texts with too many equal words, as loops have, are compared without regard to order.
    """
    left = list(_WORD.finditer(first))
    right = list(_WORD.finditer(second))
    a = [word[0] for word in left]
    b = [word[0] for word in right]
    counts = Counter(b)
    if sum(counts[word] for word in a) > _MOST_PAIRS:
        return _absent(left, set(b)), _absent(right, set(a))
    gone: list[tuple[int, int]] = []
    come: list[tuple[int, int]] = []
    codes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    for kind, start, end, first_come, last_come in codes:
        if kind != "equal":
            gone += _span(left[start:end])
            come += _span(right[first_come:last_come])
    return gone, come


def _absent(words: Sequence[re.Match[str]], others: set[str]) -> list[tuple[int, int]]:
    return [word.span() for word in words if word[0] not in others]


def _span(words: Sequence[re.Match[str]]) -> list[tuple[int, int]]:
    return [(words[0].start(), words[-1].end())] if words else []


def change_rows(
    titles: Sequence[Pieces], texts: tuple[str, str], width: int
) -> list[Pieces]:
    """Return two responses with their titles, words that changed marked.

    Args:
        titles: What is said of the earlier response, and of the later one.
        texts: The responses.
        width: Cells of a row.
    """
    wide = width >= _SIDE_BY_SIDE
    room = (width - 3) // 2 if wide else width
    texts = texts[0].strip("\n"), texts[1].strip("\n")
    left, right = (
        _column(title, text, changed, room)
        for title, text, changed in zip(
            titles, texts, changed_words(*texts), strict=True
        )
    )
    if not wide:
        return [*left, [], *right]
    return [
        [*before, (" " * (room - cells_of(before)), ""), (" │ ", "dim"), *after]
        for before, after in zip_longest(left, right, fillvalue=list[tuple[str, str]]())
    ]


def _column(
    title: Pieces, text: str, changed: Sequence[tuple[int, int]], width: int
) -> list[Pieces]:
    """Return one response as rows of at most `width` cells."""
    found = over(special(text), [(start, end, DIFFERS) for start, end in changed])
    rows = islice(spans(text, width), _MOST_ROWS)
    return [
        cut(title, width),
        *(pieces(text, start, end, found, "response") for start, end in rows),
    ]
