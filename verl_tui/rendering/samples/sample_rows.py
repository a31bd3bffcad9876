"""Rows of the list of samples: as many numbers of each as fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.samples.query import value_of
from verl_tui.rendering.samples.sample_order import FILE, GROUP
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.records import SampleFacts
    from verl_tui.rendering.samples.excerpts import Excerpt
    from verl_tui.rendering.samples.sample_order import SampleOrder
    from verl_tui.rendering.samples.score_summary import ScoreSummary
    from verl_tui.rendering.text.piece import Pieces


_NUMBER = 7
"""Cells of a number."""
_WIDEST = 12
"""Largest width of a column, in cells; field names are long and differ at their start."""
_FIRST = {FILE: 0, "score": 1}
"""Columns on the left."""
_OWN = (*_FIRST, "length", GROUP)
EXCERPT = "excerpt"
"""Column of the response's first or last words, which takes the room that numbers leave."""
_LEAST_EXCERPT, _ROOM_FOR_EXCERPT = 8, 24
"""Least cells of an excerpt, and those that further numbers leave it."""


class TableColumn(NamedTuple):
    """A column of the list."""

    field: str
    """The sort key of the column."""
    title: str
    width: int


def columns(
    fields: Iterable[str], count: int, order: SampleOrder, width: int
) -> list[TableColumn]:
    """Return the columns that fit, the one that the list is sorted by before the other numbers.

    Args:
        fields: The numeric fields.
        count: Number of samples.
        order: Order of the list.
        width: Cells of a row.
    """
    chosen: list[TableColumn] = []
    for column, spared in _by_importance(fields, max(2, len(str(count))), order):
        if chosen and width < column.width + 1 + spared:
            break
        width -= column.width + 1
        chosen.append(column)
    chosen.sort(key=lambda column: _FIRST.get(column.field, len(_FIRST)))
    if width >= _LEAST_EXCERPT:
        title = "answer or end" if width >= _WIDEST + 1 else "response"
        chosen.append(TableColumn(EXCERPT, title, width))
    return chosen


def _by_importance(
    fields: Iterable[str], digits: int, order: SampleOrder
) -> list[tuple[TableColumn, int]]:
    """Return all columns, the most important first, each with the cells to spare for an excerpt."""
    found = [
        (TableColumn("score", "score", _NUMBER + 2), 0),
        (TableColumn(FILE, "#", digits), 0),
        (TableColumn("length", "len", 5), _LEAST_EXCERPT),
        (TableColumn(GROUP, "grp", max(4, digits)), _ROOM_FOR_EXCERPT),
    ]
    for name in fields:
        if name not in _OWN:
            cells = min(_WIDEST, max(_NUMBER, cell_len(name)))
            found.append((TableColumn(name, name, cells), _ROOM_FOR_EXCERPT))
    for at, (column, _) in enumerate(found[2:], 2):
        if column.field == order.field:
            del found[at]
            found.insert(1, (column, 0))
            break
    return found


def sample_heading(shown: Sequence[TableColumn], order: SampleOrder) -> Pieces:
    """Return the titles, with an arrow at the column that the list is sorted by."""
    row: Pieces = []
    for column in shown:
        sorts = column.field == order.field
        if column.field == EXCERPT:
            row.append((fit(column.title, column.width), "dim"))
            continue
        title = fit(column.title, column.width - sorts)
        title += order.arrow() if sorts else ""
        padding = " " * (column.width - cell_len(title))
        row.append((f"{padding}{title} ", "strong" if sorts else "dim"))
    return row


def sample_row(
    fact: SampleFacts,
    shown: Sequence[TableColumn],
    scores: ScoreSummary,
    groups: dict[str, int],
    *,
    excerpt: Excerpt | None = None,
) -> Pieces:
    """Return the row of one sample.

    Args:
        fact: The sample.
        shown: The columns.
        scores: Scores of all samples of the step.
        groups: The number of each group.
        excerpt: Words of its response, None while it is being read.
    """
    row: Pieces = []
    for column in shown:
        if column.field == EXCERPT:
            if excerpt is not None:
                row.append(excerpt.piece(column.width))
            continue
        if column.field == "score":
            glyph, role = scores.mark(fact.score, fact.group)
            number = compact(fact.score) if fact.score is not None else "-"
            row.append((f"{glyph} {number:>{_NUMBER}} ", role))
            continue
        role = "dim" if column.field in (FILE, GROUP) else "field"
        row.append((f"{_cell(fact, column, groups):>{column.width}} ", role))
    return row


def _cell(fact: SampleFacts, column: TableColumn, groups: dict[str, int]) -> str:
    if column.field == FILE:
        return str(fact.index + 1)
    if column.field == GROUP:
        if fact.group not in groups:
            return "-"
        return str(groups[fact.group])
    value = value_of(fact, column.field)
    return compact(value) if value is not None else "-"


def number_groups(facts: Iterable[SampleFacts]) -> dict[str, int]:
    """Number groups from 1 in the order of appearance, since their names are long and random."""
    numbers: dict[str, int] = {}
    for fact in facts:
        if fact.group is not None:
            numbers.setdefault(fact.group, len(numbers) + 1)
    return numbers


def score_words(fact: SampleFacts, scores: ScoreSummary) -> tuple[str, str]:
    """Return a sample's score with its glyph, and the role."""
    glyph, role = scores.mark(fact.score, fact.group)
    return (
        f"{glyph} {compact(fact.score) if fact.score is not None else 'no score'}",
        role,
    )
