"""Tables of completions that TRL prints on the console with rich: a box with the title `Step N`, a
sample a row.

Its cells are wrapped, and cut to a few lines, for the width of a terminal (trl/trainer/utils.py,
`print_prompt_completions_sample`), so the texts are what was printed, not all that was generated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.sample import plain_field, read_sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import Sample

_TOP, _SIDE, _BOTTOM = (sign.encode() for sign in "╭│╰")
_TITLE = re.compile(r"╭─+ Step (\d{1,15}) ─+╮\s*")
_LONGEST = 20_000
"""Lines after which a table that did not end is given up."""


class TableBlock:
    """Collects the lines of a table."""

    def __init__(self) -> None:
        self._step: int | None = None
        """Of the table that has begun."""
        self._names: list[str] = []
        self._cells: list[list[str]] = []
        """Lines of each cell of the row that has begun."""
        self._samples: list[Sample] = []
        self._told: list[Sample] = []
        """The last table: a trainer prints the one of its last step once more at its end."""
        self._rewards = RewardSum()
        self._lines = 0

    @property
    def begun(self) -> bool:
        """Whether a table has begun and not ended."""
        return self._step is not None

    @property
    def note(self) -> str | None:
        """Return how rewards were added."""
        return self._rewards.note

    def holds(self, part: bytes) -> bool:
        """Tell whether a line is one of a table."""
        if self._step is not None:
            return part.startswith((_SIDE, _BOTTOM))
        return (
            part.startswith(_TOP) and _TITLE.fullmatch(part.decode("utf-8", "replace")) is not None
        )

    def feed(self, part: bytes) -> Sequence[Sample]:
        """Take a line of a table; return its samples with its last one."""
        if self._step is None:
            self._begin(part)
            return ()
        self._lines += 1
        if part.startswith(_BOTTOM) or self._lines > _LONGEST:
            return self.held()
        inner = part.decode("utf-8", "replace").strip()[1:-1].strip()
        if inner.startswith("┃"):
            self._header(inner)
        elif inner.startswith("│"):
            self._row(inner)
        else:
            self._close()
        return ()

    def held(self) -> Sequence[Sample]:
        """Return the samples of a table that may have no end."""
        self._close()
        samples, self._samples = self._samples, []
        self._step, self._names = None, []
        if not samples or samples == self._told:
            return ()
        self._told = samples
        return samples

    def _begin(self, part: bytes) -> None:
        title = _TITLE.fullmatch(part.decode("utf-8", "replace"))
        self._step = int(title[1]) if title is not None else None
        self._names, self._cells, self._lines = [], [], 0

    def _header(self, line: str) -> None:
        """Take a line of the header; long names are wrapped, too."""
        cells = [cell.strip() for cell in line.strip("┃").split("┃")]
        more = len(self._names) == len(cells)
        self._names = (
            [f"{a}{b}" for a, b in zip(self._names, cells, strict=True)] if more else cells
        )

    def _row(self, line: str) -> None:
        """Take a line of a row: columns are as wide as the header's, whatever the model wrote
        between.
        """
        cells = line.removeprefix("│").removesuffix("│").split("│")
        if len(cells) != len(self._names):
            cells = [
                *cells[:1],
                "│".join(cells[1 : len(cells) - len(self._names) + 2]),
                *cells[3 - len(self._names) :],
            ]
        if len(cells) != len(self._names) or len(self._names) < 2:
            return
        self._cells = self._cells or [[] for _ in cells]
        for lines, cell in zip(self._cells, cells, strict=True):
            lines.append(cell[1:-1] if cell.startswith(" ") else cell)

    def _close(self) -> None:
        """Take the row that has ended as a sample."""
        cells, self._cells = self._cells, []
        if not cells:
            return
        record: dict[str, Any] = {}
        for name, lines in zip(self._names, cells, strict=True):
            text = _unwrapped(lines)
            record[plain_field(name)] = (
                text if plain_field(name) in ("prompt", "completion") else _value(text)
            )
        sample = read_sample(self._rewards.complete(record), self._step)
        if sample is not None:
            self._samples.append(sample)


def _unwrapped(lines: Sequence[str]) -> str:
    """Return the text of a cell: a line that fills the column was broken within a word."""
    text = ""
    for line in lines:
        said = line.rstrip()
        text += said if len(said) == len(line) else f"{said} "
    return text.strip()


def _value(text: str) -> float | str | None:
    try:
        return float(text)
    except ValueError:
        return None if text in ("", "None") else text
