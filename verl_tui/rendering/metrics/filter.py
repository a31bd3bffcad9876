"""Filter language of the metrics screen: all words must match, `|` joins alternatives, `!` negates.

    actor kl            both are in the key or in its label
    critic kl|loss      critic, and one of the other two
    !max  !/min$/       neither matches
    /^val.*acc/         a regular expression

`|` binds closer than the blank, with or without blanks around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from verl_tui.patterns import pattern
from verl_tui.rendering.text.search import Search, checked

_TOKEN = pattern(
    r"""(?P<bar>\|)
    |(?P<not>!?)(?:/(?P<pattern>(?:\\.|[^\\])+?)/(?=[\s|]|$)|(?P<word>[^\s|]*[^\s|!][^\s|]*))
    |(?P<bang>!+)""",
    re.VERBOSE,
)
HELP = (
    "A filter is words side by side; all must be in a metric's key or label:",
    "actor kl                    both",
    "critic kl|loss              critic, and kl or loss",
    "!max   !/min$/              without it",
    "/^val.*acc/                 a regular expression",
    "Small letters find capitals, too.",
)
"""The language explained in a few lines."""


class Term(NamedTuple):
    """One word or expression."""

    search: Search
    negated: bool = False

    def holds(self, text: str) -> bool:
        """Return True if a text matches."""
        return self.search.search(text) is not self.negated


@dataclass(frozen=True, slots=True)
class MetricFilter:
    """A condition for metrics; without clauses it holds for all."""

    text: str = ""
    clauses: tuple[tuple[Term, ...], ...] = ()
    """All clauses must hold, of each clause one term."""

    def holds(self, key: str, label: str = "") -> bool:
        """Return True if a metric passes."""
        text = f"{key}\n{label}"
        return all(any(term.holds(text) for term in clause) for clause in self.clauses)


def parse_filter(text: str) -> MetricFilter:
    """Parse a filter; unfinished parts (a bar without its right side) are ignored.

    Raises:
        ValueError: An expression is invalid; the message says why.
    """
    clauses: list[list[Term]] = []
    joined = False
    for token in _TOKEN.finditer(checked(text)):
        if token["bar"]:
            joined = bool(clauses)
        elif token["pattern"] or token["word"]:
            term = _term(token)
            if term is None:
                continue
            if joined:
                clauses[-1].append(term)
            else:
                clauses.append([term])
            joined = False
    return MetricFilter(" ".join(text.split()), tuple(map(tuple, clauses)))


def _term(token: re.Match[str]) -> Term | None:
    word = token["word"]
    negated = bool(token["not"])
    if token["pattern"]:
        return Term(Search(token["pattern"].replace("\\/", "/")), negated)
    if not word.startswith("/"):
        return Term(Search(word, literal=True), negated)
    try:  # an expression that is being typed
        if word[1:]:
            return Term(Search(word[1:]), negated)
        return None
    except ValueError:
        return None
