"""Prompts that were drawn at several steps, a row each: which are always right, which always wrong,
and which flip.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from math import isfinite, nan
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import clamp, finite, mean
from verl_tui.rendering.samples.listing import right_or_wrong
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import (
    Piece,
    Pieces,
    fit_left,
    joined,
    middle,
    paragraph,
)
from verl_tui.rendering.text.table import sized
from verl_tui.toml_tables import toml_table
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.on_demand.score_map import Cell, ScoreMap

_LEVELS = "▁▂▄▇"
_SHARE = 0.6
"""Share of a row that the steps take at most."""
_WIDE = 3
"""Most cells of a step."""
_NAMED, _LABELLED = 13, 60
"""Cells of a kind's name, and width from which it is there."""


_KINDS: dict[str, list[str]] = toml_table(__file__, "signs.toml")["prompts"]
"""What became of prompts -> its name where scores are not only right or wrong, its role, and a
pattern of the steps.
"""


class PromptRow(NamedTuple):
    """A prompt of several steps."""

    name: str
    words: str
    kind: str
    """What became of it: one of `_KINDS`."""
    cells: Mapping[int, Cell]
    """Step -> the responses there."""

    def nearest(self, step: int) -> int:
        """Return the nearest step at which it was drawn, the newer of two."""
        return min(self.cells, key=lambda one: (abs(one - step), -one))


class PromptTable:
    """The prompts of several steps, and what their scores mean."""

    def __init__(self, found: ScoreMap) -> None:
        """Sort the prompts by what became of them."""
        pasts: dict[str, dict[int, Cell]] = defaultdict(dict)
        steps = found.steps
        for step, cells in steps.items():
            for name, cell in cells.items():
                pasts[name][step] = cell
        self.steps = [*steps]
        """Steps that have been read, ascending."""
        self.different = len(pasts)
        """Number of prompts, also of those that were drawn once."""
        self.binary, self.low, self.high = _range({*found.scores})
        """Whether a score is only right or wrong, and what scores are at least and at most."""
        self.middle = (self.low + self.high) / 2
        """From here on a mean is right, or high: half of what scores span (heuristic)."""
        rows = (
            PromptRow(name, found.words.get(name, ""), self._kind(past), past)
            for name, past in pasts.items()
            if len(past) > 1
        )
        kinds = [*_KINDS]
        self.rows = sorted(rows, key=lambda one: (kinds.index(one.kind), one.words))
        """Prompts that were drawn at several steps."""

    def _kind(self, cells: Mapping[int, Cell]) -> str:
        means = "".join(self._letter(cells[step].mean) for step in sorted(cells))
        return next(k for k, of in _KINDS.items() if re.fullmatch(of[-1], means))

    def _letter(self, value: float) -> str:
        if not isfinite(value) or self.low == self.high:
            return "=" * isfinite(value)
        letter = "r" if value >= self.middle else "w"
        partly = self.binary and self.low < value < self.high
        return letter if partly else letter.upper()

    def kind_words(self, kind: str) -> str:
        """Return the name of a kind of prompts."""
        return kind if self.binary else _KINDS[kind][0]

    @property
    def counts(self) -> str:
        """How many prompts there are, and how many of each kind."""
        numbers = Counter(row.kind for row in self.rows)
        kinds = (f"{numbers[k]:,} {self.kind_words(k)}" for k in _KINDS if numbers[k])
        return ", ".join((f"{len(self.rows):,}", *kinds))

    def mark(self, *cells: Cell) -> Piece:
        """Return a sign for the responses of a prompt at a step, or at several; a blank where it
        was not drawn.
        """
        means = finite(cell.mean for cell in cells)
        if not means:
            return "·" if cells else " ", "dim"
        value = mean(means)
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        if self.binary and share in (0, 1):
            return ("✓", "good") if share else ("✗", "critical")
        role = "good" if value >= self.middle else "warning"
        return _LEVELS[clamp(int(4 * share), 0, 3)], role

    def detail(self, past: PromptRow, step: int, width: int) -> list[Pieces]:
        """Return what the responses to a prompt at a step have scored, and the prompt."""
        cell = past.cells[step]
        said = f"mean {compact(cell.mean)}" if isfinite(cell.mean) else "no score"
        said = f" {said} of {counted(cell.responses, 'response')}"
        row = [(f"step {step} ", "strong"), self.mark(cell), (said, "")]
        return [row, *paragraph(past.words, "prompt", width)]


