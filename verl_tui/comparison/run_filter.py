"""Conditions for runs, as people type them.

    reward > 0.6 and lr < 1e-5         numbers: < <= > >= = !=
    state = crash* or not val          a text, in which * stands for any; a run that has a `val`
    finding = kl-high                  one of several, as of the values of a list
    (ppo or "run 3") and kl < 0.1      parts of the name

What a run has no value of meets neither a comparison nor its contrary.
"""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.run_columns import ColumnValue, meant, unknown, value_of
from verl_tui.patterns import pattern
from verl_tui.runs.settings import number
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Moment
    from verl_tui.runs.run import Run

_WORD = r"(?<![^\s()<>=!\"])(?!(?:and|or|not)(?:[\s()]|$))[^\s()<>=!\"]+"
_OPERAND = pattern(rf'"[^"]*"|{_WORD}(?:\s+{_WORD})*')
_EQUALS = pattern(r"(?<![<>=!])=(?!=)")
CONDITION = pattern(r"[<>=]|(?:^|[\s(])(?:and|or|not)(?:[\s(]|$)")
"""What is in a condition, and not in a mere part of a name."""
_LONGEST = 300


def meeting(text: str, runs: Sequence[Run], at: Moment) -> tuple[list[Run], str]:
    """Return the runs that meet a condition, and how many have no value of what it compares.

    Raises:
        ValueError: It cannot be read, or compares what no run has; the message says what and where.
    """
    reader = _Reader(text, runs, at, {}, [])
    held = reader.read()
    counts = reader.lacking.items()
    note = ", ".join(f"{count} without {column}" for column, count in counts if count)
    return [run for run, holds in zip(runs, held, strict=True) if holds], note


class Awaited(NamedTuple):
    """A condition that is waited for, at one moment: whether it holds, and whether it still may
    before the run's last planned step; the columns that it compares and of which the run has no
    value; all that it compares, each with what.
    """

    holds: bool
    may: bool
    lacking: Sequence[str]
    asked: Sequence[tuple[str, str]]


def awaited(text: str, run: Run, at: Moment) -> Awaited:
    """Return whether a run meets a condition, in which a step is reached or passed (`step = 100`),
    and what no run has may come.

    Raises:
        ValueError: It cannot be read; the message says where.
    """
    now, later = (_Reader(text, [run], at, {}, [], one) for one in (_NOW, _LATER))
    (holds,), (may,) = now.read(), later.read()
    lacking = [column for column, count in now.lacking.items() if count]
    return Awaited(holds is True, may is not False, lacking, now.asked)


_NOW, _LATER = 1, 2
"""Of a condition that is waited for: what holds now, what is certain until the last step."""
_REACHED = {"==": ">=", "!=": "<"}


class _Reader(NamedTuple):
    """Says of a condition which runs meet it. It is read as an expression of Python, in which a
    name as wide as each operand stands in its place.
    """

    text: str
    runs: Sequence[Run]
    at: Moment
    lacking: dict[str, int]
    """What is compared, with the number of runs that have no value of it."""
    asked: list[tuple[str, str]]
    """What is compared, with what."""
    waits: int = 0
    """Whether it is waited for, and may name what is yet to come."""

    def read(self) -> list[bool | None]:
        """Return whether each run meets the condition, None where that is unknown."""
        if len(self.text) > _LONGEST:
            raise ValueError(f"longer than {_LONGEST} characters")
        text = _EQUALS.sub("==", self.text.strip())
        reader = self._replace(text=text)
        source = _OPERAND.sub(lambda found: "_" * len(found[0]), text)
        try:
            return reader.held(ast.parse(source, mode="eval").body)
        except SyntaxError as error:
            raise reader.wrong((error.offset or len(text) + 1) - 1) from None

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
        if self.waits == _LATER:
            return [None]
        if self.waits:
            self.lacking[word] = values.count(None)
        if self.waits or values.count(None) < len(values):
            return [value not in (None, "off", "") for value in values]
        return [part in run.name.casefold() for run in self.runs]

    def _compared(self, node: ast.Compare) -> list[bool | None]:
        left, right = node.left, node.comparators[0]
        column, wanted = meant(self.typed(left), self.typed(right))
        if node.comparators[1:]:
            raise self.wrong(right.end_col_offset or 0)
        self.asked.append((column, wanted))
        sign = self.text[left.end_col_offset : right.col_offset].strip()
        if self.waits and column == "step":
            sign = _REACHED.get(sign, sign)
        if not self.waits and (said := unknown(column, self.runs, self.at)):
            raise ValueError(said)
        limit = number(wanted)
        if sign not in ("==", "!=") and (limit is None or isnan(limit)):
            raise ValueError(f"“{wanted}” is no number")
        return self._meets(column, sign.replace("!=", "<>"), wanted)

    def _meets(self, column: str, takes: str, wanted: str) -> list[bool | None]:
        values = self._values(column)
        self.lacking[column] = values.count(None)
        held = [_compares(value, takes, wanted) for value in values]
        if self.waits != _LATER:
            return held
        if column != "step":
            return [None]
        # certain is what is so now and at the last step
        (step,), (total,) = values, self._values("total")
        now = _compares(step or 0.0, takes, wanted)
        return [now if now is _compares(total, takes, wanted) else None]


def _joined(held: Sequence[bool | None], *, decides: bool) -> bool | None:
    return decides if decides in held else None if None in held else not decides


def _compares(value: ColumnValue, takes: str, wanted: str) -> bool | None:
    limit = number(wanted)
    if isinstance(value, float) and limit is not None:
        order = (value > limit) - (value < limit)
        return None if isnan(value) else "=><"[order] in takes
    if value is None:
        return None
    parts = {text := str(value).casefold(), *text.split(", ")}
    return any(fnmatchcase(one, wanted.casefold()) for one in parts) is ("=" in takes)
