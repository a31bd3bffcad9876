"""Columns of a table of runs, by the words that people type: `reward`, `best val`, `reward@200`,
`lr`, `state`; and conditions for runs.

    reward > 0.6 and lr < 1e-5         numbers: < <= > >= = !=
    state = crash* or not val          a text, in which * stands for any; a run that has a `val`
    finding = kl-high                  one of several, as of the values of a list
    (ppo or "run 3") and kl < 0.1      parts of the name

A name is what is known of every run, an indicator, a metric as the log has it, or a setting: the
first of these that a run has. What a run has no value of meets neither a comparison nor its
contrary.
"""

from __future__ import annotations

import ast
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_tui.health.finding import SEVERITIES, Moment, Verdict, weighty
from verl_tui.indicators import INDICATORS, factor
from verl_tui.means import finite, mean
from verl_tui.metrics import describe
from verl_tui.patterns import pattern
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.settings import number
from verl_tui.runs.views.identity import short, stated_as
from verl_tui.runs.views.provenance import KL_INDICATORS, shown_kl
from verl_tui.runs.views.state import state, state_words
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.runs.run import Run
    from verl_tui.runs.series import Series

ColumnValue: TypeAlias = "float | str | None"
"""None where a run has no value."""
_OwnColumn: TypeAlias = "Callable[[Run, Moment], ColumnValue]"


def _judged(of: Callable[[Verdict], ColumnValue]) -> _OwnColumn:
    """Return what is known of a run that was judged."""

    def known(run: Run, at: Moment) -> ColumnValue:
        verdict = at.verdicts.get(run.name)
        return of(verdict) if verdict else None

    return known


_OWN: Mapping[str, _OwnColumn] = {
    "name": lambda run, _: run.name,
    "state": lambda run, at: state_words(run, state(run, at.now)),
    "step": lambda run, _: None if run.step is None else float(run.step),
    "total": lambda run, _: None if run.total_steps is None else float(run.total_steps),
    "findings": _judged(lambda one: float(len(weighty(one.primary)))),
    "finding": _judged(lambda one: ", ".join(each.id for each in one.findings)),
    "severity": _judged(
        lambda one: max((float(each.severity) for each in one.primary), default=-1.0)
    ),
}
_ENDED = ("ended", "ended?", "ended*", "stopped", "stopped?")
_MEANT = {
    ("finding", word): ("severity", str(int(one))) for word, one in SEVERITIES.items()
}
"""What is asked of a column -> the column and the value that say it."""
_MEANT |= {("state", word): ("state", "stopped*") for word in _ENDED}
_SWITCHES = {"true": "on", "false": "off"}
_SHORT = {"val": "validation", "length": "response_length", "grad": "grad_norm"} | {
    "loss": "policy_loss"
}
"""Words for indicators beside their ids and labels; `kl` is the one that the list of runs shows."""
_FORM = pattern(r"(?:(last|best|max|min) )?((?s:.*))")
_AT = pattern(r"(.+)@(\d{1,15})")
_OF_KL = pattern(r"(?i)((?:last |best |max |min )?)kl(@\d{1,15})?")
_UNKNOWN = ("None", "nan")
_UP = {"up": 1, "max": 1, "down": -1, "min": -1}


def meant(column: str, wanted: str) -> tuple[str, str]:
    """Return a column and what it is compared with in the words that its values have."""
    own = column.casefold()
    return _MEANT.get(
        (own, wanted.casefold()), (own if own in _OWN else column, wanted)
    )


def parse_columns(
    text: str, runs: Sequence[Run], at: Moment, others: Collection[str] = ()
) -> tuple[tuple[str, ...], str]:
    """Return the columns of a list with commas, and a sentence on those that no run has, beside
    others that are known.
    """
    titles = [" ".join(one.split()) for one in text.split(",") if one.strip()]
    said = [unknown(one, runs, at) for one in titles if one not in others]
    return tuple(dict.fromkeys(titles)), "; ".join(filter(None, said))


def value_of(column: str, run: Run, at: Moment) -> ColumnValue:
    """Return the value of a column for a run."""
    if own := _OWN.get(column.casefold()):
        return own(run, at)
    known = _read(run)
    if column not in known:
        known[column] = _value(column, run)
    return known[column]


def unknown(column: str, runs: Sequence[Run], at: Moment) -> str:
    """Return a sentence on a column that no run has, empty if any has it, or there is none yet."""
    if (
        column.casefold() in _OWN
        or not runs
        or any(value_of(column, run, at) is not None for run in runs)
    ):
        return ""
    known = {*_OWN, *_SHORT, "kl", *INDICATORS}
    known.update(*(run.keys for run in runs), *(run.config.values for run in runs))
    alike = ", ".join(get_close_matches(column, known - {column}, n=2))
    if column.startswith("best "):
        alike = f"max {column[5:]} or min {column[5:]}, where neither is better"
    return one_line(f"no run has {column}" + f", alike: {alike}" * bool(alike), 160)


def text_of(value: ColumnValue) -> str:
    """Write a value; empty where there is none."""
    if isinstance(value, float):
        return f"{value:.12g}" if value.is_integer() else f"{value:.4g}"
    return one_line(value or "", 60)


