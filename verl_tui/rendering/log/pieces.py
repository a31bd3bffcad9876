"""A row of a log as pieces, each with the role that colours it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.log.line_kinds import LineKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.on_demand.log import Log
    from verl_tui.rendering.log.pager import ScreenRow
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.rendering.text.search import Search

_SIGNS = {
    LineKind.ERROR: "✖",
    LineKind.WARNING: "▲",
    LineKind.MARK: "◆",
    LineKind.STEP: "●",
    LineKind.PROGRESS: " ",
    LineKind.PLAIN: " ",
}
"""Signs of the kinds beside their colours."""
_LEAST = 4
"""Digits that there is always room for."""


def number_cells(log: Log, lines: Sequence[ScreenRow]) -> int:
    """Return the cells that numbers of lines take with a space, none where they are not known."""
    number = log.number(lines[-1].row.start) if lines else None
    if number is None:
        return 0
    return max(_LEAST, len(str(number))) + 1


def row_pieces(
    line: ScreenRow, number: int | None, cells: int, search: Search | None
) -> Pieces:
    """Return the pieces of a row.

    Args:
        line: The row.
        number: Number of the line, None where it is not known.
        cells: Cells for the number.
        search: What to mark.
    """
    kind = line.row.kind
    sign = _SIGNS[kind] if line.first else " "
    shown = str(number) if number is not None and line.first else ""
    pieces = [
        (f"{sign} ", kind.value),
        (f"{shown:>{cells - 1}} " if cells else "", "number"),
    ]
    head = line.text[: line.head]
    text = line.text[line.head :]
    tag = head
    count = ""
    if line.row.count > 1:
        tag, times, number_of = head.rpartition("×")
        count = times + number_of
    pieces += [(tag, "tag"), (count, "count")]
    at = 0
    for start, end in search.hits(text) if search is not None else ():
        pieces.append((text[at:start], kind.value))
        pieces.append((text[start:end], "hit"))
        at = end
    return [*pieces, (text[at:], kind.value)]
