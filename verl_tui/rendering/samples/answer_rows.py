"""Answers to one prompt as a row each: score, length and the beginning of the text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.samples.marks import special
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.samples import Place

_BLANK = re.compile(r"\s+")
_LOOKED_AT = 2000


class AnswerItem(NamedTuple):
    """One answer."""

    place: Place
    row: int
    """Index in the file."""
    score: tuple[str, str]
    """Text and role."""
    length: int
    answer: str | None
    """Beginning of the text, None while it is being read."""


def opening(answer: str, width: int) -> str:
    """Return the beginning of an answer on one line, without the template's opening tokens."""
    text = answer[:_LOOKED_AT]
    for start, end, _ in special(text):
        if text[:start].strip():
            break
        text = " " * end + text[end:]
    return fit(_BLANK.sub(" ", text).strip(), width)


def row(item: AnswerItem, width: int, *, with_step: bool, ascii_only: bool = False) -> Pieces:
    """Return the row of a sample.

    Args:
        item: The sample.
        width: Cells of a row.
        with_step: True if answers of several steps are shown.
        ascii_only: Draw in ASCII.
    """
    score, role = item.score
    head = (
        [(f"{exact_step(item.place.step):>7} ", "strong")]
        if with_step
        else [(f"{item.row + 1:>5} ", "dim")]
    )
    pieces: Pieces = [*head, (f"{score:<9} ", role)]
    if width >= 60:
        pieces.append((f"{compact(item.length):>5} ", "dim"))
    room = width - sum(len(text) for text, _ in pieces)
    if room < 4:
        return [(fit("".join(text for text, _ in pieces), width), role)]
    if item.answer is None:
        return [*pieces, ("..." if ascii_only else "…", "dim")]
    return [*pieces, (opening(item.answer, room) or "(empty)", "field")]
