"""Regular expressions that somebody types, searched in texts that a model wrote, without ever hanging.

Python's `re` can take for ever, and holds the interpreter meanwhile, whichever thread it runs in. So three things
bound a search: expressions that may take exponential time are refused (a repeat in a repeat, an alternative in a
repeat, very many repeats); a text is searched line by line; and a long line is tried in pieces of growing length
first, and given up where a piece takes long already. What was given up is told.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = 0.002
"""Seconds that a piece of a line may take; twice the length takes 2^_MOST_PLACES times as long at worst."""
_FIRST_PIECE = 16
_MOST_PLACES = 8
"""Places where an expression may match more or less: each may double the time that twice the text takes."""
_FEW = 4
"""A group may come so often though its own length varies: `(\\d{1,3}\\.){3}`."""
_ENDLESS = 1 << 30
_TOKEN = re.compile(
    r"""(?P<aside>\(\?(?:\#[^)]*|[a-zA-Z-]+|P=\w+)\))
    |(?P<open>\((?:\?(?:P<\w+>|<?[=!]|>|[a-zA-Z-]*:|\(\w+\)))?)
    |(?P<close>\))
    |(?P<bar>\|)
    |(?P<times>(?:[*+?]|\{(?:\d+(?:,\d*)?|,\d*)\})\??)
    |(?P<atom>\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)""",
    re.VERBOSE | re.DOTALL,
)
"""One thing of an expression."""


class Search:
    """One expression; upper case counts where the expression has any."""

    def __init__(self, expression: str, *, literal: bool = False) -> None:
        """Make it.

        Args:
            expression: A regular expression, or the text itself.
            literal: Whether it is the text itself.

        Raises:
            ValueError: It is no regular expression, or one that could take for ever.
        """
        self.expression, self.literal = expression, literal
        self.given_up = False
        """Whether a line was not searched, because that took too long."""
        source = re.escape(expression) if literal else expression
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `[[a]` may come to mean something else one day
                case = 0 if _has_upper(expression, literal=literal) else re.IGNORECASE
                self._pattern = re.compile(source, case | re.MULTILINE)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"/{expression}/: {error}") from None
        self._probed = not literal and _repeats(expression) > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Search) and (self.expression, self.literal) == (other.expression, other.literal)

    def __hash__(self) -> int:
        return hash((self.expression, self.literal))

    def search(self, text: str) -> bool:
        """Tell whether a text has a hit."""
        return next(self.hits(text), None) is not None

    def hits(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of every hit that is not empty, line by line."""
        if not self._probed:
            yield from (found.span() for found in self._pattern.finditer(text) if found.end() > found.start())
            return
        start = 0
        while start >= 0:
            end = text.find("\n", start)
            line = text[start:] if end < 0 else text[start:end]
            if self._bearable(line):
                spans = (found.span() for found in self._pattern.finditer(line))
                yield from ((start + first, start + last) for first, last in spans if last > first)
            else:
                self.given_up = True
            start = end + 1 if end >= 0 else -1

    def _bearable(self, line: str) -> bool:
        size = _FIRST_PIECE
        while size < len(line):
            began = perf_counter()
            # All of it, hits and all: the hits after the first may be the slow ones.
            for _ in self._pattern.finditer(line, 0, size):
                pass
            if perf_counter() - began > _PATIENCE * max(1.0, size / 4096):
                return False
            size *= 2
        return True


def _has_upper(expression: str, *, literal: bool) -> bool:
    bare = expression if literal else re.sub(r"\\.|\(\?P?<\w+>|\(\?P[=>]\w+\)", "", expression)
    return bare != bare.lower()


def _repeats(expression: str) -> int:
    """Return in how many places an expression may match more or less of a text.

    Raises:
        ValueError: They are too many, or nested so that the time may grow exponentially.
    """
    groups = [_Group()]
    closed = 0
    """Places in the group that has just ended: a repeat that follows multiplies them."""
    for token in _TOKEN.finditer(expression):
        kind, inner, closed = token.lastgroup, closed, 0
        if kind == "open":
            groups.append(_Group())
        elif kind == "close" and len(groups) > 1:
            closed = groups.pop().total
            groups[-1].places += closed
        elif kind == "bar":
            groups[-1].alternatives = True
        elif kind == "times":
            groups[-1].places += _places(token.group(), inner, expression)
    places = groups[0].places
    if places > _MOST_PLACES:
        raise ValueError(f"/{expression}/ could take for ever: it has more than {_MOST_PLACES} repeats")
    return places + groups[0].alternatives


@dataclass(slots=True)
class _Group:
    places: int = 0
    alternatives: bool = False

    @property
    def total(self) -> int:
        return self.places + self.alternatives


def _places(repeat: str, inner: int, expression: str) -> int:
    """Return the places that a repeat adds to those of what it repeats."""
    least, most = _bounds(repeat)
    if inner and most > _FEW:
        raise ValueError(f"/{expression}/ could take for ever: what repeats in it varies in itself")
    return inner * max(0, most - 1) + (least != most)


def _bounds(repeat: str) -> tuple[int, int]:
    if repeat[0] != "{":
        return {"*": (0, _ENDLESS), "+": (1, _ENDLESS), "?": (0, 1)}[repeat[0]]
    least, comma, most = repeat[1 : repeat.index("}")].partition(",")
    low = int(least or 0)
    return low, (int(most or _ENDLESS) if comma else low)
