"""Where a run began anew: a source that starts over, or a further file that goes on from an earlier step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.runs.source_state import SourceState


@dataclass(frozen=True, slots=True)
class RestartMark:
    """Where a source started anew."""

    step: int
    """First step of the new segment."""
    reason: str
    path: str


def continued(states: Iterable[SourceState]) -> list[tuple[SourceState, SourceState]]:
    """Return pairs of sources of which the second goes on with what the first has logged, from an earlier step.

    A writer of TensorBoard events and W&B begin another file when a run is resumed: of the same format, with the same
    metrics, and a first step that the file before it had passed or reached. Files that begin at the same step stand
    beside each other (training and validation), neither is a resumption.
    """
    pairs = []
    for _, alike in groupby(sorted(states, key=_kind), key=_kind):
        files = [state for state in alike if state.first is not None]
        for before, after in pairwise(files):
            if before.first is None or after.first is None or before.top is None:
                continue
            if before.first < after.first <= before.top + 1 and before.metrics & after.metrics:
                pairs.append((before, after))
    return pairs


def _kind(state: SourceState) -> str:
    return state.status.format


def marks(told: Sequence[RestartMark], states: Iterable[SourceState]) -> list[RestartMark]:
    """Return all restarts by step, each step once: what several sources show is one event."""
    further = [
        RestartMark(after.first, "went on in another file", after.status.path)
        for _, after in continued(states)
        if after.first is not None
    ]
    by_step = {mark.step: mark for mark in reversed([*told, *further])}
    return [by_step[step] for step in sorted(by_step)]
