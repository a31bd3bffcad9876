r"""Filter language and order of the samples screen.

Terms stand side by side, all must hold:

    score>0.5  acc=1  len>=2000     a number of the sample: < <= > >= = !=
    group:abc                       the group's name has abc in it
    boxed  /\d+ apples/  "a (b"     its texts have a hit: an expression, or text as it stands
"""

from __future__ import annotations

import operator
import re
from itertools import count
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.rendering.text.search import Search, checked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

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
FILE, GROUP = "file", "group"
"""Orders beside those by a number."""
OWN_FIELDS = ("score", "length", "len")
"""Numbers that every sample has; all others are its fields."""


class SampleQuery(NamedTuple):
    """A condition for samples; without parts it holds for all."""

    text: str = ""
    comparisons: tuple[tuple[str, str, float], ...] = ()
    """Field, sign and number."""
    groups: tuple[str, ...] = ()
    searches: tuple[Search, ...] = ()
    """Each must have a hit in one of the sample's texts."""
    like: SampleFacts | None = None
    """A sample whose prompt is wanted, None for any."""

    def holds(self, fact: SampleFacts) -> bool:
        """Return True if a sample passes, apart from the searches in its texts."""
        return (
            (not self.like or are_mates(fact, self.like))
            and all(part in (fact.group or "") for part in self.groups)
            and all(
                _compares(value_of(fact, one[0]), *one[1:]) for one in self.comparisons
            )
        )

    def found(self, texts: Iterable[str]) -> bool:
        """Return True if each search has a hit in one of a sample's texts."""
        missing = list(self.searches)
        for text in texts:
            missing = [search for search in missing if not search.search(text)]
        return not missing

    def unknown(self, fields: Collection[str]) -> list[str]:
        """Return the names in comparisons that no sample has."""
        return [
            one[0] for one in self.comparisons if one[0] not in (*fields, *OWN_FIELDS)
        ]

    def __bool__(self) -> bool:
        return self != SampleQuery(self.text)


def parse_query(text: str) -> SampleQuery:
    """Parse a filter.

    Raises:
        ValueError: The filter is invalid; the message says why.
    """
    comparisons: list[tuple[str, str, float]] = []
    groups: list[str] = []
    searches: list[Search] = []
    for term in _TERM.finditer(checked(text)):
        field, sign, value, group, quoted, expression, word = term.groups()
        if field is not None:
            comparisons.append((field, sign, _number(term[0], value)))
        elif group is not None:
            groups.append(group)
        elif quoted:
            searches.append(Search(quoted, literal=True))
        elif expression or word:
            searches.append(Search((expression or word).replace("\\/", "/")))
    return SampleQuery(text.strip(), tuple(comparisons), tuple(groups), tuple(searches))


def _number(term: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        words = "compares with a number; text to search for goes into"
        raise ValueError(f'{term}: {words} "…"') from None


def _compares(number: float | None, sign: str, value: float) -> bool:
    """Return whether a comparison holds; it never does for a sample without the number."""
    if number is not None and isnan(value) and sign not in ("<", ">"):
        return isnan(number) is not (sign == "!=")
    return number is not None and _SIGNS[sign](number, value)


def value_of(fact: SampleFacts, field: str) -> float | None:
    """Return a number of a sample by its name, None where it has none."""
    length = fact.length
    own = {FILE: fact.index, "score": fact.score, "length": length, "len": length}
    return own[field] if field in own else fact.numbers.get(field)


def are_mates(one: SampleFacts, other: SampleFacts) -> bool:
    """Return whether two samples are of the same prompt."""
    if one.group is None:
        return one.index == other.index
    return one.group == other.group


def number_groups(facts: Iterable[SampleFacts]) -> dict[str, int]:
    """Number groups from 1 in the order of appearance, since their names are long and random."""
    names = dict.fromkeys(fact.group for fact in facts if fact.group is not None)
    return dict(zip(names, count(1), strict=False))


class SampleOrder(NamedTuple):
    """A sort key: file order, group, score, length or any field; ties stay in file order."""

    field: str = FILE
    down: bool = False

    @property
    def arrow(self) -> str:
        """The sign of the direction."""
        return "▲▼"[self.down]

    def sort(
        self, facts: Iterable[SampleFacts], groups: Mapping[str, int]
    ) -> list[int]:
        """Return the indices of the samples in this order, those without the number last; groups
        have numbers, too.
        """
        known: list[tuple[float, int]] = []
        lacking: list[int] = []
        for fact in facts:
            value = value_of(fact, self.field)
            if self.field == GROUP:
                value = groups.get(fact.group or "")
            if value is None or isnan(value):
                lacking.append(fact.index)
            else:
                known.append((value, fact.index))
        known.sort(key=operator.itemgetter(0), reverse=self.down)
        return [index for _, index in known] + lacking
