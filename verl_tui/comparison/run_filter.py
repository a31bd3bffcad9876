"""Conditions for runs, as people type them.

    reward > 0.6 and lr < 1e-5         numbers: < <= > >= = !=
    state = crash* or not val          a text, in which * stands for any; a run that has a `val`
    (ppo or "run 3") and kl < 0.1      parts of the name

What a run has no value of meets neither a comparison nor its contrary.
"""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.run_columns import unknown, value_of
from verl_tui.patterns import pattern
from verl_tui.runs.settings import number
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.comparison.run_columns import ColumnValue
    from verl_tui.health.finding import Moment
    from verl_tui.runs.run import Run

_WORD = r"(?<![^\s()<>=!\"])(?!(?:and|or|not)(?:[\s()]|$))[^\s()<>=!\"]+"
_OPERAND = pattern(rf'"[^"]*"|{_WORD}(?:\s+{_WORD})*')
_EQUALS = pattern(r"(?<![<>=!])=(?!=)")
CONDITION = pattern(r"[<>=]|(?:^|[\s(])(?:and|or|not)(?:[\s(]|$)")
"""What is in a condition, and not in a mere part of a name."""
_LONGEST = 300


def meeting(text: str, runs: Sequence[Run], at: Moment) -> tuple[list[Run], str]:
    """Return the runs that meet a condition, and how many have no value of what it compares. It is
    read as an expression of Python, in which a name as wide as each operand stands in its place.

    Raises:
        ValueError: It cannot be read, or compares what no run has; the message says what and where.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"longer than {_LONGEST} characters")
    text = _EQUALS.sub("==", text.strip())
    source = _OPERAND.sub(lambda found: "_" * len(found[0]), text)
    reader = _Reader(text, runs, at, {})
    try:
        held = reader.held(ast.parse(source, mode="eval").body)
    except SyntaxError as error:
        raise reader.wrong((error.offset or len(text) + 1) - 1) from None
    counts = reader.lacking.items()
    note = ", ".join(f"{count} without {column}" for column, count in counts if count)
    return [run for run, holds in zip(runs, held, strict=True) if holds], note


class _Reader(NamedTuple):
    """Says of parts of a condition which runs meet them."""

    text: str
    runs: Sequence[Run]
    at: Moment
    lacking: dict[str, int]
    """What is compared, with the number of runs that have no value of it."""

    def wrong(self, place: int) -> ValueError:
        """Return an error at a place."""
        rest = one_line(self.text[place:], 30)
        return ValueError(f"not understood from “{rest}” on" if rest else "unfinished")

    def typed(self, node: ast.expr) -> str:
        """Return an operand as it was typed."""
        if not isinstance(node, ast.Name):
            raise self.wrong(node.col_offset)
        return self.text[node.col_offset : node.end_col_offset].strip('"')

    def held(self, node: ast.expr) -> list[bool | None]:
        """Return whether each run meets a part, None where that is unknown."""
        if isinstance(node, ast.BoolOp):
            parts = zip(*map(self.held, node.values), strict=True)
            return [
                _joined(part, decides=isinstance(node.op, ast.Or)) for part in parts
            ]
        if isinstance(node, ast.UnaryOp):
            return [None if one is None else not one for one in self.held(node.operand)]
        if isinstance(node, ast.Compare):
            return self._compared(node)
        return self._named(self.typed(node))

    def _values(self, word: str) -> list[ColumnValue]:
        return [value_of(word, run, self.at) for run in self.runs]

    def _named(self, word: str) -> list[bool | None]:
        values, part = self._values(word), word.casefold()
        if values.count(None) < len(values):
            return [value not in (None, "off") for value in values]
        return [part in run.name.casefold() for run in self.runs]

    def _compared(self, node: ast.Compare) -> list[bool | None]:
        left, right = node.left, node.comparators[0]
        column, wanted = self.typed(left), self.typed(right)
        if node.comparators[1:]:
            raise self.wrong(right.end_col_offset or 0)
        if said := unknown(column, self.runs, self.at):
            raise ValueError(said)
        sign = self.text[left.end_col_offset : right.col_offset].strip()
        if sign not in ("==", "!=") and number(wanted) is None:
            raise ValueError(f"“{wanted}” is no number")
        values = self._values(column)
        self.lacking[column] = values.count(None)
        return [_compares(value, sign.replace("!=", "<>"), wanted) for value in values]


def _joined(held: Sequence[bool | None], *, decides: bool) -> bool | None:
    return decides if decides in held else None if None in held else not decides


def _compares(value: ColumnValue, takes: str, wanted: str) -> bool | None:
    limit = number(wanted)
    if isinstance(value, float) and limit is not None:
        order = (value > limit) - (value < limit)
        return None if isnan(value) else "=><"[order] in takes
    if value is None:
        return None
    return fnmatchcase(str(value).casefold(), wanted.casefold()) is ("=" in takes)
