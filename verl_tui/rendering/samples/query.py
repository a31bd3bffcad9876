r"""Filter language of the samples screen.

Terms stand side by side, all must hold:

    score>0.5  acc=1  len>=2000     a number of the sample: < <= > >= = !=
    group:abc                       the group's name has abc in it
    boxed  /\d+ apples/  "a (b"     its texts have a hit: an expression, or text as it stands
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.rendering.text.search import Search, checked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from verl_tui.records import SampleFacts

_TERM = pattern(
    r"""(?P<field>[^\s"/<>=!:][^\s"<>=!]*)(?P<sign><=|>=|!=|==|=|<|>)(?P<value>\S*)(?=\s|$)
    |group:(?P<group>\S*)
    |"(?P<quoted>[^"]*)"(?=\s|$)
    |/(?P<pattern>(?:\\.|[^/\\])*)/(?=\s|$)
    |(?P<word>\S+)""",
    re.VERBOSE,
)
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
HINT = 'score>0.5 acc=1 len>=2000 · group:ab word /regex/ "text"'
"""The language in one row."""
HELP = (
    "A filter is terms side by side, all must hold:",
    "score>0.5 acc=1 len>=2000   numbers: < <= > >= = !=",
    "group:abc                   a part of the group's name",
    "boxed   /two words/         a hit in its texts, line by line",
    '"a (b"                      the text as it stands',
    "Small letters find capitals, too. Lines in which an expression",
    "takes too long are skipped, which is said.",
)
"""The language explained in a few lines."""
_LENGTH = ("len", "length")
OWN_FIELDS = ("score", *_LENGTH)
"""Numbers that every sample has; all others are its fields."""


class NumberCondition(NamedTuple):
    """A comparison of a sample's number with a constant."""

    field: str
    sign: str
    value: float

    def holds(self, fact: SampleFacts) -> bool:
        """Return True if it holds; a sample without the number never passes."""
        number = value_of(fact, self.field)
        if number is None:
            return False
        if isnan(self.value) and self.sign not in ("<", ">"):
            return isnan(number) is not (self.sign == "!=")
        return _SIGNS[self.sign](number, self.value)


@dataclass(frozen=True, slots=True)
class SampleQuery:
    """A condition for samples; without parts it holds for all."""

    text: str = ""
    comparisons: tuple[NumberCondition, ...] = ()
    groups: tuple[str, ...] = ()
    searches: tuple[Search, ...] = ()
    """Each must have a hit in one of the sample's texts."""

    def holds(self, fact: SampleFacts) -> bool:
        """Return True if a sample passes, apart from the searches in its texts."""
        return all(part in (fact.group or "") for part in self.groups) and all(
            c.holds(fact) for c in self.comparisons
        )

    def found(self, texts: Iterable[str]) -> bool:
        """Return True if each search has a hit in one of a sample's texts."""
        missing = list(self.searches)
        for text in texts:
            missing = [search for search in missing if not search.search(text)]
            if not missing:
                return True
        return not missing

    def unknown(self, fields: Collection[str]) -> tuple[str, ...]:
        """Return the names in comparisons that no sample has."""
        return tuple(
            c.field
            for c in self.comparisons
            if c.field not in fields and c.field not in OWN_FIELDS
        )

    def __bool__(self) -> bool:
        return bool(self.comparisons or self.groups or self.searches)


def parse_query(text: str) -> SampleQuery:
    """Parse a filter.

    Raises:
        ValueError: The filter is invalid; the message says why.
    """
    comparisons: list[NumberCondition] = []
    groups: list[str] = []
    searches: list[Search] = []
    for term in _TERM.finditer(checked(text)):
        found = term.groupdict()
        if found["field"] is not None:
            comparisons.append(
                _comparison(found["field"], found["sign"], found["value"])
            )
        elif found["group"] is not None:
            groups.append(found["group"])
        elif (literal := found["quoted"]) is not None:
            searches.extend([Search(literal, literal=True)] if literal else [])
        elif (
            expression := found["pattern"]
            if found["pattern"] is not None
            else found["word"]
        ):
            searches.append(Search(expression.replace("\\/", "/")))
    return SampleQuery(text.strip(), tuple(comparisons), tuple(groups), tuple(searches))


def _comparison(field: str, sign: str, value: str) -> NumberCondition:
    try:
        return NumberCondition(field, sign, float(value))
    except ValueError:
        raise ValueError(
            f'{field}{sign}{value}: compares with a number; text to search for goes into "…"'
        ) from None


def value_of(fact: SampleFacts, field: str) -> float | None:
    """Return a number of a sample by its name, None where it has none."""
    if field == "score":
        return fact.score
    if field in _LENGTH:
        return fact.length
    return fact.numbers.get(field)
