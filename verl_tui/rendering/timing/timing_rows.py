"""All rows of the timing screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.text.printable import cut, wrapped
from verl_tui.rendering.text.wrap import ELLIPSIS
from verl_tui.rendering.timing.progress import progress
from verl_tui.rendering.timing.speed_figures import speed_rows, waits
from verl_tui.rendering.timing.step_parts import SOLID, step_by_step, step_parts
from verl_tui.runs.time.step_timing import breakdown
from verl_tui.runs.time.throughput import rates, throughput

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces

_SIGNS = "█▓▄▒▌░"
"""Signs of the parts where colours do not distinguish them."""


def timing_rows(view: View, width: int, *, solid: bool = False) -> list[Pieces]:
    """Return the rows of the screen.

    Args:
        view: The state to show.
        width: Most cells a row may take.
        solid: Whether colours alone distinguish the parts of a step.
    """
    run = view.run
    if run is None:
        return [
            [(line, "dim")]
            for line in wrapped("No run yet, so nothing has taken any time.", width)
        ]
    found = breakdown(run)
    signs = SOLID * len(_SIGNS) if solid else _SIGNS
    parts = (
        step_parts(run, found, view, width, signs),
        progress(run, view, width),
        speed_rows("throughput", [*rates(run), *throughput(run, found)], width),
        speed_rows("generating and waiting", waits(run, found), width),
        step_by_step(run, found, width, signs),
    )
    rows: list[Pieces] = []
    for part in filter(None, map(list, parts)):
        if rows:
            rows.append([])
        rows += part
    return [cut(row, width, ELLIPSIS) for row in rows]
