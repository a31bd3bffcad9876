"""Lines of metrics in a form of someone's own: they are not read, but it is said that they are
there.
"""

from __future__ import annotations

from collections import Counter

from verl_tui.patterns import pattern
from verl_tui.text import one_line

_METRIC = pattern(rb"(?i)loss|reward|return|score|entropy|grad|accuracy|\bkl\b|kl_|_kl")
"""Words in a line of a training's metrics."""
_PAIR = pattern(
    rb"(?<!\w)([A-Za-z][\w/.-]{1,40})(?: ?[=:] ?| )"
    rb"[-+]?(?:\d{1,15}(?:\.\d{0,20})?|\.\d{1,20})(?:e[-+]?\d{1,3})?"
    rb"(?=[%\s,;|)\]}]|[a-z]{1,3}\b|$)"
)
"""A name and its number."""
_LONGEST = 4000
"""Bytes of a line that are looked at."""
_PAIRS = 3
"""Fewest numbers of a line of metrics: heuristic."""
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
        self._alike = Counter[tuple[bytes, ...]]()
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
        if not self.watches or _METRIC.search(part, 0, _LONGEST) is None:
            return
        names = tuple(_PAIR.findall(part[:_LONGEST]))
        if len(names) < _PAIRS or (
            names not in self._alike and len(self._alike) >= _MOST_KINDS
        ):
            return
        self._alike[names] += 1
        if self._alike[names] >= _ALIKE:
            self._count += _ALIKE if self._alike[names] == _ALIKE else 1
            shown = one_line(part[:_LONGEST].decode("utf-8", "replace"), 80)
            self._last = f"line {number}: {shown}"