def _range(scores: set[float]) -> tuple[bool, float, float]:
    if right_or_wrong(scores):
        return True, min(0.0, *scores), 1.0
    return False, min(scores, default=nan), max(scores, default=nan)


class PromptColumns:
    """The steps of a table in the columns that fit a width."""

    def __init__(self, table: PromptTable, width: int, step: int) -> None:
        """Share the room, of more steps than fit several to a column; `step` has the cursor."""
        self._table, self._step = table, step
        room = max(1, int(width * _SHARE))
        self._size = size = -(-len(table.steps) // room)
        starts = range(0, len(table.steps), size)
        self._columns = [table.steps[at : at + size] for at in starts]
        self._cells = min(_WIDE, room // len(starts))
        self._kind = _NAMED if width >= _LABELLED else 0
        self._words = max(0, width - len(starts) * self._cells - self._kind - 1)

    def heading(self) -> Pieces:
        """Return the titles, and the first and the last step over their columns."""
        cells = len(self._columns) * self._cells
        first, last = (str(self._table.steps[at]) for at in (0, -1))
        axis = f"{first}{last:>{max(0, cells - len(first))}}"
        if len(first) + len(last) >= cells:
            axis = fit_left(last, cells)
        return [(f"{'':{self._kind}}{'prompt':{self._words + 1}}{axis}", "dim")]

    def row(self, past: PromptRow, *, chosen: bool) -> Pieces:
        """Return a prompt's row, with the cursor in the chosen one."""
        kind = (self._table.kind_words(past.kind), _KINDS[past.kind][1])
        row = sized([kind] * bool(self._kind), self._kind)
        words = (middle(past.words, self._words), "prompt")
        row += [*sized([words], self._words), (" ", "")]
        for steps in self._columns:
            drawn = [past.cells[step] for step in steps if step in past.cells]
            sign, role = self._table.mark(*drawn)
            row.append((sign, "here" if chosen and self._step in steps else role))
            row.append((" " * (self._cells - 1), ""))
        return joined(row)


def map_words(found: ScoreMap, table: PromptTable) -> str:
    """Return what is said below the rows: how much has been read, and what signs stand for."""
    read = read_words(found)
    word = "right" if table.binary else "high"
    half = f"{word} from {compact(table.middle)} on, half the range of scores"
    return " · ".join([read] * bool(read) + [half] * (table.low < table.high))


def read_words(found: ScoreMap) -> str:
    """Say how many steps have been read, if these are not all."""
    count, failed = len(found.steps), len(found.failed)
    words = f"the newest {count:,} steps of {found.there:,}" * (count < found.there)
    if found.waits():
        words = f"reading {count:,} of {len(found.wanted):,} steps"
    if failed:
        words += f"{', ' * bool(words)}{counted(failed, 'step')} cannot be read whole"
    return words


def why_no_map(found: ScoreMap, table: PromptTable, kind: str) -> str:
    """Say why no prompt of training, or of validation, has a row."""
    read = read_words(found)
    if found.waits():
        return f"{read} …"
    if len(table.steps) < 2:
        return f"A map of prompts takes samples of at least two {kind} steps."
    if not table.different:
        return f"The {kind} samples in the log state no prompts."
    prompts = counted(table.different, f"{kind} prompt")
    return f"None of {prompts} comes again in {read or f'{found.there:,} steps'}."
