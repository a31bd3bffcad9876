"""An early and a late response to one prompt side by side, words that changed marked."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.rendering.samples import marks
from verl_tui.rendering.text.piece import cells_of, text_of
from verl_tui.rendering.text.wrap import fit, spans

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from verl_tui.rendering.text.piece import Piece, Pieces

CHANGED = "differs"
"""Role of a word that the other text does not have there."""
_WORD = pattern(r"\w+|[^\w\s]")
_MOST_PAIRS = 400_000
"""Equal words of two texts, pair by pair, that are compared in order: some 0.2 s at worst."""
_SIDE_BY_SIDE = 60
"""Width from which on the texts stand side by side, in cells; below that one after the other."""
_MOST_ROWS = 2000


class Side(NamedTuple):
    """One of two responses."""

    title: Pieces
    text: str


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
    for kind, start, end, other_start, other_end in codes:
        if kind != "equal":
            gone += _span(left[start:end])
            come += _span(right[other_start:other_end])
    return gone, come


def _absent(words: Sequence[re.Match[str]], others: set[str]) -> list[tuple[int, int]]:
    return [word.span() for word in words if word[0] not in others]


def _span(words: Sequence[re.Match[str]]) -> list[tuple[int, int]]:
    if not words:
        return []
    return [(words[0].start(), words[-1].end())]


def change_rows(first: Side, second: Side, width: int) -> list[Pieces]:
    """Return two responses with their titles, words that changed marked.

    Args:
        first: The earlier response, for the left.
        second: The later response.
        width: Cells of a row.
    """
    if width < 1:
        return []
    gone, come = changed_words(first.text, second.text)
    if width < _SIDE_BY_SIDE:
        return [*_column(first, gone, width), [], *_column(second, come, width)]
    half = (width - 3) // 2
    left = _column(first, gone, half)
    right = _column(second, come, half)
    rule: Piece = (" │ ", "dim")
    rows: list[Pieces] = []
    for before, after in zip_longest(left, right):
        rows.append([*_padded(before or [], half), rule, *(after or [])])
    return rows


def _column(side: Side, changed: Sequence[tuple[int, int]], width: int) -> list[Pieces]:
    """Return one response as rows of at most `width` cells."""
    text = side.text.strip("\n")
    offset = side.text.find(text)
    differing = [(start - offset, end - offset, CHANGED) for start, end in changed]
    found = marks.over(marks.special(text), differing)
    title = fit(text_of(side.title), width)
    role = side.title[-1][1] if side.title else ""
    rows: list[Pieces] = [[(title, role)]]
    if not text.strip():
        return [*rows, [(fit("(empty)", width), "dim")]]
    for start, end in islice(spans(text, width), _MOST_ROWS):
        rows.append(marks.pieces(text, start, end, found, "response"))
    return rows


def _padded(row: Pieces, width: int) -> Pieces:
    missing = width - cells_of(row)
    if missing > 0:
        return [*row, (" " * missing, "")]
    return row
