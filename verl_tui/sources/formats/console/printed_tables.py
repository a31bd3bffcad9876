"""Tables of completions that TRL prints with rich, one sample a row.

GRPO's stand in a box titled `Step N` (trl/trainer/utils.py, `print_prompt_completions_sample`).
Those of PPO, and of RLOO up to 0.21, have no title: they follow the step whose model answers
prompts of the evaluation (`print_rich_table`). Cells are wrapped and cut for the width of a
terminal, so the texts are those printed, not all that was generated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import written_number
from verl_tui.sources.fields.rewards import RewardSum
from verl_tui.sources.fields.sample import plain_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.records import Sample

BEGINNINGS = ("╭", "┃ query ")
"""The first line of a table contains one of these."""
_BEGIN = pattern(
    "\\s*(?:╭(?:─)+ Step (?P<step>\\d{1,15}) (?:─)+╮"
    "|┃ query +┃ model response +┃ score +┃)\\s*".encode()
)
"""The line that begins a table: a box with a title, or the header of a table without one."""
_INSIDE = ("│", "├", "╰", "└")
"""A line of a table that has begun begins with one of these, the last one with the latter two."""
_TEXTS = ("prompt", "completion", "query", "model_response")
"""Columns that hold texts, whatever these look like."""
_LONGEST = 20_000
"""Lines after which an unfinished table is given up."""


class PrintedTables:
    """Reads the tables of one console."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._lines: list[str] = []
        """Those of the open table."""
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
            found = _BEGIN.fullmatch(part)
            if found is None:
                return None
            self._titled = found["step"] is not None
            self._step = int(found["step"]) if self._titled else step
        line = part.decode("utf-8", "replace").strip()
        if self._lines and not line.startswith(_INSIDE):
            return None
        self._lines.append(line)
        is_over = line.startswith(_INSIDE[2:]) or len(self._lines) > _LONGEST
        return self.held() if is_over else ()

    def held(self) -> Sequence[Sample]:
        """Return the samples of the open table, which may have no end."""
        lines, self._lines = self._lines, []
        if self._titled:  # the box around it
            lines = [line[1:-1].strip() for line in lines]
        samples = [one for row in _rows(lines) if (one := self._sample(row))]
        if not samples or samples == self._previous:
            return ()
        self._previous = samples
        return samples

    def _sample(self, row: Mapping[str, str]) -> Sample | None:
        record: dict[str, object] = {}
        for name, text in row.items():
            value = None if name in _TEXTS else written_number(text)
            record[name] = text if value is None else value
        return self._rewards.sample(record, self._step, validation=not self._titled)


def _rows(lines: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a table: the text of each cell by the name of its column."""
    names: list[str] = []
    row: list[list[str]] = []
    for line in (*lines, ""):
        if line.startswith("┃"):
            cells = [cell.strip() for cell in line.strip("┃").split("┃")]
            before = names or [""] * len(cells)  # long names are wrapped
            names = [a + b for a, b in zip(before, cells, strict=False)]
        elif not line.startswith("│"):
            if row:
                texts = map(_unwrapped, zip(*row, strict=True))
                yield dict(zip(map(plain_field, names), texts, strict=True))
            row = []
        else:
            cells = line.removeprefix("│").removesuffix("│").split("│")
            end = len(cells) - len(names) + 2  # a `│` that the model wrote
            cells[1:end] = ["│".join(cells[1:end])]
            if len(cells) == len(names):
                row.append([one.removeprefix(" ").removesuffix(" ") for one in cells])


def _unwrapped(lines: Iterable[str]) -> str:
    """Return the text of a cell; a line that fills the column was broken within a word."""
    text = ""
    for line in lines:
        words = line.rstrip()
        text += words if len(words) == len(line) else f"{words} "
    return text.strip()
