"""The window on the logs of the shown run: which file, which lines of it, how they are laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.on_demand.log import LogReader, ReplayCutoff
from verl_tui.rendering.log.pager import LogLayout, NotReadYet, Pager
from verl_tui.rendering.log.pieces import number_cells, row_pieces
from verl_tui.rendering.log.seeking import Seeker
from verl_tui.rendering.log.target import texts
from verl_tui.rendering.text.printable import wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.on_demand.log import Log
    from verl_tui.records import SourceStatus
    from verl_tui.rendering.log.line_rows import LogRow
    from verl_tui.rendering.log.pager import ScreenRow
    from verl_tui.rendering.log.target import LogTarget
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces

ROOMY = 60
"""Least width of rows with the numbers of lines and with names in full."""


class LogWindow:
    """The window on the text files of the shown run."""

    def __init__(
        self,
        view: View,
        target: LogTarget | None,
        *,
        on_read: Callable[[], object],
        say: Callable[[str], None],
    ) -> None:
        """Open the window.

        Args:
            view: The state to begin with.
            target: The line to begin at; the newest if None.
            on_read: Called, from another thread, when more of a log has been read.
            say: Shows a sentence to the user.
        """
        self.view = view
        self.reader = LogReader(on_read)
        self.seeker = Seeker(target, say)
        self.wrap = False
        self.fold = True
        self.lines: Sequence[ScreenRow] = ()
        """The rows in sight."""
        self._path = target.path if target is not None else None
        self._pagers: dict[str, Pager] = {}

    # -- which file --------------------------------------------------------------------------------

    @property
    def paths(self) -> list[str]:
        """The text files of the shown run."""
        return [source.path for source in texts(self.view.run)]

    @property
    def source(self) -> SourceStatus | None:
        """The file that is shown, None if the run has no text."""
        sources = texts(self.view.run)
        chosen = (source for source in sources if source.path == self._path)
        return next(chosen, sources[0] if sources else None)

    @property
    def log(self) -> Log | None:
        """The log that is shown; in a replay only up to the step that is played."""
        source = self.source
        view = self.view
        if source is None:
            return None
        cutoff = None
        if view.replay is not None and view.run is not None:
            cutoff = ReplayCutoff(source.size, view.run.step)
        return self.reader.log(source.path, cutoff)

    @property
    def pager(self) -> Pager | None:
        """The position in the log that is shown."""
        log = self.log
        if log is None:
            return None
        path = str(log.path)
        if path not in self._pagers or self._pagers[path].log is not log:
            self._pagers[path] = Pager(log)
        return self._pagers[path]

    def next_source(self, way: int) -> None:
        """Show the next (1) or previous (-1) file of the run."""
        paths = self.paths
        source = self.source
        if source is not None and len(paths) > 1:
            self._path = paths[(paths.index(source.path) + way) % len(paths)]
            self.seeker.forget()

    # -- which lines -------------------------------------------------------------------------------

    def rows(self, width: int, height: int) -> list[Pieces] | None:
        """Return the rows in sight, None while they are being read: those before them stay."""
        pager = self.pager
        if pager is None or pager.log.problem is not None:
            self.lines = ()
            return _words(self._missing(pager), width)
        if not pager.log.known:
            return None
        self.seeker.arrive(pager)
        try:
            if width > 0 < height:
                return self._log_rows(pager, width, height)
            return None
        except NotReadYet:
            return None

    def _missing(self, pager: Pager | None) -> str:
        """Return the reason why there is no text."""
        if pager is not None:
            return f"{pager.log.path.name}: {pager.log.problem}"
        if self.view.run is None:
            return "No run yet."
        return "No source of this run is text that can be read again."

    def _log_rows(self, pager: Pager, width: int, height: int) -> list[Pieces]:
        numbers = self._find_lines(pager, width, height)
        if not self.lines:
            return _words("The file is empty.", width)
        query = self.seeker.query
        search = query.search if query is not None else None
        rows = []
        for line in self.lines:
            number = pager.log.number(line.row.start) if numbers else None
            rows.append(row_pieces(line, number, numbers, search))
        return rows

    def _find_lines(self, pager: Pager, width: int, height: int) -> int:
        """Find the lines in sight; return the cells for their numbers.

        Which lines they are depends on the room beside their numbers, and that on the lines.
        """
        roomy = width >= ROOMY
        query = self.seeker.query
        matches = query.found if query is not None else None
        numbers = -1
        needed = number_cells(pager.log, self.lines) if roomy else 0
        while numbers != needed:
            numbers = needed
            text_width = max(1, width - 2 - numbers)
            layout = LogLayout(
                text_width, self.wrap, self.fold, 16 if roomy else 5, matches
            )
            self.lines = pager.lines(layout, height)
            needed = number_cells(pager.log, self.lines) if roomy else 0
        return numbers

    @property
    def marked(self) -> int | None:
        """Index of the marked row in sight."""
        return self.seeker.marked(self.lines)

    def mark_current(self) -> LogRow | None:
        """Mark a row and return it: the marked one, else the newest if the log is followed, else
        the one at the top.
        """
        pager = self.pager
        at = self.marked
        if pager is None or not self.lines:
            return None
        if at is None:
            at = -1 if pager.follow else 0
        row = self.lines[at].row
        self.seeker.mark = row.start
        return row


def _words(words: str, width: int) -> list[Pieces]:
    return [[(line, "")] for line in wrapped(words, max(1, width))]
