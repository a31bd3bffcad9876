"""The samples a run has shown, by step, within a budget of memory."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.records import Sample


class Samples:
    """Samples grouped by step, newest step last; the oldest steps give way when the budget is spent."""

    def __init__(self, budget: int = 128 * 2**20) -> None:
        self.budget = budget
        """Characters of text kept at most."""
        self.steps: list[int] = []
        """Steps that have samples, ascending."""
        self.dropped = 0
        """Samples given up to stay within the budget."""
        self.revision = 0
        """Grows with every change."""
        self._by_step: dict[int, list[Sample]] = {}
        self._size = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_step.values()))

    def add(self, sample: Sample, step: int) -> None:
        """Keep a sample under a step."""
        if step not in self._by_step:
            self._by_step[step] = []
            insort(self.steps, step)
        self._by_step[step].append(sample)
        self._size += _size(sample)
        self.revision += 1
        while self._size > self.budget and len(self.steps) > 1:
            self._drop(self.steps[0])

    def at(self, step: int) -> tuple[Sample, ...]:
        """Return the samples of exactly this step, in the order of the log."""
        return tuple(self._by_step.get(step, ()))

    def nearest(self, step: int) -> int | None:
        """Return the step with samples that lies nearest to `step`, None where there are no samples."""
        return min(self.steps, key=lambda known: (abs(known - step), -known), default=None)

    def forget(self, step: int, *, validation: bool) -> None:
        """Drop the samples of one step and kind: their file is being written anew."""
        kept = [sample for sample in self._by_step.get(step, ()) if sample.validation != validation]
        gone = [sample for sample in self._by_step.get(step, ()) if sample.validation == validation]
        if not gone:
            return
        self._size -= sum(map(_size, gone))
        self.revision += 1
        if kept:
            self._by_step[step] = kept
        else:
            del self._by_step[step]
            self.steps.remove(step)

    def _drop(self, step: int) -> None:
        gone = self._by_step.pop(step)
        self.steps.remove(step)
        self._size -= sum(map(_size, gone))
        self.dropped += len(gone)


def _size(sample: Sample) -> int:
    return len(sample.prompt) + len(sample.response) + len(sample.ground_truth or "") + 200
