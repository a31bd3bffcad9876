"""Responses to one prompt as a row each: score, length and a few words of the response."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.piece import text_of
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from verl_tui.rendering.samples.excerpts import Excerpt
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.samples import Place


class ResponseItem(NamedTuple):
    """one response."""

    place: Place
    row: int
    """Index in the file."""
    score: tuple[str, str]
    """Text and role."""
    length: int
    excerpt: Excerpt | None
    """A few words of the response, None while it is being read."""


def response_row(item: ResponseItem, width: int, *, with_step: bool) -> Pieces:
    """Return the row of a sample.

    Args:
        item: The sample.
        width: Cells of a row.
        with_step: True if responses of several steps are shown.
    """
    score, role = item.score
    if with_step:
        head = [(f"{exact_step(item.place.step):>7} ", "strong")]
    else:
        head = [(f"{item.row + 1:>5} ", "dim")]
    pieces: Pieces = [*head, (f"{score:<9} ", role)]
    if width >= 60:
        pieces.append((f"{compact(item.length):>5} ", "dim"))
    room = width - sum(len(text) for text, _ in pieces)
    if room < 4:
        return [(fit(text_of(pieces), width), role)]
    if item.excerpt is None:
        return [*pieces, ("…", "dim")]
    return [*pieces, item.excerpt.piece(room)]
