"""What the sources of a run show together: its restarts, how it ended, its newest record.

It restarts where a source starts over, or a file resumes from an earlier step. A copy of a log has
a new file time, so if records state times that count from the epoch (event files, W&B, trackio),
these take precedence over the times of files that show no further step: such a file has a new time
when it is copied, and whenever anything else is printed into it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

from verl_tui.records import Event, EventKind
from verl_tui.runs.source_state import SourceState, surest

_SLACK = 60.0
"""Seconds by which files of one run may differ in their last change without meaning anything."""
_REASONS = (EventKind.STOPPED, EventKind.FATAL, EventKind.TRACEBACK)
"""Events that say why a run failed."""


# -- restarts --------------------------------------------------------------------------------------


_ANOTHER = "went on in another file"


class RestartMark(NamedTuple):
    """A restart of a source; the last step of the segment before, and the time that its last row
    states.
    """

    step: int
    """First step of the new segment."""
    reason: str
    path: str
    reached: int | None = None
    ended: float | None = None


def continued(states: Iterable[SourceState]) -> list[tuple[SourceState, SourceState]]:
    """Return pairs of sources in which the second continues the first one's log from an earlier
    step.

    A writer of TensorBoard events and W&B begin another file when a run is resumed: of the same
    format, with the same metrics, after the file before it had ended, or with a first step that
    this had passed or reached.
    Files that begin at the same step belong side by side (training and validation): neither resumes
    the other, unless one was begun after the other had ended.
    """
    stepped = [state for state in states if state.first is not None]
    ordered = sorted(
        stepped, key=lambda state: (state.status.format, state.began or 0.0)
    )
    return [
        (before, after)
        for before, after in pairwise(ordered)
        if before.status.format == after.status.format
        and not _is_aside(before, after)
        and _continues(before, after)
    ]


def _is_aside(newer: SourceState, older: SourceState) -> bool:
    """Return whether a source began anew while we watched, after the other had ended: a rotation
    put that aside.
    """
    last = older.life.arrived or 0.0
    return newer.segment > 0 and (newer.life.arrived or 0.0) > last


def _continues(before: SourceState, after: SourceState) -> bool:
    begin, top = after.first or 0, before.top or 0
    if not before.metrics & after.metrics or begin == after.top == top:
        return False  # the second: the model was evaluated once more after the training
    later = (before.ended or math.inf) <= (after.began or -math.inf)
    return later or (before.first or 0) < begin <= top + 1


def starts(states: Iterable[SourceState], since: float) -> bool:
    """Return whether a run has started over after some time, and has made no step yet."""
    return any(
        state.is_starting and (state.status.modified or 0.0) > since + _SLACK
        for state in states
    )


def marks(
    stated: Sequence[RestartMark], continued: Sequence[tuple[SourceState, SourceState]]
) -> list[RestartMark]:
    """Return all restarts by step, each once, also where several sources show it, one of them a
    step later: its first record is not the validation before the first step.

    Args:
        stated: Restarts within one source.
        continued: See `continued`.
    """
    further = [
        RestartMark(after.first, _ANOTHER, after.status.path, before.top, before.ended)
        for before, after in continued
        if after.first is not None
    ]
    found: list[RestartMark] = []
    for mark in sorted([*stated, *further], key=attrgetter("step")):
        others = (one.step for one in found if one.path != mark.path)
        if mark.step - max(others, default=-math.inf) > 1:
            found.append(mark)
    return found


# -- the end ---------------------------------------------------------------------------------------


def outcome(states: Collection[SourceState], step: int | None) -> Event | None:
    """Return the event that says how a run ended, None where some source shows that it went on.

    Args:
        states: Of the run's sources.
        step: The step that the run has reached.
    """
    ended = [(state, state.ending) for state in states if state.ending]
    if not ended:
        return None
    found = surest(end for state, end in ended if _is_last(states, state, end, step))
    if not found or not found.bare:
        return found
    # The run has failed: any log that says why is believed, wherever that log has got to.
    return surest(filter(_is_reason, (end for _, end in ended))) or found


def _is_reason(ending: Event) -> bool:
    return not ending.bare and ending.kind in _REASONS


def _is_last(
    states: Collection[SourceState], state: SourceState, ending: Event, step: int | None
) -> bool:
    """Return whether there is no sign that the run went on after a source's ending."""
    modified = state.status.modified or 0.0
    if starts(states, modified):
        return False
    if ending.step is not None:
        return step is None or step <= ending.step
    stepped = [other for other in states if other.step is not None]
    written = [other.status.modified or 0.0 for other in stepped]
    return max(written, default=0.0) <= modified + _SLACK


# -- the newest record -----------------------------------------------------------------------------


def last_record(
    sources: Iterable[SourceState], sampled: int | None
) -> tuple[float | None, bool]:
    """Return when the newest record of training was written, None where unknown; and whether it is
    dated by a file's time alone, which may be that of a copy.

    Args:
        sources: All sources of a run.
        sampled: The newest step with samples: their files show no other.
    """
    dated = [
        (time, one)
        for one in sources
        if (time := one.life.last(one.status.modified)) is not None
    ]
    stated = [_reached(source, None) for _, source in dated if source.life.absolute]
    top = max(stated, default=-1)
    if top >= 0:
        dated = [pair for pair in dated if _counts(pair[1], sampled, top)]
    if not dated:
        return None, False
    time, newest = max(dated, key=itemgetter(0))
    return time, _by_file(newest) and not newest.life.agrees(newest.status.modified)


def _counts(source: SourceState, sampled: int | None, top: int) -> bool:
    """Return whether a time counts beside stated ones up to a step: a file's only beyond it."""
    return not _by_file(source) or _reached(source, sampled) > top


def _by_file(source: SourceState) -> bool:
    return source.life.arrived is None and not source.life.absolute


def _reached(source: SourceState, sampled: int | None) -> int:
    step = source.step if source.step is not None else sampled
    return -1 if step is None else step
