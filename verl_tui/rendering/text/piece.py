"""Pieces of text with roles, which widgets colour; a row is a list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterable

Piece = tuple[str, str]
"""Text and its role, e.g. `("done", "good")`; an empty role is plain text."""
Pieces = list[Piece]
"""One row: its pieces from left to right."""


def text_of(row: Iterable[tuple[str, object]]) -> str:
    """Return the text of a row, without roles or styles."""
    return "".join([text for text, _ in row])


def cells_of(row: Iterable[Piece]) -> int:
    """Return the cells that a row takes."""
    return sum([cell_len(text) for text, _ in row])
