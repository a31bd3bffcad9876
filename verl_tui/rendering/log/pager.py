"""The rows of a log in sight, and moves among blocks that are read as they are reached.

A position in the log is the start of a line in the file: it stays valid when the file grows, the
terminal is resized, or rows are folded differently.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.on_demand import log_blocks
from verl_tui.rendering.log.line_rows import LogLayout, rows, screen_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.on_demand.log_blocks import LogBlock
    from verl_tui.on_demand.log_reader import Log
    from verl_tui.rendering.log.line_rows import ScreenRow

_KEPT = 24
"""Blocks whose rows are kept."""
_ROOM = 4
"""Inverse share of rows left free when a followed log has filled the screen, so that the next lines
change their own rows only.
"""


class _At(NamedTuple):
    block: int
    line: int


class NotReadYet(Exception):  # noqa: N818 - no error: it is read meanwhile
    """Rows in sight have not been read yet."""


class Pager:
    """A window on a log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.follow = True
        """True to keep the newest line in sight."""
        self._fresh = True
        """True to fill the screen up to the newest line."""
        self.height = 1
        self._layout = LogLayout(1)
        self.top: tuple[int, int] = (0, 0)
        """Start of the line at the top, and the index of its screen row there."""
        self._pending = 0
        """Rows to move by once they are read."""
        self._laid: OrderedDict[int, tuple[LogBlock, LogLayout, list[ScreenRow]]]
        self._laid = OrderedDict()
        self._generation = log.generation

    # -- what is in sight --------------------------------------------------------------------------

    def lines(self, layout: LogLayout, height: int) -> list[ScreenRow]:
        """Return the rows of the screen, fewer at the end of the log.

        Raises:
            NotReadYet: Some are not read yet; ask again after the next notice.
        """
        self._fresh |= self.follow and (layout, height) != (self._layout, self.height)
        self._layout = layout
        self.height = max(1, height)
        if self._generation != self.log.generation:
            self._generation = self.log.generation
            self._pending = 0
            self._laid.clear()
            self.go_end()
        if not self.log.size:
            return []
        if self.follow:
            self._go_after()
        else:
            self._move_pending()
        shown = self._from(self._resolve(), self.height)
        if len(shown) < self.height and not self.follow:
            self._set(self._back(self._end(), self.height - 1))
            shown = self._from(self._resolve(), self.height)
        self._read_ahead()
        return [self._lay(at.block)[at.line] for at in shown]

    def move(self, by: int) -> None:
        """Move down by rows, or up if negative."""
        self.follow = False
        self._pending += by

    def page(self, by: int) -> None:
        """Move down by screens, or up; one row stays in sight."""
        self.move(by * max(1, self.height - 1))

    def go_to(self, start: int, above: int | None = None) -> None:
        """Show a line, with some before it.

        Args:
            start: Start of the line.
            above: Rows before it, a third of the screen if None.
        """
        self.follow = False
        self.top = (start, 0)
        self._pending = -(self.height // 3 if above is None else above)

    def go_end(self, way: int = 1) -> None:
        """Show the newest line, and follow; or (-1) the beginning."""
        if way < 0:
            self.go_to(0, 0)
        else:
            self.follow = self._fresh = True

    def share(self, last: ScreenRow) -> int:
        """Return the position of a row in the file, in percent."""
        if not self.log.size:
            return 100
        return min(100, 100 * last.row.end // self.log.size)

    # -- places ------------------------------------------------------------------------------------

    def _go_after(self) -> None:
        """Keep the newest row in sight while moving as few rows as possible."""
        end, room = self._end(), 0
        if not self._fresh:
            if end in self._from(self._resolve(), self.height):
                return
            room = self.height // _ROOM
        self._set(self._back(end, self.height - 1 - room))
        self._fresh = False

    def _move_pending(self) -> None:
        """Move by the rows that were asked for, as far as they are read."""
        way = 1 if self._pending > 0 else -1
        for at in islice(self._walk(self._resolve(), way), abs(self._pending)):
            self._set(at)
            self._pending -= way
        self._pending = 0

    def _resolve(self) -> _At:
        """Return the place at the top."""
        start, nth = self.top
        number = start // log_blocks.BLOCK
        while True:
            rows = self._lay(number)
            past = bisect_right(rows, start, key=_start)
            if past:
                first = bisect_left(rows, _start(rows[past - 1]), key=_start)
                return _At(number, min(first + nth, past - 1))
            before = self._block(number).before
            if rows or before < 0:
                return _At(number, 0)
            number = before

    def _set(self, at: _At) -> None:
        rows = self._lay(at.block)
        if at.line < len(rows):
            start = _start(rows[at.line])
            self.top = start, at.line - bisect_left(rows, start, key=_start)

    def _end(self) -> _At:
        """Return the last row."""
        last = self.log.last
        end = _At(last, len(self._lay(last)))
        return next(self._walk(end, -1), _At(last, 0))

    def _back(self, at: _At, by: int) -> _At:
        return [at, *islice(self._walk(at, -1), max(0, by))][-1]

    def _walk(self, at: _At, way: int) -> Iterator[_At]:
        """Yield the places after (1) or before (-1) one."""
        number, line = at
        while 0 <= number <= self.log.last:
            line += way
            if 0 <= line < len(self._lay(number)):
                yield _At(number, line)
                continue
            block = self._block(number)
            number = block.after if way > 0 else block.before
            line = -1
            if way < 0 <= number:
                line = len(self._lay(number))

    def _from(self, at: _At, count: int) -> list[_At]:
        """Return so many places from one on."""
        return list(islice(self._walk(at._replace(line=at.line - 1), 1), count))

    # -- blocks ------------------------------------------------------------------------------------

    def _block(self, number: int) -> LogBlock:
        block = self.log.block(number)
        if block is None:
            raise NotReadYet
        return block

    def _lay(self, number: int) -> list[ScreenRow]:
        """Return the screen rows of a block."""
        block = self._block(number)
        known = self._laid.get(number)
        if known is None or known[0] is not block or known[1] != self._layout:
            folded = rows(block.lines, fold=self._layout.fold, apart=self._layout.apart)
            made = [one for row in folded for one in screen_rows(row, self._layout)]
            known = self._laid[number] = block, self._layout, made
            while len(self._laid) > _KEPT:
                self._laid.popitem(last=False)
        self._laid.move_to_end(number)
        return known[2]

    def _read_ahead(self) -> None:
        """Request the blocks next to the one at the top."""
        number = self.top[0] // log_blocks.BLOCK
        for beside in (number + 1, number - 1):
            if 0 <= beside <= self.log.last:
                self.log.block(beside)


def _start(row: ScreenRow) -> int:
    """Return where a row's line begins in the file."""
    return row.row.start
