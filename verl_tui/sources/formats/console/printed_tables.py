"""Tables of completions that TRL prints with rich, one sample a row.

GRPO's stand in a box titled `Step N` (trl/trainer/utils.py, `print_prompt_completions_sample`).
Those of PPO, and of RLOO up to 0.21, have no title: they follow the step whose model answers
prompts of the evaluation (`print_rich_table`). Cells are wrapped and cut for the width of a
terminal, so the texts are those printed, not all that was generated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.sample import plain_field

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class TableBlock:
    """Collects the lines of a table."""

    def __init__(self) -> None:
        self.begun = False
        """True if a table has begun and not ended."""
        self._step: int | None = None
        self._titled = False
        self._names: list[str] = []
        self._cells: list[list[str]] = []
        """Lines of each cell of the open row."""
        self._samples: list[Sample] = []
        self._previous: list[Sample] = []
        """Samples of the previous table: a trainer prints its last table twice."""
        self._rewards = RewardSum()
        self._lines = 0

    @property
    def note(self) -> str | None:
        """Say how rewards were summed."""
        return self._rewards.note

    def holds(self, part: bytes) -> bool:
        """Return True for a line of a table."""
        if self.begun:
            return _box(part) is not None
        return _begin_of(part) is not None

    def feed(self, part: bytes, step: int | None) -> Sequence[Sample]:
        """Take a line of a table; return its samples with its last one.

        Args:
            part: The line.
            step: Last step seen, to which a table without a title belongs.
        """
        if not self.begun:
            self._begin(part, step)
            return ()
        self._lines += 1
        box = (_box(part) or "").strip()
        if box.startswith(_ENDS) or self._lines > _LONGEST:
            return self.held()
        inner = box[1:-1].strip() if self._titled else box
        if inner.startswith("┃"):
            self._header(inner)
        elif inner.startswith("│"):
            self._row(inner)
        else:
            self._close()
        return ()

    def held(self) -> Sequence[Sample]:
        """Return the samples of the open table, which may have no end."""
        self._close()
        samples = self._samples
        self._samples = []
        self.begun = False
        if not samples or samples == self._previous:
            return ()
        self._previous = samples
        return samples

    def _begin(self, part: bytes, step: int | None) -> None:
        found = _begin_of(part)
        header = found["header"] if found is not None else None
        self.begun = True
        self._titled = header is None
        self._step = int(found["step"]) if found is not None and self._titled else step
        self._names = []
        self._cells = []
        self._lines = 0
        if header is not None:
            self._header(header.decode())

    def _header(self, line: str) -> None:
        """Take a line of the header; long names are wrapped."""
        cells = [cell.strip() for cell in line.strip("┃").split("┃")]
        if len(self._names) == len(cells):
            cells = [a + b for a, b in zip(self._names, cells, strict=True)]
        self._names = cells

    def _row(self, line: str) -> None:
        """Take a line of a row; a `│` that the model wrote belongs to the second cell."""
        cells = line.removeprefix("│").removesuffix("│").split("│")
        end = len(cells) - len(self._names) + 2
        if end > 2:
            cells = [cells[0], "│".join(cells[1:end]), *cells[end:]]
        if len(cells) != len(self._names) or len(self._names) < 2:
            return
        self._cells = self._cells or [[] for _ in cells]
        for lines, cell in zip(self._cells, cells, strict=True):
            lines.append(cell[1:-1] if cell.startswith(" ") else cell)

    def _close(self) -> None:
        """Turn the finished row into a sample."""
        cells = self._cells
        self._cells = []
        if not cells:
            return
        record: dict[str, Any] = {}
        for name, lines in zip(map(plain_field, self._names), cells, strict=True):
            text = _unwrapped(lines)
            record[name] = text if name in _TEXTS else _value(text)
        sample = self._rewards.sample(record, self._step, validation=not self._titled)
        if sample is not None:
            self._samples.append(sample)


def _box(part: bytes) -> str | None:
    """Return what a line of a table holds, None for another line."""
    places = [part.find(sign, 0, _LEAD) for sign in _INSIDE]
    found = [at for at in places if at >= 0]
    if not found:
        return None
    return part[min(found) :].decode("utf-8", "replace")


def _begin_of(part: bytes) -> re.Match[bytes] | None:
    """Return what a line that begins a table says."""
    if _TOP not in part and _HEADER not in part:
        return None
    return _BEGIN.fullmatch(part)


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
