"""The end of a run's log as rows, in place of charts where the run has none yet, below what is
known of its start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.log.target import error_target, texts
from verl_tui.rendering.log.window import LogWindow
from verl_tui.rendering.session.shown_state import shown_state
from verl_tui.rendering.session.source_status import nothing_yet
from verl_tui.rendering.text.printable import wrapped
from verl_tui.runs.views.signs_of_life import phase
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

_ROOMY = 12
"""Least height at which more than the first sentence stands above the log."""
_SIDE = 2
"""Cells of the sign before each line of a log."""


def has_log(run: Run) -> bool:
    """Return whether a run without charts has text to show in their place."""
    return any(status.format != "settings" and status.size for status in texts(run))


class LogTail:
    """The end of the shown run's log; of one that has crashed the lines around the error."""

    def __init__(self, view: View, on_read: Callable[[], object]) -> None:
        """Open the log.

        Args:
            view: The state to begin with.
            on_read: Called, from another thread, when more of the log has been read.
        """
        run = view.run
        ended = run is not None and run.outcome is not None
        self.run = run
        self.ended = ended
        target = error_target(run) if run is not None and ended else None
        self._window = LogWindow(view, target, on_read=on_read, say=lambda _: None)
        self._window.wrap = True

    def stop(self) -> None:
        """Read no further."""
        self._window.reader.stop()

    def rows(self, view: View, width: int, height: int) -> list[Pieces] | None:
        """Return the rows of a size, None while the log is being read."""
        window = self._window
        window.view = view
        log = window.log
        if log is not None:
            log.look()
        above = beginning(view, width)
        above = [*above, []] if height >= _ROOMY else above[:1]
        rows = window.rows(width, max(1, height - len(above)))
        return None if rows is None else [*above, *rows][:height]


def beginning(view: View, width: int) -> list[Pieces]:
    """Say why there are no charts: the state, what the run was at, what has been read."""
    run = view.run
    if run is None:
        return []
    first, *sources = nothing_yet(view).split("\n")
    stage = phase(run)
    crashed = shown_state(view, run) is State.CRASHED
    sentences = [
        (first, "error" if crashed else "step"),
        *([(stage, "progress")] if stage else []),
        *((source, "progress") for source in sources),
    ]
    room = max(1, width - _SIDE)
    return [
        [(" " * _SIDE, ""), (line, role)]
        for words, role in sentences
        for line in wrapped(words, room, ascii_only=view.ascii_only)
    ]
