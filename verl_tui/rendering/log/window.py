"""The window on the logs of the shown run: which file, which lines of it, how they are laid out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from pathlib import PurePath
from typing import TYPE_CHECKING

from verl_tui.means import next_of, page_rows
from verl_tui.on_demand import log_blocks
from verl_tui.on_demand.log_reader import Log, LogReader, ReplayCutoff
from verl_tui.rendering.log.line_rows import (
    Alarms,
    LogLayout,
    LogRow,
    ScreenRow,
    StepLine,
    TextQuery,
    row_pieces,
    rows,
    screen_rows,
    traceback_start,
)
from verl_tui.rendering.log.target import LogTarget, texts
from verl_tui.rendering.text.piece import Pieces, TextRows, middle, paragraph
from verl_tui.rendering.text.search import Matches, Search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.on_demand.log_blocks import LogBlock
    from verl_tui.records import SourceStatus
    from verl_tui.rendering.session.snapshot import View


ROOMY = 60
"""Least width of rows with the numbers of lines and with names in full."""
_SHORTEST = 8
"""Bytes that the lines of a log have at least on average."""
_KEPT = 24
"""Blocks whose rows are kept."""
_ROOM = 4
"""Inverse share of rows left free when a followed log has filled the screen, so that the next lines
change their own rows only.
"""


class NotReadYet(Exception):  # noqa: N818 - no error: it is read meanwhile
    """Rows in sight have not been read yet."""


class Pager:
    """The rows of a log in sight, and moves among blocks that are read as they are reached.

    A position is the start of a line in the file: it stays valid when the file grows, the terminal
    is resized, or rows are folded differently.
    """

    def __init__(self, log: Log) -> None:
        self.log = log
        self.follow = True
        """True to keep the newest line in sight."""
        self._fresh = True
        """True to fill the screen up to the newest line."""
        self.height = 1
        self._layout = LogLayout(1)
        self._top = (0, 0)
        """Start of the line at the top, and the index of its screen row there."""
        self._pending = 0
        """Rows to move by once they are read."""
        self._laid: dict[int, tuple[LogBlock, LogLayout, list[ScreenRow]]] = {}
        self._generation = log.generation

    def lines(self, layout: LogLayout, height: int) -> list[ScreenRow]:
        """Return the rows of the screen, fewer at the end of the log.

        Raises:
            NotReadYet: Some are not read yet; ask again after the next notice.
        """
        self._fresh |= self.follow and (layout, height) != (self._layout, self.height)
        self._layout = layout
        self.height = height = max(1, height)
        if self._generation != self.log.generation:
            self._generation = self.log.generation
            self._pending = 0
            self._laid.clear()
            self.go_end()
        if not self.log.size:
            return []
        rows, at = self._at_top()
        if self.follow and (self._fresh or at + height < len(rows)):
            rows = self._near(self.log.size)
            at = len(rows) - height + (0 if self._fresh else height // _ROOM)
            self._fresh = False
        elif not self.follow:
            at = min(at + self._pending, len(rows) - height)
        self._pending = 0
        at = max(0, at)
        start = _start(rows[at])
        self._top = start, at - bisect_left(rows, start, key=_start)
        self._read_ahead()
        return rows[at : at + height]

    def move(self, by: int) -> None:
        """Move down by rows, or up if negative."""
        self.follow = False
        self._pending += by

    def page(self, screens: float) -> None:
        """Move down by screens, or up; one row stays in sight."""
        self.move(page_rows(screens, self.height))

    def go_to(self, start: int, above: int | None = None) -> None:
        """Show a line, with so many rows before it, by default a third of the screen."""
        self.follow = False
        self._top = (start, 0)
        self._pending = -(self.height // 3 if above is None else above)

    def go_end(self, way: int = 1) -> None:
        """Show the newest line, and follow; or (-1) the beginning."""
        if way < 0:
            self.go_to(0, 0)
        else:
            self.follow = self._fresh = True

    def share(self, last: ScreenRow) -> int:
        """Return the position of a row in the file, in percent."""
        return min(100, 100 * last.row.end // max(1, self.log.size))

    def _at_top(self) -> tuple[list[ScreenRow], int]:
        """Return rows, and which of them is at the top."""
        if self.follow and self._fresh:
            return [], 0
        start, nth = self._top
        rows = self._near(start)
        past = bisect_right(rows, start, key=_start)
        first = bisect_left(rows, _start(rows[max(0, past - 1)]), key=_start)
        return rows, max(0, min(first + nth, past - 1))

    def _near(self, start: int) -> list[ScreenRow]:
        """Return the rows of the block with a position, with as many before and behind as a screen
        and the moves can need.
        """
        number = min(start // log_blocks.BLOCK, self.log.last)
        need = self.height + abs(self._pending)
        rows = self._lay(number)
        before, above = self._block(number).before, 0
        while before >= 0 and above < need:
            laid = self._lay(before)
            rows, above = laid + rows, above + len(laid)
            before = self._block(before).before
        after, below = self._block(number).after, 0
        while after <= self.log.last and below < need:
            laid = self._lay(after)
            rows, below = rows + laid, below + len(laid)
            after = self._block(after).after
        return rows

    def _block(self, number: int) -> LogBlock:
        block = self.log.block(number)
        if not block:
            raise NotReadYet
        return block

    def _lay(self, number: int) -> list[ScreenRow]:
        """Return the screen rows of a block."""
        block = self._block(number)
        known = self._laid.pop(number, None)
        if not known or known[0] is not block or known[1] != self._layout:
            folded = rows(block.lines, fold=self._layout.fold, apart=self._layout.apart)
            made = [one for row in folded for one in screen_rows(row, self._layout)]
            known = block, self._layout, made
        self._laid[number] = known
        if len(self._laid) > _KEPT:
            del self._laid[next(iter(self._laid))]
        return known[2]

    def _read_ahead(self) -> None:
        """Request the blocks next to the one at the top."""
        number = self._top[0] // log_blocks.BLOCK
        for beside in (number + 1, number - 1):
            if 0 <= beside <= self.log.last:
                self.log.block(beside)


def _start(row: ScreenRow) -> int:
    """Return where a row's line begins in the file."""
    return row.row.start


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
        self.wrap = False
        self.fold = True
        self.lines: Sequence[ScreenRow] = ()
        """The rows in sight."""
        self.target = target
        """The line that is still to be found."""
        self.query: TextQuery | None = None
        """The user's search; its hits are highlighted."""
        self.mark: int | None = None
        """Start of the marked line."""
        self._again = False
        """True once the search has wrapped around the end of the log."""
        self._say = say
        self._path = target.path if target else None
        self._pagers: dict[str, Pager] = {}

    # -- which file --------------------------------------------------------------------------------

    @property
    def source(self) -> SourceStatus | None:
        """The file that is shown, None if the run has no text."""
        sources = texts(self.view.run)
        chosen = (source for source in sources if source.path == self._path)
        return next(chosen, sources[0] if sources else None)

    @property
    def pager(self) -> Pager | None:
        """The position in the log that is shown; in a replay that ends at the step played."""
        source, run = self.source, self.view.run
        if not source or not run:
            return None
        played = self.view.replay is not None
        cutoff = ReplayCutoff(source.size, run.step) if played else None
        log = self.reader.log(source.path, cutoff)
        known = self._pagers.get(source.path)
        if not known or known.log is not log:
            known = self._pagers[source.path] = Pager(log)
        return known

    def next_source(self, way: int) -> None:
        """Show the next (1) or previous (-1) file of the run."""
        paths = [source.path for source in texts(self.view.run)]
        if self.source and len(paths) > 1:
            self.forget()
            self._path = next_of(paths, self.source.path, way)

    def forget(self) -> None:
        """Forget target, search and mark: another log is shown."""
        self.stop_search()
        self.mark = self.target = None

    def stop_search(self) -> None:
        """Forget the search."""
        if pager := self.pager:
            pager.log.search = None

    # -- which lines -------------------------------------------------------------------------------

    def rows(self, width: int, height: int) -> TextRows | None:
        """Return the rows in sight, None while they are being read: those before them stay."""
        pager = self.pager
        if not pager:
            self.lines = ()
            none = "No source of this run is text that can be read again."
            none = none if self.view.run is not None else "No run yet."
            return paragraph(none, "", width)
        if pager.log.problem is not None:
            self.lines = ()
            return paragraph(f"{pager.log.path.name}: {pager.log.problem}", "", width)
        if not pager.log.known or width < 1 or height < 1:
            return None
        self._go_to_target(pager)
        self._end_search(pager)
        try:
            return self._log_rows(pager, width, height)
        except NotReadYet:
            return None

    def _log_rows(self, pager: Pager, width: int, height: int) -> TextRows:
        most = max(1000, pager.log.size // _SHORTEST)  # lines
        numbers = len(str(most)) + 1 if width >= ROOMY else 0
        query = self.query
        matches, search = (query.found, query.search) if query else (None, None)
        room = max(1, width - 2 - numbers)
        layout = LogLayout(room, self.wrap, self.fold, 16 if numbers else 5, matches)
        self.lines = pager.lines(layout, height)
        if not self.lines:
            return paragraph("The file is empty.", "", width)
        starts = (line.row.start for line in self.lines)
        known = [pager.log.number(start) if numbers else None for start in starts]
        return [
            row_pieces(line, number, numbers, search)
            for line, number in zip(self.lines, known, strict=True)
        ]

    @property
    def marked(self) -> int | None:
        """Index of the marked row in sight."""
        mark = self.mark
        if mark is None:
            return None
        inside = (line.row.start <= mark < line.row.end for line in self.lines)
        return next((at for at, here in enumerate(inside) if here), None)

    def mark_current(self) -> LogRow | None:
        """Mark a row and return it: the marked one, else the newest if the log is followed, else
        the one at the top.
        """
        pager = self.pager
        at = self.marked
        if not pager or not self.lines:
            return None
        if at is None:
            at = -1 if pager.follow else 0
        row = self.lines[at].row
        self.mark = row.start
        return row

    # -- the line that is looked for ---------------------------------------------------------------

    def seek(self, query: Alarms | TextQuery, way: int) -> None:
        """Look for the next (1) or previous (-1) line that matches, from the marked one or those
        in sight.
        """
        pager = self.pager
        if not pager or not pager.log.known:
            return
        at = self.marked
        origin = pager.log.size
        if at is not None:
            row = self.lines[at].row
            origin = row.end if way > 0 else row.start
        elif self.lines and not pager.follow:
            first, last = self.lines[0].row, self.lines[-1].row
            origin = first.start if way > 0 else last.end
        self._again = False
        pager.log.find(query, origin, way)

    @property
    def progress(self) -> str:
        """What is being looked for, empty if nothing is."""
        pager = self.pager
        search = pager.log.search if pager else None
        if pager and search:
            return f"searching {search.share(pager.log.size):.0%}"
        if self.target and self.target.line is not None:
            return f"looking for line {self.target.line}"
        return ""

    def _go_to_target(self, pager: Pager) -> None:
        """Go to the line that the window was opened at as soon as its place is known."""
        target = self.target
        if not target:
            return
        if target.line is not None:
            start = pager.log.start_of(target.line)
            if start is None:
                return
            if start < 0:
                self._say(f"{pager.log.path.name} has no line {target.line}")
            elif not self._go_to_traceback(pager, start):
                return
        elif target.step is not None:
            self._again = True
            pager.log.find(StepLine(target.step), pager.log.size, -1)
        self.target = None

    def _go_to_traceback(self, pager: Pager, start: int) -> bool:
        """Go to a line, or to the beginning of the traceback that ends there; return whether the
        lines before it are known.
        """
        own = pager.log.block(start // log_blocks.BLOCK)
        before = own and own.before >= 0 and pager.log.block(own.before)
        if own is None or before is None:
            return False
        lines = [*(before.lines if before else ()), *own.lines]
        self._go(pager, traceback_start(lines, start))
        return True

    def _go(self, pager: Pager, start: int) -> None:
        self.mark = start
        pager.go_to(start)

    def _end_search(self, pager: Pager) -> None:
        """Go to the line that a search has found, or search on from the other end of the log."""
        log = pager.log
        search = log.search
        if not search or not search.done:
            return
        log.search = None
        query, way = search.query, search.way
        if search.found is not None:
            self._go(pager, search.found)
            if self._again and not isinstance(query, StepLine):
                self._say("from the beginning" if way > 0 else "from the end")
        elif self._again:
            self._say(f"no {query.words} in {log.path.name}")
        else:
            self._again = True
            log.find(query, 0 if way > 0 else log.size, way)


def place_line(window: LogWindow, width: int) -> tuple[Pieces, Pieces]:
    """Return the pieces of the line above the log, at its left and at its right."""
    run, pager, source = window.view.run, window.pager, window.source
    left: Pieces = []
    if width >= ROOMY:
        name = window.view.name_in(max(8, width // 3))
        left += [("log ", "dim"), (f"{name}  ", "strong")]
    if not pager or not source:
        return left, []
    sources = texts(run)
    number = f" {sources.index(source) + 1}/{len(sources)}" if sources[1:] else ""
    file = middle(PurePath(source.path).name, max(8, width // 2 - 8))
    left.append((file + number, ""))
    unreadable = f"  {source.unreadable:,} unreadable"
    left.append((unreadable * bool(source.unreadable), "warning"))
    if window.query:
        left.append((f"  /{window.query.search.expression}/", "accent"))
        given_up = window.query.search.given_up
        left.append(("  long lines not searched" * bool(given_up), "warning"))
    if window.progress:
        return left, [(window.progress, "accent")]
    if pager.follow:
        return left, [("following", "dim")]
    return left, [(f"{pager.share(one)}%", "dim") for one in window.lines[-1:]]


def hits_in_sight(
    lines: Sequence[ScreenRow], expression: str
) -> dict[str, Matches] | None:
    """Count the rows in sight that match a typed expression; None while it is not valid."""
    try:
        search = Search(expression)
    except ValueError:
        return None
    rows = {line.row.start: line.row.whole for line in lines}
    found = sum(search.search(text) for text in rows.values())
    return {"lines in sight": Matches(found, len(rows))}
