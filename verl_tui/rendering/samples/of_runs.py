"""What the samples panel keeps of each run: the user's choice, and how tall its samples were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.last_result import LastResult
from verl_tui.rendering.samples.chosen import SampleChoice

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.records import Sample

FOLLOWING = SampleChoice(follow=True)
"""The choice before the user has made one."""


class ChoicesByRun:
    """The user's choices: a run is shown as it was left."""

    def __init__(self) -> None:
        self._run = ""
        """The run whose samples are shown."""
        self._left: dict[str, SampleChoice] = {}

    def turn_to(self, run: str, chosen: SampleChoice) -> SampleChoice:
        """Return the choice for the run that is shown now; the one so far is kept for its run."""
        if run == self._run:
            return chosen
        self._left[self._run] = chosen
        self._run = run
        return self._left.get(run, FOLLOWING)


class TallestSamples:
    """The most rows that a sample has taken, by run and width: charts beside it must not jump with
    each step.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], int] = {}
        self._newest: LastResult[int] = LastResult()

    def grow(
        self, run: str, width: int, sample: Sample, count: Callable[[], int]
    ) -> None:
        """Take in a sample of a run; its rows at a width are counted unless they were just now."""
        place = (run, width)
        rows = self._newest.of((sample, place), count)
        self._rows[place] = max(rows, self._rows.get(place, 0))

    def most(self, run: str, width: int, otherwise: int) -> int:
        """Return the most rows, something else while no sample has been counted."""
        return self._rows.get((run, width), otherwise)