def sorted_by(column: str, runs: Sequence[Run], at: Moment, *, up: bool) -> list[Run]:
    """Return runs by a column, equal ones in their order: numbers from the greatest, then texts
    from a; `up` has all the other way round. Those without a value come last.
    """
    values = {run.name: value_of(column, run, at) for run in runs}
    known = [run for run in runs if str(values[run.name]) not in _UNKNOWN]

    def rank(run: Run) -> tuple[bool, Any]:
        value = values[run.name]
        if isinstance(value, str):
            return True, value.casefold()
        return False, -(value or 0.0)

    known.sort(key=rank, reverse=up)
    return known + [run for run in runs if str(values[run.name]) in _UNKNOWN]


def apart(columns: Iterable[str], runs: Collection[Run]) -> tuple[str, ...]:
    """Return columns; one of `kl` is two where runs show KLs to different policies."""

    def both(column: str) -> Sequence[str]:
        one = _OF_KL.fullmatch(column)
        logged = chain.from_iterable(run.indicators for run in runs)
        shown = {shown_kl(run) for run in runs if one} & {*logged}
        if not one or len(shown) < 2:
            return [column]
        return [f"{one[1]}{INDICATORS[id].label}{one[2] or ''}" for id in KL_INDICATORS]

    return tuple(chain.from_iterable(map(both, columns)))


def together(
    column: str, runs: Collection[Run], at: Moment
) -> tuple[float, float | None] | None:
    """Return the mean and the best of several runs, which has to be better one way; None where none
    has a figure of the training, or they are KLs to different policies.
    """
    found = [(run, one) for run in runs if (one := _found(column, run))]
    values = (value_of(column, run, at) for run, _ in found)
    known = finite(one for one in values if isinstance(one, float))
    if not known or len({one.id for _, one in found}) > 1:
        return None
    up = found[0][1].way
    return mean(known), max(known, key=lambda one: one * up) if up else None


# -- one value -------------------------------------------------------------------------------------


@cached_by_revision
def _read(_run: Run) -> dict[str, ColumnValue]:
    """Return where the values of a run are remembered until it changes."""
    return {}


def _indicator(name: str) -> str:
    """Return the indicator that a word in small letters means, empty for none; `kl` stands for the
    one that a run shows.
    """
    labels = (
        id for id, one in INDICATORS.items() if name in (id, one.label.casefold())
    )
    return name if name == "kl" else _SHORT.get(name) or next(labels, "")


def _series(run: Run, name: str) -> tuple[str, Series] | None:
    """Return the indicator and the values that a name means in a run."""
    id = _indicator(name.casefold())
    id = shown_kl(run) if id == "kl" else id
    key = run.indicators.get(id)
    if key is None and id == "policy_loss":
        key = run.loss_alone
    series = run.present(key or name)
    return None if series is None else (id if key else "", series)


class _RunFigure(NamedTuple):
    """What a column of a metric shows of a run."""

    of: str
    """What it is of the values: `best`, `last`, empty for the newest."""
    step: int | None
    """Up to which step."""
    id: str
    """The indicator, empty for none."""
    series: Series

    @property
    def way(self) -> int:
        """Which side is meant, or is better: 1 above, -1 below, 0 neither."""
        about = INDICATORS[self.id] if self.id else describe(self.series.key)
        return _UP.get(self.of) or _UP.get(about.direction, 0)

    @property
    def value(self) -> float | None:
        """The value, None where the metric has not come so far, or begins later."""
        series, step = self.series, self.step
        sign = factor(self.id, series.key)
        if step is not None and not series.steps[0] <= step <= series.steps[-1]:
            return None
        values = series.until(step)
        if self.of in ("", "last"):
            return values.values[-1] * sign
        point = values.highest_point(self.way * sign) if self.way else None
        return point.value * sign if point else None


def _found(column: str, run: Run) -> _RunFigure | None:
    of, name = _FORM.fullmatch(column).groups(default="")  # type: ignore[union-attr]
    if found := _series(run, name):
        return _RunFigure(of, None, *found)
    named = _AT.fullmatch(name)
    if named and (found := _series(run, named[1])):
        return _RunFigure(of, int(named[2]), *found)
    return None


def _value(column: str, run: Run) -> ColumnValue:
    if found := _found(column, run):
        return found.value
    setting = None if _indicator(column.casefold()) else stated_as(run, column)
    value = number(setting)
    return value if value is not None or setting is None else short(setting)


# -- conditions ------------------------------------------------------------------------------------


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
    before the run's last planned step; the columns that it compares and that the run has no value
    of; all that it compares, each with what.
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


_Answers: TypeAlias = "list[bool | None]"
"""Whether each run meets a condition, None where that is unknown."""
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

    def read(self) -> _Answers:
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

    def held(self, node: ast.expr) -> _Answers:
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

    def _named(self, word: str) -> _Answers:
        values, part = self._values(word), word.casefold()
        if self.waits == _LATER:
            return [None]
        if self.waits:
            self.lacking[word] = values.count(None)
        if self.waits or values.count(None) < len(values):
            return [value not in (None, "false", "") for value in values]
        return [part in run.name.casefold() for run in self.runs]

    def _compared(self, node: ast.Compare) -> _Answers:
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

    def _meets(self, column: str, takes: str, wanted: str) -> _Answers:
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
    text = str(value).casefold()
    parts = {text, _SWITCHES.get(text, text), *text.split(", ")}
    return any(fnmatchcase(one, wanted.casefold()) for one in parts) is ("=" in takes)
