"""Runs as one short row each, with columns where the names leave room: `1 ✖2 run  120/500 crashed`.

Widths are terminal cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.run_list.entry_rows import head_of, naming, state_word
from verl_tui.rendering.text.printable import cut
from verl_tui.rendering.text.wrap import ELLIPSIS
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from verl_tui.rendering.run_list.entry_rows import EntryWriter, RunEntry
    from verl_tui.rendering.text.piece import Pieces

_GAP = 2
_RANKED = 9
"""Cells of a value that the list is sorted by."""
_KEPT = 18
"""Cells of a name that such a value leaves."""
_PERCENT, _ETA = 4, 11
"""Cells of `100%`, and of `ETA 23h 59m`."""


class ShortColumns(NamedTuple):
    """Cells of the columns behind the names; 0 for those without room."""

    width: int
    """Cells behind the badge."""
    state: int
    """1 for a sign."""
    ranked: int = 0
    steps: int = 0
    percent: int = 0
    eta: int = 0

    @property
    def name(self) -> int:
        """Cells of a name with the room behind it."""
        ends = (self.ranked, self.steps, self.percent, self.eta)
        figures = sum(size + _GAP for size in ends if size)
        return max(0, self.width - figures - self.gap - self.state)

    @property
    def gap(self) -> int:
        """Cells before the state."""
        return _GAP if self.state > 1 else 1


def short_columns(
    names: Sequence[str],
    width: int,
    *,
    states: int,
    steps: int,
    without: Collection[str] = (),
    ranked: bool = False,
) -> ShortColumns:
    """Divide the row behind the badge: the same columns for all runs.

    Args:
        names: Names of all runs.
        width: Cells behind the badge.
        states: Cells of the longest state; its sign is enough where names need the room.
        steps: Cells of the longest step.
        without: Columns of the table that are empty for all runs.
        ranked: Whether the list is sorted by a value that is shown.
    """
    longest = max(map(cell_len, names), default=0)
    value = (
        _RANKED if ranked and width >= min(longest, _KEPT) + _RANKED + 2 * _GAP else 0
    )
    spare = width - longest - (value + _GAP if value else 0)
    state = states if spare >= states + _GAP else 1
    spare -= state + _GAP
    cells = {"steps": 0, "percent": 0, "eta": 0}
    wanted = {"steps": steps}
    if not {"done", "ETA"} & set(without):
        wanted |= {"eta": _ETA, "percent": _PERCENT}
    for column, size in wanted.items() if not ranked else ():
        if not size or spare < size + _GAP:
            break
        cells[column] = size
        spare -= size + _GAP
    return ShortColumns(width, state, value, **cells)


def singles(names: Sequence[str], columns: ShortColumns) -> EntryWriter:
    """Write one short row a run, with names that differ from `names`."""
    named = naming(names)

    def rows(entry: RunEntry) -> list[Pieces]:
        head = head_of(entry, columns.name, named)
        if not columns.steps and not columns.ranked:
            head = _filled(head, entry)
        word, role = state_word(entry, columns.state)
        row = [*head, *_figures(entry, columns), (" " * columns.gap, ""), (word, role)]
        return [cut(row, entry.indent + columns.width, ELLIPSIS)]

    return rows


def _figures(entry: RunEntry, columns: ShortColumns) -> Pieces:
    """Write the columns between name and state."""
    eta = f"ETA {entry.eta}" if entry.eta else ""
    row: Pieces = []
    for text, cells in (
        (entry.ranked, columns.ranked),
        (entry.steps, columns.steps),
        (entry.percent, columns.percent),
        (eta, columns.eta),
    ):
        if cells:
            row.append((" " * _GAP + text[:cells].rjust(cells), "dim"))
    return row


def _filled(head: Pieces, entry: RunEntry) -> Pieces:
    """Write progress behind a name, where the names leave no column for it."""
    *before, (space, _) = head
    over = entry.state is State.FINISHED
    for text in (entry.steps, "" if over else entry.percent):
        if text and len(text) + _GAP <= len(space):
            return [*before, (text.rjust(len(space)), "dim")]
    return head
