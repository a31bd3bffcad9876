"""Rows of the list of samples: as many numbers of each as fit, and words of its response."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.samples.answers import final_answer
from verl_tui.rendering.samples.query import FILE, GROUP, value_of
from verl_tui.rendering.samples.speakers import parse, special
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.table import GAP, FittedTable, TextColumn
from verl_tui.rendering.text.wrap import fit, fit_left

if TYPE_CHECKING:
    from verl_tui.records import SampleFacts
    from verl_tui.rendering.samples.listing import SampleListing
    from verl_tui.rendering.samples.query import SampleOrder
    from verl_tui.rendering.text.piece import Piece, Pieces

_NUMBER, _WIDEST = 7, 12
"""Least and most cells of a number: field names are long and differ at their start."""
_EXCERPT = 24
"""Cells that an excerpt is left by the numbers that come after score and length."""
_TITLES = {FILE: "#", GROUP: "grp", "length": "len"}
_READ = 2000
"""Characters at a response's end in which an answer is looked for."""
_KEPT = 150
"""Characters kept of an excerpt."""


class Excerpt(NamedTuple):
    """A few words of a response."""

    words: str
    answer: bool
    """True if they are its answer, False if its end."""

    def piece(self, width: int) -> Piece:
        """Return as much as fits: the beginning of an answer, the end of a response."""
        if self.answer:
            return fit(self.words, width), "answer"
        return fit_left(self.words, width) or "(empty)"[:width], "dim"


@lru_cache(maxsize=256)
def excerpt(response: str) -> Excerpt:
    """Return the answer of a response, else its end."""
    end = response[-_READ:]
    answer = final_answer(end, parse(end))
    if answer:
        return Excerpt(" ".join(answer.split())[:_KEPT], answer=True)
    for start, stop, _ in reversed(special(end)):
        end = f"{end[:start]} {end[stop:]}"
    return Excerpt(" ".join(end.split())[-_KEPT:], answer=False)


class SampleRow(NamedTuple):
    """A row of the list."""

    fact: SampleFacts
    step: int
    words: Excerpt | None
    """Words of its response, None while it is being read."""


def sample_table(
    listing: SampleListing, order: SampleOrder, width: int, *, steps: bool = False
) -> FittedTable[SampleRow]:
    """Return the columns that fit, the one that the list is sorted by before the other numbers.

    Args:
        listing: The samples.
        order: Order of the list.
        width: Cells of a row.
        steps: True for samples of several steps, each named by its step.
    """
    digits = max(2, len(str(len(listing.facts))))
    numbers = {"step": _NUMBER} if steps else {FILE: digits}
    numbers |= {"score": _NUMBER + 2, "length": 5}
    if not steps:
        numbers[GROUP] = max(4, digits)
        numbers |= {
            name: min(_WIDEST, max(_NUMBER, cell_len(name))) for name in listing.fields
        }
    columns = [
        TextColumn(
            _title(field, order, size),
            partial(_cell, field=field, listing=listing),
            size,
            99 if field == order.field else 90 - at if at < 2 else 50 - at,
            right=True,
            gap=1 if at else GAP,
        )
        for at, (field, size) in enumerate(numbers.items())
    ]
    least = min(_EXCERPT, max(1, width - sum([*numbers.values()][:2]) - 2))
    excerpt = TextColumn("answer or end", _words, least, 80, most=width, gap=1)
    return FittedTable([*columns, excerpt], width)


def _title(field: str, order: SampleOrder, size: int) -> str:
    """Return a column's title, with an arrow where the list is sorted by it."""
    arrow = order.arrow if field == order.field else ""
    return fit(_TITLES.get(field, field), size - len(arrow)) + arrow


def _words(row: SampleRow, cells: int) -> Pieces:
    return [row.words.piece(cells) if row.words is not None else ("…", "dim")]


def _cell(row: SampleRow, cells: int, field: str, listing: SampleListing) -> Pieces:
    fact = row.fact
    if field == "score":
        glyph, role = listing.scores.mark(fact)
        return [(f"{glyph} {_number(fact.score):>{cells - 2}}", role)]
    texts = {
        "step": exact_step(row.step),
        FILE: str(fact.index + 1),
        GROUP: str(listing.groups.get(fact.group or "", "-")),
    }
    role = "dim" if field in (FILE, GROUP) else ""
    return [(texts.get(field) or _number(value_of(fact, field)), role)]


def _number(value: float | None) -> str:
    return "-" if value is None else compact(value)
