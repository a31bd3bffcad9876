"""The intervals of a console's dicts, and the steps of its epochs, where no dict states its own."""

from __future__ import annotations

_ROUND = (1000, 500, 100, 50, 20, 10, 5, 2, 1)
"""Logging intervals as people choose them, the roundest first."""


class BarGuess:
    """Guesses which of two bars in a row has the step of the dict between them."""

    def __init__(self) -> None:
        self._moves = 0
        """Single steps of the bar since the last dict."""

    def moved(self, before: int | None, at: int) -> None:
        """Take a bar without a dict before it."""
        self._moves = self._moves + 1 if before in (at, at - 1) else 0

    def step(self, before: int) -> int:
        """Return the step of a dict: by whether one chooses to log at each so many steps, where
        some had no dict.

        Args:
            before: Position of the bar before the dict; that behind it is one further.
        """
        return before + (self._moves > 1 and _is_round(before + 1))


def _is_round(step: int) -> bool:
    return step % 5 == 0 or step & (step - 1) == 0


def likeliest_interval(span: int, count: int) -> int:
    """Return the likeliest logging interval for `count` dicts within `span` steps."""
    if span < count:
        return 1
    if span % count == 0:
        return span // count
    least, most = span // (count + 1) + 1, span // count
    for unit in _ROUND:
        if (largest := unit * (most // unit)) >= least:
            return largest
    return most
