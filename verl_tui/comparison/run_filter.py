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
_ORDERS: dict[type[ast.cmpop], tuple[int, ...]]
_ORDERS = {ast.Lt: (-1,), ast.LtE: (-1, 0), ast.Gt: (1,), ast.GtE: (1, 0)}
"""What a comparison takes: less (-1), the same, more (1)."""
_TAKES = {**_ORDERS, ast.Eq: (0,), ast.NotEq: (-1, 1)}


class RunFilter(NamedTuple):
    """A condition for runs. It is read as an expression of Python, in which a name as wide as each
    operand stands in its place.
    """

    text: str
    tree: ast.expr
    known: frozenset[str]
    """The operands that some run has a value of."""

    def holds(self, run: Run, at: Moment) -> bool:
        """Return whether a run meets it."""
        return self._held(self.tree, run, at) is True

    def compared(self) -> list[str]:
        """Return what is compared, each once."""
        parts = [one for one in ast.walk(self.tree) if isinstance(one, ast.Compare)]
        return [*dict.fromkeys(self.typed(one.left) for one in parts)]

    def lacking(self, runs: Sequence[Run], at: Moment) -> str:
        """Count the runs that have no value of what is compared, empty for none."""
        counts = (
            (sum(value_of(one, run, at) is None for run in runs), one)
            for one in self.compared()
        )
        return ", ".join(f"{count} without {one}" for count, one in counts if count)

    def typed(self, node: ast.expr) -> str:
        """Return an operand as it was typed."""
        if not isinstance(node, ast.Name):
            raise self.wrong(node.col_offset)
        return self.text[node.col_offset : node.end_col_offset].strip('"')

    def wrong(self, place: int) -> ValueError:
        """Return an error at a place."""
        rest = one_line(self.text[place:], 30)
        return ValueError(f"not understood from “{rest}” on" if rest else "unfinished")

    def _held(self, node: ast.expr, run: Run, at: Moment) -> bool | None:
        """Return whether a part of it holds, None where that is unknown."""
        if isinstance(node, ast.BoolOp):
            held = [self._held(one, run, at) for one in node.values]
            decides = isinstance(node.op, ast.Or)
            return decides if decides in held else None if None in held else not decides
        if isinstance(node, ast.UnaryOp):
            inner = self._held(node.operand, run, at)
            return None if inner is None else not inner
        title = self.typed(getattr(node, "left", node))
        value = value_of(title, run, at)
        if isinstance(node, ast.Compare):
            wanted = self.typed(node.comparators[0])
            return _compares(value, _TAKES[type(node.ops[0])], wanted)
        if title in self.known:
            return value not in (None, "off")
        return title.casefold() in run.name.casefold()


def _compares(value: ColumnValue, takes: Sequence[int], wanted: str) -> bool | None:
    limit = number(wanted)
    if isinstance(value, float) and limit is not None:
        return None if isnan(value) else (value > limit) - (value < limit) in takes
    if value is None:
        return None
    return fnmatchcase(str(value).casefold(), wanted.casefold()) is (0 in takes)


def parse_filter(text: str, runs: Sequence[Run], at: Moment) -> RunFilter:
    """Return the condition that a text states.

    Raises:
        ValueError: It cannot be read, or compares what no run has; the message says what and where.
    """
    text = _EQUALS.sub("==", text.strip()[:_LONGEST])
    found = RunFilter(text, ast.Name("", lineno=1, col_offset=0), frozenset())
    try:
        source = _OPERAND.sub(lambda found: "_" * len(found[0]), text)
        found = found._replace(tree=ast.parse(source, mode="eval").body)
    except SyntaxError as error:
        raise found.wrong((error.offset or len(text) + 1) - 1) from None
    parts = [node for node in ast.walk(found.tree) if isinstance(node, ast.expr)]
    for node in parts:
        _check(found, node, runs, at)
    operands = {found.typed(node) for node in parts if isinstance(node, ast.Name)}
    known = (one for one in operands if not unknown(one, runs, at))
    return found._replace(known=frozenset(known))


def _check(found: RunFilter, node: ast.expr, runs: Sequence[Run], at: Moment) -> None:
    """Refuse what is no part of a condition, and a comparison of what no run has."""
    if isinstance(node, ast.Compare):
        value, *more = node.comparators
        if more:
            raise found.wrong(value.end_col_offset or 0)
        if said := unknown(found.typed(node.left), runs, at):
            raise ValueError(said)
        if type(node.ops[0]) in _ORDERS and number(found.typed(value)) is None:
            raise ValueError(f"“{found.typed(value)}” is no number")
    elif not isinstance(node, ast.BoolOp | ast.UnaryOp | ast.Name):
        raise found.wrong(node.col_offset)
