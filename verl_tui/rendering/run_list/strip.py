"""All runs side by side in one row, around the shown one: badge, name, progress or state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.run_list.entry_rows import glyph, naming, state_word
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import cut
from verl_tui.rendering.text.wrap import ELLIPSIS
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.rendering.run_list.entry_rows import NameWriter, RunEntry
    from verl_tui.rendering.text.piece import Pieces

_NAME = 18
"""Most cells of a name."""
_GAP = 2
_MORE = 6
"""Cells kept for the number of runs without room, at either end."""


def strip(
    names: Sequence[str], shown: int, entry_at: Callable[[int], RunEntry], width: int
) -> Pieces:
    """Return the row.

    Args:
        names: Names of the runs, in the order of the list.
        shown: Index of the shown run, which is always in the row.
        entry_at: Returns the entry of a run; called for those in sight.
        width: Cells of the row.
    """
    named = naming(names)

    def written(at: int) -> Pieces:
        return _run(entry_at(at), named, marked=at == shown)

    parts = {shown: written(shown)}
    used, first, last = cells_of(parts[shown]), shown, shown
    # Those behind the shown run first: where all have room they are in their order anyway.
    for way in (1, -1):
        at = shown + way
        while 0 <= at < len(names):
            part = written(at)
            if used + _GAP + cells_of(part) > width - 2 * _MORE:
                break
            parts[at], used = part, used + _GAP + cells_of(part)
            first, last = min(first, at), max(last, at)
            at += way
    return cut(
        _joined(
            [parts[at] for at in range(first, last + 1)], first, len(names) - 1 - last
        ),
        width,
        ELLIPSIS,
    )


def _joined(parts: Sequence[Pieces], before: int, after: int) -> Pieces:
    row: Pieces = [(f"+{before}" + " " * _GAP, "dim")] if before else []
    for at, part in enumerate(parts):
        row += [(" " * _GAP, "")] if at else []
        row += part
    return [*row, (" " * _GAP + f"+{after}", "dim")] if after else row


def _run(entry: RunEntry, named: NameWriter, *, marked: bool) -> Pieces:
    mark = "▸" if marked else " "
    going = entry.state is State.RUNNING and entry.steps
    word = (f"step {entry.steps}", "dim") if going else state_word(entry, 0)
    return [
        (mark, "shown"),
        (f"{glyph(entry.badge)}{entry.count.strip()} ", entry.badge),
        (named(entry, min(_NAME, cell_len(entry.name))), "shown" if marked else "name"),
        (" ", ""),
        word,
    ]
