"""Regular expressions that a user types, searched in text that a model wrote, without hanging.

The package `regex` searches: unlike `re` it takes a time-out, and lets other threads run meanwhile.
A text is searched line by line; a line that takes too long is given up, which is reported. Also the
words around a filter that is typed: what it filters, how much matches, how to leave.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from verl_tui.rendering.text.piece import fit, fitting

_PATIENCE = 0.01
"""Seconds that one line may take: drawing a hit blocks the screen that long."""
_MOST_GIVEN_UP = 10
"""Lines given up before the search for an expression stops."""
_LONGEST = 1000
"""Characters of what is typed to search or filter by."""


@dataclass(unsafe_hash=True)
class Search:
    """One expression; case counts if the expression has a capital."""

    expression: str
    """A regular expression, or text."""
    literal: bool = False
    """True if it is text."""

    def __post_init__(self) -> None:
        """Compile it.

        Raises:
            ValueError: It is no regular expression.
        """
        import regex  # takes 40 ms to import: only for those who search

        expression, literal = checked(self.expression), self.literal
        escapes = "" if literal else r"\\.|\(\?P?<\w+>|\(\?P[=>]\w+\)"
        bare = re.sub(escapes, "", expression)
        self.folds = bare == bare.lower()
        """True if case is ignored."""
        source = re.escape(expression) if literal else expression
        flags = regex.MULTILINE | (regex.IGNORECASE if self.folds else 0)
        try:
            with warnings.catch_warnings():
                # `[[a]` may come to mean something else one day
                warnings.simplefilter("ignore")
                self._pattern = regex.compile(source, flags)  # type: ignore[no-untyped-call]
        except (regex.error, OverflowError, RecursionError) as error:
            raise ValueError(f"/{expression}/: {error}") from None
        self._lines_given_up = 0

    @property
    def given_up(self) -> bool:
        """True if a line was not searched to its end because that took too long."""
        return self._lines_given_up > 0

    def search(self, text: str) -> bool:
        """Return True if a text has a hit."""
        return next(self.hits(text), None) is not None

    def hits(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each hit that is not empty, line by line."""
        start = 0
        for line in text.split("\n"):
            if self._lines_given_up >= _MOST_GIVEN_UP:
                return
            try:
                for found in self._pattern.finditer(
                    line, timeout=_PATIENCE, concurrent=True
                ):
                    if found.end() > found.start():
                        yield start + found.start(), start + found.end()
            except TimeoutError:
                self._lines_given_up += 1
            start += len(line) + 1


def checked(typed: str) -> str:
    """Return what was typed to search or filter by.

    Raises:
        ValueError: It is too long to be taken apart at once.
    """
    if len(typed) > _LONGEST:
        raise ValueError(f"longer than {_LONGEST:,} characters")
    return typed


def needle(expression: str) -> str:
    """Return text that each hit must contain, empty if none is certain: a quick first test."""
    if re.escape(expression).replace("\\ ", " ") != expression:
        return ""
    return max(expression.split(), key=len, default="")


# -- words around what is typed --------------------------------------------------------------------


class Matches(NamedTuple):
    """The numbers of things of one kind: those that a filter leaves, and all."""

    found: int
    """Those that match; 0 too where all are shown because none does."""
    all: int
    note: str = ""
    """Further words: what cannot be read."""


def filter_label(kinds: Sequence[str]) -> str:
    """Return the words before the typed text: `filter runs and metrics: `."""
    return f"filter {' and '.join(kinds)}: "


def filter_state(
    typed: str,
    matches: Mapping[str, Matches] | None,
    width: int,
    *,
    enter: str = "keeps it",
    escape: str = "esc",
) -> str:
    """Return the words after the typed text, the longest that fit.

    Args:
        typed: The text.
        matches: Kinds of things, as `metrics`, to how many of them match; None while that is
            unknown.
        width: Cells there are.
        enter: What the enter key does.
        escape: Name of the key that leaves.
    """
    kept = enter == "keeps it"  # else nothing is filtered before the enter key
    away = f"{escape} {'clears it' if kept and typed.strip() else 'leaves'}"
    leave = (f"enter {enter}", away) if typed.strip() else (away,)
    matches = matches if typed.strip() else None
    count = "" if matches is None else _count(matches, zeros=not kept)
    some = (fit(_notes(matches), width) or leave[-1],)
    forms = ((count, *leave), (count, leave[-1]), some, (escape,))
    texts = (" · ".join(filter(None, form)) for form in forms)
    return fitting(texts, width)


def _count(matches: Mapping[str, Matches], *, zeros: bool) -> str:
    found = [
        f"{one.found:,} of {one.all:,} {kind}"
        for kind, one in matches.items()
        if one.found or zeros
    ]
    return ", ".join(filter(None, [*found, _notes(matches)])) or "nothing matches"


def _notes(matches: Mapping[str, Matches] | None) -> str:
    return ", ".join(one.note for one in (matches or {}).values() if one.note)
