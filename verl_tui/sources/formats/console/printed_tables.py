"""Tables of completions that TRL prints with rich: a box titled `Step N`, one sample a row.

Cells are wrapped and cut to a few lines for the width of a terminal (trl/trainer/utils.py,
`print_prompt_completions_sample`), so the texts are those printed, not all that was generated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.sample import plain_field, read_sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import Sample

BEGIN = "╭"
"""The first line of a table begins with it."""
_TOP = BEGIN.encode()
_SIDE = "│".encode()
_BOTTOM = "╰".encode()
_TITLE = pattern(r"╭─+ Step (\d{1,15}) ─+╮\s*")
_LEAD = 160
"""Bytes that may stand before each line of a table: containers and schedulers put their names and
the time there.
"""
_LONGEST = 20_000
"""Lines after which an unfinished table is given up."""


class TableBlock:
    """Collects the lines of a table."""

    def __init__(self) -> None:
        self._step: int | None = None
        """Step of the open table, None outside of one."""
        self._names: list[str] = []
        self._cells: list[list[str]] = []
        """Lines of each cell of the open row."""
        self._samples: list[Sample] = []
        self._previous: list[Sample] = []
        """Samples of the previous table: a trainer prints its last table twice."""
        self._rewards = RewardSum()
        self._lines = 0

    @property
    def begun(self) -> bool:
        """True if a table has begun and not ended."""
        return self._step is not None

    @property
    def note(self) -> str | None:
        """Say how rewards were summed."""
        return self._rewards.note

    def holds(self, part: bytes) -> bool:
        """Return True for a line of a table."""
        if self._step is not None:
            return _box(part, (_SIDE, _BOTTOM)) is not None
        return _title(part) is not None

    def feed(self, part: bytes) -> Sequence[Sample]:
        """Take a line of a table; return its samples with its last one."""
        if self._step is None:
            self._begin(part)
            return ()
        self._lines += 1
        box = _box(part, (_SIDE, _BOTTOM)) or ""
        if box.startswith("╰") or self._lines > _LONGEST:
            return self.held()
        inner = box.strip()[1:-1].strip()
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
        self._step = None
        self._names = []
        if not samples or samples == self._previous:
            return ()
        self._previous = samples
        return samples

    def _begin(self, part: bytes) -> None:
        self._step = _title(part)
        self._names = []
        self._cells = []
        self._lines = 0

    def _header(self, line: str) -> None:
        """Take a line of the header; long names are wrapped."""
        cells = [cell.strip() for cell in line.strip("┃").split("┃")]
        if len(self._names) == len(cells):
            cells = [a + b for a, b in zip(self._names, cells, strict=True)]
        self._names = cells

    def _row(self, line: str) -> None:
        """Take a line of a row; a `│` that the model wrote belongs to the second cell."""
        cells = line.removeprefix("│").removesuffix("│").split("│")
        beyond = len(cells) - len(self._names)
        if beyond:
            second = "│".join(cells[1 : beyond + 2])
            cells = [*cells[:1], second, *cells[3 - len(self._names) :]]
        if len(cells) != len(self._names) or len(cells) < 2:
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
            record[name] = text if name in ("prompt", "completion") else _value(text)
        sample = read_sample(self._rewards.complete(record), self._step)
        if sample is not None:
            self._samples.append(sample)


def _box(part: bytes, corners: Sequence[bytes]) -> str | None:
    """Return what stands in a line from the first of these characters on, None without them."""
    places = [part.find(corner, 0, _LEAD) for corner in corners]
    found = [at for at in places if at >= 0]
    if not found:
        return None
    return part[min(found) :].decode("utf-8", "replace")


def _title(part: bytes) -> int | None:
    """Return the step of the table that a line begins, None if it begins none."""
    box = _box(part, (_TOP,))
    if box is None:
        return None
    title = _TITLE.fullmatch(box)
    if title is None:
        return None
    return int(title[1])


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
