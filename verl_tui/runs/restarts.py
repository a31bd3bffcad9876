"""Restarts of a run: a source that starts over, or a file that resumes from an earlier step."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.runs.source_state import SourceState

SLACK = 60.0
"""Seconds by which files of one run may differ in their last change without meaning anything."""


class RestartMark(NamedTuple):
    """A restart of a source."""

    step: int
    """First step of the new segment."""
    reason: str
    path: str


def continued(states: Iterable[SourceState]) -> list[tuple[SourceState, SourceState]]:
    """Return pairs of sources in which the second continues the first one's log from an earlier
    step.

    A writer of TensorBoard events and W&B begin another file when a run is resumed: of the same
    format, with the same metrics, and a first step that the file before it had passed or reached.
    Files that begin at the same step belong side by side (training and validation): neither resumes
    the other, unless one was begun after the other had ended.
    """
    pairs = []
    for _, alike in groupby(sorted(states, key=_age), key=_kind):
        files = [state for state in alike if state.first is not None]
        pairs += [
            (before, after)
            for before, after in pairwise(files)
            if _goes_on(before, after)
        ]
    return pairs


def starts(states: Iterable[SourceState], since: float) -> bool:
    """Return whether a run has begun anew after some time, and has made no step yet."""
    return any(
        state.is_starting and (state.status.modified or 0.0) > since + SLACK
        for state in states
    )


def _goes_on(before: SourceState, after: SourceState) -> bool:
    if (
        before.first is None
        or after.first is None
        or before.top is None
        or not before.metrics & after.metrics
    ):
        return False
    if after.first == after.top == before.top:
        return False  # the model was evaluated once more after the training
    later = (
        before.ended is not None
        and after.began is not None
        and before.ended <= after.began
    )
    return (before.first < after.first or later) and after.first <= before.top + 1


def _kind(state: SourceState) -> str:
    return state.status.format


def _age(state: SourceState) -> tuple[str, float]:
    return _kind(state), state.began or 0.0


def marks(
    stated: Sequence[RestartMark], continued: Sequence[tuple[SourceState, SourceState]]
) -> list[RestartMark]:
    """Return all restarts by step, each once, also where several sources show it.

    It is one although the first record of a source is the validation before the first step.

    Args:
        stated: Restarts within one source.
        continued: See `continued`.
    """
    if not stated and not continued:
        return []
    further = [
        RestartMark(after.first, "went on in another file", after.status.path)
        for _, after in continued
        if after.first is not None
    ]
    found: list[RestartMark] = []
    for alike in _groups(sorted([*stated, *further], key=_step)):
        often = Counter(mark.path for mark in alike).most_common(1)[0][0]
        found.extend(mark for mark in alike if mark.path == often)
    return found


def _groups(ordered: Iterable[RestartMark]) -> Iterator[list[RestartMark]]:
    """Yield groups of marks of the same restart: of the same step, or of the next one if a source
    has none there.
    """
    group: list[RestartMark] = []
    for mark in ordered:
        first = group[0].step if group else mark.step
        known = any(other.path == mark.path and other.step == first for other in group)
        if mark.step > first + 1 or (mark.step == first + 1 and known):
            yield group
            group = []
        group.append(mark)
    if group:
        yield group


def _step(mark: RestartMark) -> int:
    return mark.step
