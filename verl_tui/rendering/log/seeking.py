"""The ways to a line of a log: where it was opened for, the next hit, the next error."""

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
    """Where one wants to go in a log, and the line one has gone to."""

    def __init__(self, aim: LogTarget | None, say: Callable[[str], None]) -> None:
        """Begin.

        Args:
            aim: Which line to begin at; at the newest if none.
            say: Takes what the user is told.
        """
        self.aim = aim
        """What is still to be found."""
        self.query: TextQuery | None = None
        self.search: SearchJob | None = None
        """The search of which one waits for the end."""
        self.mark: int | None = None
        """Where the line begins that one has gone to."""
        self._again = False
        """Whether the search has begun again at the other end of the log."""
        self._say = say

    def drop(self) -> None:
        """Look at another log."""
        self.mark = self.aim = self.search = None

    def marked(self, lines: Sequence[ScreenRow]) -> int | None:
        """Return which row in sight is the one that one has gone to."""
        mark = self.mark
        if mark is None:
            return None
        return next(
            (at for at, line in enumerate(lines) if line.row.start <= mark < line.row.end), None
        )

    def doing(self, log: Log) -> str:
        """Return what is being looked for, empty if nothing is."""
        if self.search is not None and self.search is log.search:
            return f"searching {self.search.share(log.size):.0%}"
        if self.aim is not None and self.aim.line is not None:
            return f"looking for line {self.aim.line}"
        return ""

    def next(
        self, pager: Pager, lines: Sequence[ScreenRow], query: Alarms | TextQuery, way: int
    ) -> None:
        """Look for the next line of a kind from where one is."""
        at = self.marked(lines)
        if at is not None:
            origin = lines[at].row.end if way > 0 else lines[at].row.start
        elif not lines or pager.follow:
            origin = pager.log.size
        else:
            origin = lines[0].row.start if way > 0 else lines[-1].row.end
        self._begin(pager, query, origin, way, again=False)

    def arrive(self, pager: Pager) -> None:
        """Go where one wanted to, as soon as it is known where that is."""
        self._take_aim(pager)
        self._end_search(pager)

    def _take_aim(self, pager: Pager) -> None:
        aim = self.aim
        if aim is None:
            return
        if aim.line is not None:
            start = pager.log.start_of(aim.line)
            if start is None:
                return
            if start < 0:
                self._say(f"{pager.log.path.name} has no line {aim.line}")
            else:
                self._go(pager, start)
        elif aim.step is not None:
            self._begin(pager, StepLine(aim.step), pager.log.size, -1, again=True)
        self.aim = None

    def _go(self, pager: Pager, start: int) -> None:
        self.mark = start
        pager.go_to(start)

    def _begin(self, pager: Pager, query: LogQuery, origin: int, way: int, *, again: bool) -> None:
        self.search, self._again = pager.log.find(query, origin, way), again

    def _end_search(self, pager: Pager) -> None:
        """Go to what was searched for, or go on at the other end of the log."""
        search, log = self.search, pager.log
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
            self._begin(pager, query, 0 if search.way > 0 else log.size, search.way, again=True)
