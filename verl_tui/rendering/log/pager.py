"""The rows of a log in sight, and moves among blocks that are read as they are reached.

A position in the log is the start of a line in the file: it stays valid when the file grows, the
terminal is resized, or rows are folded differently.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.on_demand.log import log_blocks
from verl_tui.rendering.log.line_rows import LogRow, rows
from verl_tui.rendering.text.wrap import fit, spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from verl_tui.on_demand.log import Log, LogBlock

_KEPT = 24
"""Blocks whose rows are kept."""
_MOST = 400
"""Most screen rows of one line."""
_LONGEST = 8
"""Most characters of one cell."""
_ROOM = 4
"""Inverse share of rows left free when a followed log has filled the screen, so that the next lines
change their own rows only.
"""


class LogLayout(NamedTuple):
    """Options for the layout of rows."""

    width: int
    """Cells for the text of a row."""
    wrap: bool = False
    fold: bool = True
    tag: int = 12
    """Most cells of the actor's name."""
    apart: Callable[[str], bool] | None = None
    """Returns True for lines that are not folded."""


class ScreenRow(NamedTuple):
    """A row of the screen: a piece of a row of the log."""

    row: LogRow
    text: str
    head: int
    """Number of characters at the start for actor and repetitions."""
    first: bool
    """True for the first piece of its row."""


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
        self._look = LogLayout(1)
        self.top: tuple[int, int] = (0, 0)
        """Start of the line at the top, and the index of its screen row there."""
        self._owed = 0
        """Rows to move once they are read."""
        self._laid: OrderedDict[
            int, tuple[LogBlock, LogLayout, list[ScreenRow], list[int]]
        ] = OrderedDict()
        self._generation = log.generation

    # -- what is in sight --------------------------------------------------------------------------

    def lines(self, look: LogLayout, height: int) -> list[ScreenRow]:
        """Return the rows of the screen, fewer at the end of the log.

        Raises:
            NotReadYet: Some are not read yet; ask again after the next notice.
        """
        self._fresh |= self.follow and (look, height) != (self._look, self.height)
        self._look = look
        self.height = max(1, height)
        if self._generation != self.log.generation:
            self._generation = self.log.generation
            self._owed = 0
            self._laid.clear()
            self.go_end()
        if not self.log.size:
            return []
        if self.follow:
            self._go_after()
        elif self._owed:
            self._pay()
        shown = list(self._from(self._resolve(), self.height))
        if len(shown) < self.height and not self.follow:
            self._set(self._back(self._end(), self.height - 1))
            shown = list(self._from(self._resolve(), self.height))
        self._read_ahead()
        return [self._line(at) for at in shown]

    def move(self, by: int) -> None:
        """Move down by rows, or up if negative."""
        self.follow = False
        self._owed += by

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
        self._owed = -(self.height // 3 if above is None else above)

    def go_home(self) -> None:
        """Show the beginning."""
        self.go_to(0, 0)

    def go_end(self) -> None:
        """Show the newest line, and follow."""
        self.follow = self._fresh = True

    def share(self, last: ScreenRow) -> int:
        """Return the position of a row in the file, in percent."""
        if not self.log.size:
            return 100
        return min(100, 100 * last.row.end // self.log.size)

    # -- places ------------------------------------------------------------------------------------

    def _go_after(self) -> None:
        """Keep the newest row in sight while moving as few rows as possible."""
        end = self._end()
        room = 0
        if not self._fresh:
            known = list(self._from(self._resolve(), self.height + 1))
            free = self.height - len(known)
            if known and end in known[: self.height]:
                if free <= self.height // _ROOM or self._previous(known[0]) is None:
                    return
            elif free < 0:
                room = self.height // _ROOM
        self._set(self._back(end, self.height - 1 - room))
        self._fresh = False

    def _pay(self) -> None:
        """Move by the rows owed, as far as they are read."""
        at = self._resolve()
        while self._owed:
            after = self._next(at) if self._owed > 0 else self._previous(at)
            if after is None:
                self._owed = 0
                break
            at = after
            self._owed += -1 if self._owed > 0 else 1
            self._set(at)

    def _resolve(self) -> _At:
        """Return the place at the top."""
        start, nth = self.top
        number = start // log_blocks.BLOCK
        while True:
            lines, starts = self._lay(number)
            past = bisect_right(starts, start)
            if past:
                first = starts.index(starts[past - 1])
                return _At(number, min(first + nth, past - 1))
            before = self._block(number).before
            if lines or before < 0:
                return _At(number, 0)
            number = before

    def _set(self, at: _At) -> None:
        lines, starts = self._lay(at.block)
        if at.line < len(lines):
            start = starts[at.line]
            self.top = start, at.line - starts.index(start)

    def _end(self) -> _At:
        """Return the last row."""
        number = self.log.last
        while True:
            lines, _ = self._lay(number)
            if lines or number <= 0:
                return _At(number, max(0, len(lines) - 1))
            number = max(0, self._block(number).before)

    def _back(self, at: _At, by: int) -> _At:
        for _ in range(by):
            before = self._previous(at)
            if before is None:
                break
            at = before
        return at

    def _previous(self, at: _At) -> _At | None:
        if at.line > 0:
            return at._replace(line=at.line - 1)
        number = self._block(at.block).before
        while number >= 0:
            lines, _ = self._lay(number)
            if lines:
                return _At(number, len(lines) - 1)
            number = self._block(number).before
        return None

    def _next(self, at: _At) -> _At | None:
        lines, _ = self._lay(at.block)
        if at.line + 1 < len(lines):
            return at._replace(line=at.line + 1)
        number = self._block(at.block).after
        while number <= self.log.last:
            lines, _ = self._lay(number)
            if lines:
                return _At(number, 0)
            number = self._block(number).after
        return None

    def _from(self, at: _At | None, count: int) -> Iterator[_At]:
        if at is not None and not self._lay(at.block)[0]:
            at = self._next(at)
        while at is not None and count > 0:
            yield at
            count -= 1
            at = self._next(at) if count else None

    # -- blocks ------------------------------------------------------------------------------------

    def _block(self, number: int) -> LogBlock:
        block = self.log.block(number)
        if block is None:
            raise NotReadYet
        return block

    def _line(self, at: _At) -> ScreenRow:
        return self._lay(at.block)[0][at.line]

    def _lay(self, number: int) -> tuple[list[ScreenRow], list[int]]:
        """Return the screen rows of a block, and the start of each row's line."""
        block = self._block(number)
        known = self._laid.get(number)
        if known is None or known[0] is not block or known[1] != self._look:
            folded = rows(block.lines, fold=self._look.fold, apart=self._look.apart)
            lines: list[ScreenRow] = []
            for row in folded:
                lines += screen_rows(row, self._look)
            starts = [line.row.start for line in lines]
            known = self._laid[number] = block, self._look, lines, starts
            while len(self._laid) > _KEPT:
                self._laid.popitem(last=False)
        self._laid.move_to_end(number)
        return known[2], known[3]

    def _read_ahead(self) -> None:
        """Request the blocks next to the one at the top."""
        number = self.top[0] // log_blocks.BLOCK
        for beside in (number + 1, number - 1):
            if 0 <= beside <= self.log.last:
                self.log.block(beside)


def screen_rows(row: LogRow, look: LogLayout) -> Iterator[ScreenRow]:
    """Yield the rows of the screen that a row of the log takes."""
    tag = f"{_short(row.tag, look.tag)} " if row.tag and look.tag else ""
    head = f"{tag}×{row.count} " if row.count > 1 else tag
    text = head + row.text
    if not look.wrap:
        yield ScreenRow(
            row,
            fit(text[: _LONGEST * look.width], look.width),
            min(len(head), look.width),
            first=True,
        )
        return
    for nth, (first, last) in enumerate(spans(text, look.width)):
        if nth == _MOST:
            yield ScreenRow(row, "…", 0, first=False)
            return
        head_left = max(0, len(head) - first)
        yield ScreenRow(row, text[first:last], head_left, first=nth == 0)


def _short(tag: str, cells: int) -> str:
    """Shorten an actor's name to its capitals, which still differ between actors."""
    if cell_len(tag) <= cells:
        return tag
    capitals = "".join(sign for sign in tag if sign.isupper() or sign.isdigit())
    return fit(capitals if 1 < len(capitals) <= cells else tag, cells)
