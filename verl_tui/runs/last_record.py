"""The time of a run's newest record of training: by arrival, by its own statement, or by its file.

A copy of a log has a new file time. So if records state times that count from the epoch (event
files, W&B, trackio), these take precedence over the times of files that show no further step: such
a file has a new time when it is copied, and whenever anything else is printed into it.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.runs.source_state import SourceState


class LastRecord(NamedTuple):
    """The newest record of training."""

    time: float | None = None
    """Seconds since the epoch, None where unknown."""
    by_file: bool = False
    """True if it is dated by a file's time alone, which may be that of a copy."""


def last_record(sources: Iterable[SourceState], sampled: int | None) -> LastRecord:
    """Return when the newest record of training was written.

    Args:
        sources: All sources of a run.
        sampled: The newest step with samples: their files show no other.
    """
    dated = [(source.last, source) for source in sources if source.last is not None]
    stated = [_step(source, None) for _, source in dated if source.life.absolute]
    reached = max(stated, default=-1)
    if reached >= 0:
        dated = [pair for pair in dated if _holds(pair[1], sampled, reached)]
    if not dated:
        return LastRecord()
    time, newest = max(dated, key=itemgetter(0))
    confirmed = newest.life.agrees(newest.status.modified)
    return LastRecord(time, _by_file(newest) and not confirmed)


def _holds(source: SourceState, sampled: int | None, reached: int) -> bool:
    """Return whether a time counts beside stated ones up to a step: a file's time only beyond
    it.
    """
    return not _by_file(source) or _step(source, sampled) > reached


def _by_file(source: SourceState) -> bool:
    return source.life.arrived is None and not source.life.absolute


def _step(source: SourceState, sampled: int | None) -> int:
    step = source.step if source.step is not None else sampled
    return -1 if step is None else step
