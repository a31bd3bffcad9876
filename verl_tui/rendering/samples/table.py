"""Rows of the list of samples: as many numbers of each as fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.samples.order import FILE, GROUP
from verl_tui.rendering.samples.query import value_of
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.wrap import ellipsis, fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.records import SampleFacts
    from verl_tui.rendering.samples.order import SampleOrder
    from verl_tui.rendering.samples.score_summary import ScoreSummary
    from verl_tui.rendering.text.piece import Pieces

ROLES = ("strong", "dim", "field", "good", "warning", "critical", "even")

_NUMBER = 7
"""Cells of a number."""
_WIDEST = 12
"""Largest width of a column, in cells; field names are long and differ at their start."""
_FIRST = {FILE: 0, "score": 1}
"""Columns on the left."""
_OWN = (*_FIRST, "length", GROUP)


class TableColumn(NamedTuple):
    """A column of the list."""

    field: str
    """The sort key of the column."""
    title: str
    width: int


def columns(fields: Iterable[str], count: int, order: SampleOrder, width: int) -> list[TableColumn]:
    """Return the columns that fit, the one that the list is sorted by before the other numbers.

    Args:
        fields: The numeric fields.
        count: Number of samples.
        order: Order of the list.
        width: Cells of a row.
    """
    digits = max(2, len(str(count)))
    fixed = [TableColumn("score", "score", _NUMBER + 2), TableColumn(FILE, "#", digits)]
    others = [TableColumn("length", "len", 5), TableColumn(GROUP, "grp", max(4, digits))]
    others += [
        TableColumn(name, name, min(_WIDEST, max(_NUMBER, cell_len(name))))
        for name in fields
        if name not in _OWN
    ]
    others.sort(key=lambda column: column.field != order.field)
    if others[0].field == order.field:
        fixed.insert(1, others.pop(0))
    chosen: list[TableColumn] = []
    for column in (*fixed, *others):
        width -= column.width + 1
        if chosen and width < 0:
            break
        chosen.append(column)
    return sorted(chosen, key=lambda column: _FIRST.get(column.field, len(_FIRST)))


def heading(
    shown: Sequence[TableColumn], order: SampleOrder, *, ascii_only: bool = False
) -> Pieces:
    """Return the titles, with an arrow at the column that the list is sorted by."""
    mark = ellipsis(ascii_only=ascii_only)
    row: Pieces = []
    for column in shown:
        sorts = column.field == order.field
        title = fit(column.title, column.width - sorts, mark)
        title += order.arrow(ascii_only=ascii_only) if sorts else ""
        padding = " " * (column.width - cell_len(title))
        row.append((f"{padding}{title} ", "strong" if sorts else "dim"))
    return row


def line(
    fact: SampleFacts,
    shown: Sequence[TableColumn],
    scores: ScoreSummary,
    groups: dict[str, int],
    *,
    ascii_only: bool = False,
) -> Pieces:
    """Return the row of one sample.

    Args:
        fact: The sample.
        shown: The columns.
        scores: Scores of all samples of the step.
        groups: The number of each group.
        ascii_only: Draw in ASCII.
    """
    row: Pieces = []
    for column in shown:
        if column.field == "score":
            glyph, role = scores.mark(fact.score, ascii_only=ascii_only)
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
        return str(groups[fact.group]) if fact.group in groups else "-"
    value = value_of(fact, column.field)
    return compact(value) if value is not None else "-"


def number_groups(facts: Iterable[SampleFacts]) -> dict[str, int]:
    """Number groups from 1 in the order of appearance, since their names are long and random."""
    numbers: dict[str, int] = {}
    for fact in facts:
        if fact.group is not None:
            numbers.setdefault(fact.group, len(numbers) + 1)
    return numbers


def score_words(
    fact: SampleFacts, scores: ScoreSummary, *, ascii_only: bool = False
) -> tuple[str, str]:
    """Return a sample's score with its glyph, and the role."""
    glyph, role = scores.mark(fact.score, ascii_only=ascii_only)
    return f"{glyph} {compact(fact.score) if fact.score is not None else 'no score'}", role
