"""Lines of trouble that appear or multiply in the log where a finding begins.

Heuristic: what comes with a fault need not be its cause. Lines between two logged points belong to
the later one.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.text import one_line
from verl_tui.words import rounded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import Trouble

_EARLIER, _LATER = 10, 3
"""Logged points by which they may begin before a finding, as windows blur when that began, and
after.
"""
_PAST, _LEAST = 20, 3
"""Logged points that show how many were usual, and how many there must be."""
_TIMES, _MANY = 5.0, 1.0
"""Multiple of the usual number, and lines a logged point, from which on they are new: heuristic."""
_MOST = 3
_NAMES = pattern(
    r"(?<![\w.~-])[\w.~-]{0,60}/(?:[\w.@#+=~-]{1,100}/?){1,20}"
    r"|(?<![\w-])(?=[\w-]{0,60}[#\d])[\w-]{8,100}"
)
"""Paths, and identifiers with digits, which are blanked here as well."""


class NewLines(NamedTuple):
    """One form of line that is new since a step."""

    form: str
    """Its text, with blanks for what varies."""
    before: float
    now: float
    """Lines a logged point."""
    since: int
    """The first step with many."""
    path: str
    trouble: Trouble
    """The kind that has most of them."""

    @property
    def line(self) -> int | None:
        """The number of the first line, None if there were some long before."""
        return (
            self.trouble.first.line if self.trouble.until(self.since - 1) == 0 else None
        )


def new_lines(run: Run, steps: Sequence[int], step: int) -> list[NewLines]:
    """Return what is new in the log where a finding begins, the most frequent first.

    Args:
        run: The run.
        steps: The logged points of the metric that was judged.
        step: The finding's first step.
    """
    onset = bisect_left(steps, step)
    forms: dict[str, list[tuple[str, Trouble]]] = {}
    for path, state in run.sources.items():
        for trouble in state.troubles if state.step is not None else ():
            if trouble.step is not None and trouble.step >= steps[max(0, onset - 1)]:
                form = _NAMES.sub("#", trouble.form)
                forms.setdefault(form, []).append((path, trouble))
    found = (_new(form, kinds, steps, onset) for form, kinds in forms.items())
    return sorted([one for one in found if one], key=lambda one: -one.now)


def _new(
    form: str, kinds: Sequence[tuple[str, Trouble]], steps: Sequence[int], onset: int
) -> NewLines | None:
    """Return how a form of line multiplied about a logged point, None if it did not."""
    first = max(0, onset - _EARLIER - _PAST)
    lines = _lines(kinds, steps, first, min(len(steps), onset + _PAST))
    newest = lines[onset - first :]
    now = sum(newest) / max(1, len(newest))
    begin = max(0, onset - first - _EARLIER)
    least = max(1, now / _LEAST)
    many = (i for i, count in enumerate(lines) if i >= begin and count >= least)
    at = next(many, len(lines))
    past = lines[max(0, at - _PAST) : at]
    if now < _MANY or at > onset - first + _LATER or len(past) < _LEAST:
        return None
    usual = sum(past) / len(past)
    if now < _TIMES * usual:
        return None
    path, most = max(kinds, key=lambda one: one[1].count)
    return NewLines(form, usual, now, steps[first + at], path, most)


def _lines(
    kinds: Sequence[tuple[str, Trouble]], steps: Sequence[int], first: int, end: int
) -> list[int]:
    """Return how many lines there were at each of some logged points."""
    counts = [
        sum(trouble.until(steps[at]) for _, trouble in kinds)
        for at in range(max(0, first - 1), end)
    ]
    lines = [after - before for before, after in pairwise(counts)]
    return lines if first else [counts[0], *lines]


def in_words(found: Sequence[NewLines]) -> Iterator[str]:
    """Yield the most frequent of them as evidence."""
    for one in found[:_MOST]:
        yield (
            f"new in the log since step {one.since} (heuristic): {rounded(one.before)} → "
            f"{rounded(one.now)} lines a step: {one_line(one.form, 160)}"
        )
