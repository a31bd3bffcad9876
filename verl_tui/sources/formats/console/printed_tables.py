"""Tables of completions that TRL prints with rich, one sample a row.

GRPO's stand in a box titled `Step N` (trl/trainer/utils.py, `print_prompt_completions_sample`).
Those of PPO, and of RLOO up to 0.21, have no title: they follow the step whose model answers
prompts of the evaluation (`print_rich_table`). Cells are wrapped and cut for the width of a
terminal, so the texts are those printed, not all that was generated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.sample import plain_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.records import Sample

BEGINNINGS = ("╭", "┃ query ")
"""The first line of a table contains one of these."""
_TOP, _HEADER = (beginning.encode() for beginning in BEGINNINGS)
_ENDS = ("╰", "└")
_INSIDE = tuple(sign.encode() for sign in ("│", "├", *_ENDS))
"""A line of a table that has begun contains one of these."""
_BEGIN = pattern(
    (
        ".{0,160}?(?:╭(?:─)+ Step (?P<step>\\d{1,15}) (?:─)+╮"
        "|(?P<header>┃ query +┃ model response +┃ score +┃))\\s*"
    ).encode(),
    re.DOTALL,
)
"""The line that begins a table, behind the names of containers and the like: a box with a title, or
the header of a table without one.
"""
_TEXTS = ("prompt", "completion", "query", "model_response")
"""Columns that hold texts, whatever these look like."""
_LEAD = 160
"""Bytes that may stand before each line of a table: containers and schedulers put their names and
the time there.
"""
_LONGEST = 20_000
"""Lines after which an unfinished table is given up."""


class PrintedTables:
    """Reads the tables of one console."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._lines: list[str] = []
        """Those of the open table, without what stands before it."""
        self._titled = False
        self._previous: Sequence[Sample] = ()
        """Samples of the previous table: a trainer prints its last table twice."""
        self._rewards = RewardSum()

    @property
    def note(self) -> str | None:
        """Say how rewards were summed."""
        return self._rewards.note

    @property
    def begun(self) -> bool:
        """True if a table has begun and not ended."""
        return bool(self._lines)

    def feed(self, part: bytes, step: int | None) -> Sequence[Sample] | None:
        """Take a line; return the samples that it completes, None if it belongs to no table.

        Args:
            part: The line.
            step: Last step seen, to which a table without a title belongs.
        """
        if not self._lines:
            return () if self._begins(part, step) else None
        at = min(
            (at for sign in _INSIDE if (at := part.find(sign, 0, _LEAD)) >= 0),
            default=-1,
        )
        if at < 0:
            return None
        self._lines.append(part[at:].decode("utf-8", "replace").strip())
        is_over = self._lines[-1].startswith(_ENDS) or len(self._lines) > _LONGEST
        return self.held() if is_over else ()

    def _begins(self, part: bytes, step: int | None) -> bool:
        found = None
        if _TOP in part or _HEADER in part:
            found = _BEGIN.fullmatch(part)
        if found is None:
            return False
        self._titled = found["step"] is not None
        self._step = int(found["step"]) if self._titled else step
        self._lines = [(found["header"] or b"").decode()]
        return True

    def held(self) -> Sequence[Sample]:
        """Return the samples of the open table, which may have no end."""
        lines, self._lines = self._lines, []
        if self._titled:  # the box around it
            lines = [line[1:-1].strip() for line in lines]
        rows = (self._sample(row) for row in _rows(lines))
        samples = [one for one in rows if one is not None]
        if not samples or samples == self._previous:
            return ()
        self._previous = samples
        return samples

    def _sample(self, row: Iterable[tuple[str, Sequence[str]]]) -> Sample | None:
        texts = ((plain_field(name), _unwrapped(lines)) for name, lines in row)
        record = {
            name: text if name in _TEXTS else _value(text) for name, text in texts
        }
        return self._rewards.sample(record, self._step, validation=not self._titled)


def _rows(lines: Sequence[str]) -> Iterator[Iterable[tuple[str, list[str]]]]:
    """Yield the rows of a table: the names of its columns with the lines of each cell."""
    names: list[str] = []
    row: list[list[str]] = []
    for line in (*lines, ""):
        if line.startswith("┃"):
            names = _header(line, names)
        elif not line.startswith("│"):
            if row:
                yield zip(names, row, strict=True)
            row = []
        elif fields := _cells(line, len(names)):
            row = row or [[] for _ in names]
            for written, cell in zip(row, fields, strict=True):
                written.append(cell)


def _header(line: str, names: Sequence[str]) -> list[str]:
    """Return the names of the columns behind a line of the header; long names are wrapped."""
    cells = [cell.strip() for cell in line.strip("┃").split("┃")]
    if len(names) != len(cells):
        return cells
    return [a + b for a, b in zip(names, cells, strict=True)]


def _cells(line: str, count: int) -> Sequence[str]:
    """Return the cells of a line; a `│` that the model wrote belongs to the second one."""
    cells = line.removeprefix("│").removesuffix("│").split("│")
    end = len(cells) - count + 2
    if end > 2:
        cells = [cells[0], "│".join(cells[1:end]), *cells[end:]]
    if len(cells) != count or count < 2:
        return ()
    return [cell[1:-1] if cell.startswith(" ") else cell for cell in cells]


def _unwrapped(lines: Sequence[str]) -> str:
    """Return the text of a cell; a line that fills the column was broken within a word."""
    text = ""
    for line in lines:
        words = line.rstrip()
        text += words if len(words) == len(line) else f"{words} "
    return text.strip()


def _value(text: str) -> float | str | None:
    try:
        return float(text)
    except ValueError:
        return None if text in ("", "None") else text
