"""Rows of the list of samples: as many numbers of each as fit, and words of its response."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.samples.answers import final_answer
from verl_tui.rendering.samples.marks import special
from verl_tui.rendering.samples.query import FILE, GROUP, value_of
from verl_tui.rendering.samples.speakers import parse
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.wrap import fit, fit_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import SampleFacts
    from verl_tui.rendering.samples.listing import SampleListing
    from verl_tui.rendering.samples.query import SampleOrder
    from verl_tui.rendering.text.piece import Piece, Pieces

_NUMBER, _WIDEST = 7, 12
"""Least and most cells of a number: field names are long and differ at their start."""
_EXCERPT = 24
"""Cells that an excerpt is left by the numbers that come after score and length."""
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


class ListColumn(NamedTuple):
    """A column of the list."""

    field: str
    """The sort key of the column; empty for the excerpt."""
    title: str
    width: int


def columns(
    listing: SampleListing, order: SampleOrder, width: int, *, steps: bool = False
) -> list[ListColumn]:
    """Return the columns that fit, the one that the list is sorted by before the other numbers.

    Args:
        listing: The samples.
        order: Order of the list.
        width: Cells of a row.
        steps: True for samples of several steps, each named by its step.
    """
    digits = max(2, len(str(len(listing.facts))))
    first = (
        ListColumn("step", "step", _NUMBER) if steps else ListColumn(FILE, "#", digits)
    )
    more = [ListColumn("length", "len", 5)]
    if not steps:
        more.append(ListColumn(GROUP, "grp", max(4, digits)))
        more += [
            ListColumn(name, name, min(_WIDEST, max(_NUMBER, cell_len(name))))
            for name in listing.fields
        ]
        more.sort(key=lambda column: column.field != order.field)
    chosen = [first, ListColumn("score", "score", _NUMBER + 2)]
    room = width - sum(column.width + 1 for column in chosen)
    for column in more:
        least = 0 if column.field == order.field else _EXCERPT
        if room - column.width - 1 < least:
            break
        chosen.append(column)
        room -= column.width + 1
    return [*chosen, ListColumn("", "answer or end", room)] if room > 0 else chosen


def heading(shown: Sequence[ListColumn], order: SampleOrder) -> Pieces:
    """Return the titles, with an arrow at the column that the list is sorted by."""
    row: Pieces = []
    for field, title, width in shown:
        if not field:
            row.append((fit(title, width), "dim"))
            continue
        arrow = order.arrow if field == order.field else ""
        words = fit(title, width - len(arrow)) + arrow
        row.append((f"{words:>{width}} ", "strong" if arrow else "dim"))
    return row


def table_row(
    fact: SampleFacts,
    step: int,
    shown: Sequence[ListColumn],
    listing: SampleListing,
    words: Excerpt | None,
) -> Pieces:
    """Return the row of one sample.

    Args:
        fact: The sample.
        step: Its step.
        shown: The columns.
        listing: The samples of its step.
        words: Words of its response, None while it is being read.
    """
    row: Pieces = []
    for field, _, width in shown:
        if field == "score":
            glyph, role = listing.scores.mark(fact)
            row.append((f"{glyph} {_number(fact.score):>{_NUMBER}} ", role))
        elif field:
            role = "dim" if field in (FILE, GROUP) else ""
            row.append((f"{_cell(fact, step, field, listing):>{width}} ", role))
        else:
            row.append(words.piece(width) if words is not None else ("…", "dim"))
    return row


def _cell(fact: SampleFacts, step: int, field: str, listing: SampleListing) -> str:
    if field == "step":
        return exact_step(step)
    if field == FILE:
        return str(fact.index + 1)
    if field == GROUP:
        return str(listing.groups.get(fact.group or "", "-"))
    return _number(value_of(fact, field))


def _number(value: float | None) -> str:
    return "-" if value is None else compact(value)
