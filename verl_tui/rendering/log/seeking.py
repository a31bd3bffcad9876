"""Ways to a line of a log: the one it was opened at, the next hit, the next error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.log.line_kinds import Alarms, StepLine, TextQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.on_demand.log import Log, SearchJob
    from verl_tui.rendering.log.pager import Pager, ScreenRow
    from verl_tui.rendering.log.target import LogTarget

LogQuery = Alarms | StepLine | TextQuery


class Seeker:
    """Finds lines of a log, and marks the one that was found last."""

    def __init__(self, target: LogTarget | None, say: Callable[[str], None]) -> None:
        """Begin.

        Args:
            target: The line to begin at; the newest if None.
            say: Notifies the user of a sentence.
        """
        self.target = target
        """The line that is still to be found."""
        self.query: TextQuery | None = None
        """The user's search; its hits are highlighted."""
        self.search: SearchJob | None = None
        """The search under way."""
        self.mark: int | None = None
        """Start of the marked line."""
        self._again = False
        """True once the search has wrapped around the end of the log."""
        self._say = say

    def forget(self) -> None:
        """Forget target, search and mark: another log is shown."""
        self.mark = self.target = self.search = None

    def marked(self, lines: Sequence[ScreenRow]) -> int | None:
        """Return the index of the marked row in sight."""
        mark = self.mark
        if mark is None:
            return None
        return next(
            (
                at
                for at, line in enumerate(lines)
                if line.row.start <= mark < line.row.end
            ),
            None,
        )

    def progress(self, log: Log) -> str:
        """Return what is being looked for, empty if nothing is."""
        if self.search is not None and self.search is log.search:
            return f"searching {self.search.share(log.size):.0%}"
        if self.target is not None and self.target.line is not None:
            return f"looking for line {self.target.line}"
        return ""

    def next(
        self,
        pager: Pager,
        lines: Sequence[ScreenRow],
        query: Alarms | TextQuery,
        way: int,
    ) -> None:
        """Look for the next (1) or previous (-1) line that matches, from the marked one or those
        in sight.
        """
        at = self.marked(lines)
        if at is not None:
            origin = lines[at].row.end if way > 0 else lines[at].row.start
        elif not lines or pager.follow:
            origin = pager.log.size
        else:
            origin = lines[0].row.start if way > 0 else lines[-1].row.end
        self._begin(pager, query, origin, way, again=False)

    def arrive(self, pager: Pager) -> None:
        """Go to the line looked for as soon as its place is known."""
        self._go_to_target(pager)
        self._end_search(pager)

    def _go_to_target(self, pager: Pager) -> None:
        target = self.target
        if target is None:
            return
        if target.line is not None:
            start = pager.log.start_of(target.line)
            if start is None:
                return
            if start < 0:
                self._say(f"{pager.log.path.name} has no line {target.line}")
            else:
                self._go(pager, start)
        elif target.step is not None:
            self._begin(pager, StepLine(target.step), pager.log.size, -1, again=True)
        self.target = None

    def _go(self, pager: Pager, start: int) -> None:
        self.mark = start
        pager.go_to(start)

    def _begin(
        self, pager: Pager, query: LogQuery, origin: int, way: int, *, again: bool
    ) -> None:
        self.search = pager.log.find(query, origin, way)
        self._again = again

    def _end_search(self, pager: Pager) -> None:
        """Go to the line that a search has found, or search on from the other end of the log."""
        search = self.search
        log = pager.log
        if search is None or not search.done:
            return
        self.search = None
        query = search.query
        assert isinstance(query, LogQuery)
        if search.found is not None:
            self._go(pager, search.found)
            if self._again and not isinstance(query, StepLine):
                self._say("from the beginning" if search.way > 0 else "from the end")
        elif self._again:
            self._say(f"no {query.words} in {log.path.name}")
        else:
            self._begin(
                pager, query, 0 if search.way > 0 else log.size, search.way, again=True
            )
