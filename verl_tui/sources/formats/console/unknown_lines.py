"""Lines of metrics in a form of someone's own: they are not read, but it is said that they are
there.
"""

from __future__ import annotations

from verl_tui.patterns import pattern
from verl_tui.text import one_line

METRIC = pattern(
    rb"(?i)loss|entropy|grad|\bkl\b|kl_|_kl"
    rb"|(?:mean|avg|average|std)[ _]?(?:reward|return|score)"
    rb"|(?:reward|return|score)s?[ _]?(?:mean|avg|std)"
)
"""Words in a line of a training's metrics; a reward alone may be that of one sample."""
_STEP = pattern(rb"(?i)\b(?:step|iter(?:ation)?|epoch|update)s?\b[^\w\n]{0,20}\d")
_PAIR = pattern(
    rb"(?i)(?<!\w)([a-z][\w/.-]{1,40})(?:['\"]? {0,20}[=:] {0,20}| {1,20})"
    rb"([-+]?(?:\d{1,15}(?:\.\d{0,20})?|\.\d{1,20})(?:e[-+]?\d{1,3})?)"
    rb"(?=[%\s,;:/|)\]}]|[a-z]{1,3}\b|$)"
)
"""A name and its number."""
_LONGEST = 4000
"""Bytes of a line that are looked at."""
_PAIRS = 3
"""Fewest numbers of a line of metrics, one less where it has a step: heuristic."""
_ALIKE = 5
"""Lines with the same names that are no chance: heuristic."""
_MOST_KINDS = 100
_WATCHED = 20_000
"""Lines among which the first such ones are looked for."""


class UnknownLines:
    """Counts them, as long as no step is known."""

    def __init__(self) -> None:
        self._count = 0
        self._last = ""
        """The last one, with its number."""
        self._alike: dict[tuple[bytes, ...], tuple[int, tuple[bytes, ...]]] = {}
        """By the names in them: lines, and the last numbers; those that repeat are settings."""
        self._seen = 0

    @property
    def watches(self) -> bool:
        """True while lines may be such."""
        return self._count > 0 or self._seen < _WATCHED

    @property
    def words(self) -> str:
        """Say how many there are; empty if none."""
        if not self._count:
            return ""
        return (
            f"{self._count:,} lines with metrics are in no known form, as {self._last}"
        )

    def read(self, part: bytes, number: int) -> None:
        """Take a line that nothing else could read."""
        self._seen += 1
        part = part[:_LONGEST]
        if not self.watches or METRIC.search(part) is None:
            return
        pairs = _PAIR.findall(part)
        if len(pairs) < _PAIRS - (_STEP.search(part) is not None):
            return
        names, numbers = zip(*pairs, strict=True)
        times, before = self._alike.get(names, (0, ()))
        if before == numbers or (not before and len(self._alike) >= _MOST_KINDS):
            return
        self._alike[names] = times + 1, numbers
        if times + 1 >= _ALIKE:
            self._count += _ALIKE if times + 1 == _ALIKE else 1
            shown = one_line(part.decode("utf-8", "replace"), 80)
            self._last = f"line {number}: {shown}"
