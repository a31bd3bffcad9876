"""Lines that a terminal wrapped: copied out of a window, or out of a pane (`tmux capture-pane`
without `-J`), each is as many rows as the terminal needed for it.

A log counts as wrapped once several rows are as wide as the widest, or a record goes on behind one
that is; none may be wider, and nothing may move the cursor or set a colour: a capture holds neither
(heuristic). From then on rows are put together, with the spaces that captures leave out at their
ends. Where the row behind a full one begins anew the line was cut, and its last metric may be, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.fields.row_batcher import joined_notes
from verl_tui.sources.formats.console.collected import CollectedDecoder
from verl_tui.sources.formats.console.step_lines import STEP, without_last

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow

_NARROWEST, _WIDEST = 40, 1000
"""Columns of terminals."""
_ENOUGH = 5
"""Full rows that differ in more than their digits: what one statement prints may always be as
long.
"""
_TOO_MANY = 3
"""Rows wider than the terminal from which on the log counts as not wrapped."""
_MOST_ROWS = 2000
"""Rows of one line: two million characters."""
_FIRST_ROWS = 2000
"""Rows among which a wrapped log has enough that are full."""
_DIGITS = pattern(rb"\d+")
_CONTROLS = pattern(rb"[\x08\r\x1b]")
_NEVER_SHOWN = pattern(rb"\{\"|[^\x08\r\x1b]*[\x08\r\x1b]")
"""JSON lines of collectors and control characters: a line with these is not a row of a terminal."""
_BEGINS = pattern(
    rb"\((?:[^()\s]+ )?pid=|\[rank\d|step:-?\d+(?:e\d+)? - |\{'|Traceback \("
    rb"|20\d\d-\d\d-\d\d[ T]|[\w ]{0,40}:? {0,3}\d{1,3}%\|"
)
"""Begins a line, not a row."""
_METRIC = pattern(rb"'(?:loss|reward|grad_norm|learning_rate|objective/rlhf_reward)': ")
_DICT_GOES_ON = pattern(rb".*(?:': |\})")
_STEP_GOES_ON = pattern(rb" ?(?:- )?[^ ]*(?: - [^ ]+)+(?: -)?$| ?[^ ]*[\d)]$")
"""Rows within a record."""
_BEFORE_SPACE, _BEHIND_SPACE = (b" -", b",", b":"), (b"- ", b"'", b'"')
"""Metrics have a space here, which captures leave out at the end of a row."""


class WrappedDecoder(CollectedDecoder):
    """Decodes a console, whether a terminal wrapped its lines or not."""

    def __init__(self, *, patient: bool = True) -> None:
        """Begin.

        Args:
            patient: Whether the first record may wait for the next line, which tells whether
                records are wrapped.
        """
        super().__init__()
        self._patient = patient
        self._may_be_wrapped = True
        self._width = 0
        """Width of the widest row."""
        self._full: set[bytes] = set()
        """Rows of that width, without their digits."""
        self._goes_on = False
        """True once a record went on behind a full row."""
        self._knows_steps = False
        """True once a step line that might have gone on did not."""
        self._wider = 0
        """Rows that were wider than the terminal."""
        self._rows: list[bytes] = []
        """The rows so far of a line that may go on."""
        self._first = 0
        """The number of the first of them."""

    @property
    def note(self) -> str | None:
        """Say that lines were put together, and all else that is to be said."""
        if not self._is_wrapped:
            return super().note
        together = (
            f"lines that a terminal of {self._width} columns wrapped were put together"
        )
        return joined_notes(super().note, together)

    @property
    def _is_wrapped(self) -> bool:
        enough = self._goes_on or len(self._full) >= _ENOUGH
        return self._may_be_wrapped and enough and self._width >= _NARROWEST

    def last(self, line: bytes, number: int) -> Iterable[MetricRow | Record] | None:
        """Return the records of a line without an end, and of the rows before that it ends."""
        if not self._is_wrapped:
            return super().last(line, number)
        return [*self.decode(line, number), *self._completed()]

    def early(self, line: bytes) -> int:
        """Return how many bytes of an unfinished line can be decoded; of a row none."""
        if self._may_be_wrapped and _CONTROLS.search(line) is None:
            return 0
        return super().early(line)

    def held(self) -> Iterable[MetricRow | Record]:
        """Return the records that only wait for lines that may never come."""
        return [*self._completed(), *super().held()]

    def decode_all(self, text: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of complete lines."""
        out: list[MetricRow | Record] = []
        at = 0
        while at < len(text):
            if not self._may_be_wrapped and not self._rows:
                out += super().decode_all(text[at:], number)
                break
            end = text.index(b"\n", at)
            out += self.decode(text[at:end], number)
            at = end + 1
            number += 1
        return out

    def decode(self, line: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return the records of the line that a row completes."""
        if not self._may_be_wrapped:
            return super().decode(line, number)
        row = line.removesuffix(b"\r")
        self._look(row)
        self._may_be_wrapped &= self._is_wrapped or number <= _FIRST_ROWS
        out: list[MetricRow | Record] = []
        if not self._is_wrapped:
            self._knows_steps = self._knows_steps or bool(self._rows)
            out += self._completed()
            if not self._may_go_on(row):
                return [*out, *super().decode(line, number)]
        elif self._rows and not _continues(self._rows[-1], row, self._width):
            out += self._completed(cut=_begins(row))
        self._first = self._first if self._rows else number
        self._rows.append(row)
        if self._ends(row):
            out += self._completed()
        return out

    def _ends(self, row: bytes) -> bool:
        """Return whether a line ends with a row, as far as that row tells."""
        is_short = _characters(row) < self._width - 1
        return self._is_wrapped and (is_short or len(self._rows) >= _MOST_ROWS)

    def _look(self, row: bytes) -> None:
        """Find out from a row whether the log is wrapped, and how wide the terminal was."""
        if self._rows and not self._goes_on:
            self._goes_on = _is_within(self._rows[-1], row)
        width = _characters(row)
        if width > self._width:
            self._look_at_wider(width)
        if width == self._width and row[-1:].isalnum() and len(self._full) < _ENOUGH:
            self._full.add(_DIGITS.sub(b"", row))
        if self._width > _WIDEST or _NEVER_SHOWN.match(row) is not None:
            self._may_be_wrapped = False

    def _look_at_wider(self, width: int) -> None:
        """Learn from a row that is wider than all before; in a wrapped log it is a broken one."""
        self._wider += 1
        if self._is_wrapped and self._wider < _TOO_MANY and width > self._width + 1:
            return
        # Before a row that is wider by one the last may have lost a space.
        self._goes_on = self._goes_on and width == self._width + 1
        self._width, self._wider, self._full = width, 0, set()

    def _may_go_on(self, row: bytes) -> bool:
        """Return whether a row may be the first of a record: then the next one tells."""
        # A space may have been left out.
        full = _characters(row) + 1 >= max(self._width, _NARROWEST)
        if not (self._patient and self._may_be_wrapped and full):
            return False
        is_step = not self._knows_steps and STEP.search(row) is not None
        return is_step or row.rfind(b"{'") > row.rfind(b"}")

    def _together(self, *more: bytes) -> bytes:
        """Return the rows as one line."""
        *rows, end = *self._rows, *more
        full = (row + b" " * (self._width - _characters(row)) for row in rows)
        return b"".join((*full, end))

    def _completed(self, *, cut: bool = False) -> Iterable[MetricRow | Record]:
        """Return the records of the line that the rows so far are, if there are any.

        Args:
            cut: Whether another line begins behind them: then one that ends with a full row was
                cut, and its last metric may be, too.
        """
        if not self._rows:
            return ()
        text = self._together()
        cut = cut and _characters(self._rows[-1]) == self._width
        self._rows.clear()
        if cut and STEP.search(text) is not None:
            self._cut += 1
            text = without_last(text)
        return super().decode(text, self._first)


def _continues(before: bytes, row: bytes, width: int) -> bool:
    """Return whether a row goes on with the line of the one before."""
    if not row.strip() or _begins(row):
        return False
    lost_space = before.endswith(_BEFORE_SPACE) or row.startswith(_BEHIND_SPACE)
    return lost_space or _characters(before) == width


def _is_within(before: bytes, row: bytes) -> bool:
    """Return whether a record goes on that a terminal has broken; a program that breaks the lines
    of settings indents them.
    """
    if _begins(row):
        return False
    if STEP.search(before) is not None:
        return _STEP_GOES_ON.match(row) is not None
    indented = before.endswith(b",") and row.startswith(b" ")
    if indented and _METRIC.search(before) is None:
        return False
    return _DICT_GOES_ON.match(row) is not None


def _begins(row: bytes) -> bool:
    return _BEGINS.match(row) is not None


def _characters(row: bytes) -> int:
    if row.isascii():
        return len(row)
    return len(row.decode("utf-8", "replace"))
