"""Pieces of text with roles, which widgets colour; a row is a list of them."""

from __future__ import annotations

from bisect import bisect_right
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Piece = tuple[str, str]
"""Text and its role, e.g. `("done", "good")`; an empty role is plain text."""
Pieces = list[Piece]
"""One row: its pieces from left to right."""
MarkedSpan = tuple[int, int, str]
"""Start and end of what is marked in a text, and its role; several are ascending and disjoint."""


def text_of(row: Iterable[tuple[str, object]]) -> str:
    """Return the text of a row, without roles or styles."""
    return "".join([text for text, _ in row])


def cells_of(row: Iterable[Piece]) -> int:
    """Return the cells that a row takes."""
    return sum([cell_len(text) for text, _ in row])


def joined(cells: Iterable[Piece]) -> Pieces:
    """Put neighbours of one role together."""
    return [
        ("".join([text for text, _ in group]), role)
        for role, group in groupby(cells, itemgetter(1))
    ]


def pieces(
    text: str, start: int, end: int, spans: Sequence[MarkedSpan], plain: str
) -> Pieces:
    """Return a part of a text as pieces with roles, `plain` without a mark."""
    row: Pieces = []
    at = max(0, bisect_right(spans, (start, len(text) + 1, "")) - 1)
    for first, last, role in spans[at:]:
        if first >= end:
            break
        if last > start:
            row.append((text[start:first], plain))
            row.append((text[max(first, start) : min(last, end)], role))
            start = last
    return [piece for piece in (*row, (text[start:end], plain)) if piece[0]]
