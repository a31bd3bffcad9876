"""The end of a run's log as rows, in place of charts where the run has none yet, below what is
known of its start.
"""

from __future__ import annotations

from collections.abc import Callable

from verl_tui.rendering.log.target import error_target
from verl_tui.rendering.log.window import LogWindow
from verl_tui.rendering.session.snapshot import View, nothing_yet, shown_state
from verl_tui.rendering.text.piece import TextRows, paragraph
from verl_tui.runs.views.signs_of_life import phase
from verl_tui.runs.views.state import State

_ROOMY = 12
"""Least height at which more than the first sentence stands above the log."""
_ABOVE = 4
"""Inverse share of a lower one that the sentence may take."""
_SIDE = 2
"""Cells of the sign before each line of a log."""


def log_tail(view: View, on_read: Callable[[], object]) -> LogWindow:
    """Open the end of the shown run's log; of one that has crashed at the error. `on_read` is
    called, from another thread, when more of it has been read.
    """
    run = view.run
    target = error_target(run) if run and run.outcome else None
    window = LogWindow(view, target, on_read=on_read, say=lambda _: None)
    window.wrap = True
    return window


def tail_rows(
    window: LogWindow, view: View, width: int, height: int
) -> TextRows | None:
    """Return the rows of a size, None while the log is being read; an error stays in sight."""
    window.view = view
    if window.pager:
        window.pager.log.check()
    above = why_no_charts(view, width)
    above = [*above, []] if height >= _ROOMY else above[: height // _ABOVE]
    room = max(1, height - len(above))
    rows = window.rows(width, room)
    if rows is not None and window.pager and window.mark is not None:
        # what comes of it matters more than what was before
        window.pager.go_to(window.mark, 1)
        rows = window.rows(width, room)
    return None if rows is None else [*above, *rows][:height]


def why_no_charts(view: View, width: int) -> TextRows:
    """Say why there are no charts: the state, what the run was at, what has been read."""
    side = (" " * _SIDE, "")
    return [
        row
        for words, role in _sentences(view)
        for row in paragraph(words, role, width, side)
    ]


def _sentences(view: View) -> list[tuple[str, str]]:
    """Return what is said above the log, with its roles."""
    run = view.run
    if not run:
        return []
    first, *sources = nothing_yet(view).split("\n")
    crashed = shown_state(view, run) is State.CRASHED
    said = filter(None, (phase(run), *sources))
    return [
        (first, "error" if crashed else "step"),
        *((one, "progress") for one in said),
    ]
