"""Regular expressions that somebody types, searched in texts that a model wrote, without ever
hanging.

Python's `re` can take for ever, and holds the interpreter meanwhile, whichever thread it runs in.
So three things bound a search: expressions that may take exponential time are refused (a repeat in
a repeat, an alternative in a repeat, very many repeats); a text is searched line by line; and a
long line is tried in pieces of growing length first, each so much longer than the last as the time
allows that this one took, and given up where that is hardly longer at all. What was given up is
told.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from time import thread_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE = 0.01
"""Seconds that one call may take: as long nothing else happens, on the screen neither."""
_LEAST_GROWTH = 1.1
_FIRST_PIECE = 16
_MOST_PLACES = 8
"""Places where an expression may match more or less: each may double the time that twice the text
takes.
"""
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
                self.folds = not _has_upper(expression, literal=literal)
                """Whether small letters and capitals are the same."""
                self._pattern = re.compile(
                    source, (re.IGNORECASE if self.folds else 0) | re.MULTILINE
                )
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"/{expression}/: {error}") from None
        self._degree = 0 if literal else _repeats(expression)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Search) and (self.expression, self.literal) == (
            other.expression,
            other.literal,
        )

    def __hash__(self) -> int:
        return hash((self.expression, self.literal))

    def search(self, text: str) -> bool:
        """Tell whether a text has a hit."""
        return next(self.hits(text), None) is not None

    def hits(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of every hit that is not empty, line by line."""
        if not self._degree:
            yield from (
                found.span()
                for found in self._pattern.finditer(text)
                if found.end() > found.start()
            )
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
            growth = (_PATIENCE / self._slowest(line, size)) ** (1 / (self._degree + 1))
            if growth < _LEAST_GROWTH:
                return False
            size = int(size * min(2.0, growth)) + 1
        return True

    def _slowest(self, line: str, size: int) -> float:
        """Return the seconds of the slowest call for a piece of a line: that after the last hit may
        be it.
        """
        calls = self._pattern.finditer(line, 0, size)
        slowest, found = 1e-9, True
        while found:
            began = thread_time()
            found = next(calls, None) is not None
            slowest = max(slowest, thread_time() - began)
        return slowest


def needle(expression: str) -> str:
    """Return a word that every hit of an expression has in it, empty where none is sure: a quick
    first look for it.
    """
    words, depth = [""], 0
    for token in _TOKEN.finditer(expression):
        kind, text = token.lastgroup, token.group()
        depth += (kind == "open") - (kind == "close")
        plain = text[1:] if len(text) == 2 and text[0] == "\\" and not text[1].isalnum() else text
        if kind in ("bar", "aside"):
            return ""
        if kind == "times":
            words[-1] = words[-1][:-1]
        if (
            kind == "atom"
            and not depth
            and len(plain) == 1
            and (plain != text or text not in ".^$")
            and plain != " "
        ):
            words[-1] += plain
        else:
            words.append("")
    return max(words, key=len)


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
        raise ValueError(
            f"/{expression}/ could take for ever: it has more than {_MOST_PLACES} repeats"
        )
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
