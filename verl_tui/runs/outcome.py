"""The event that ended a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import EventKind
from verl_tui.runs.restarts import SLACK, starts
from verl_tui.runs.source_state import surest

if TYPE_CHECKING:
    from collections.abc import Collection

    from verl_tui.records import Event
    from verl_tui.runs.source_state import SourceState

_REASONS = (EventKind.STOPPED, EventKind.FATAL, EventKind.TRACEBACK)
"""Events that say why a run failed."""


def outcome(states: Collection[SourceState], step: int | None) -> Event | None:
    """Return the event that says how a run ended, None where some source shows that it went on.

    Args:
        states: Of the run's sources.
        step: The step that the run has reached.
    """
    ended = [(state, state.ending) for state in states if state.ending is not None]
    found = surest(
        [ending for state, ending in ended if _holds(states, state, ending, step)]
    )
    if found is None or not found.bare:
        return found
    # The run has failed: any log that says why is believed, wherever that log has got to.
    return surest([ending for _, ending in ended if _is_reason(ending)]) or found


def _is_reason(ending: Event) -> bool:
    return not ending.bare and ending.kind in _REASONS


def _holds(
    states: Collection[SourceState], state: SourceState, ending: Event, step: int | None
) -> bool:
    """Return whether there is no sign that the run went on after a source's ending."""
    modified = state.status.modified or 0.0
    if starts(states, modified):
        return False
    if ending.step is not None:
        return step is None or step <= ending.step
    written = [
        other.status.modified or 0.0 for other in states if other.step is not None
    ]
    return max(written, default=0.0) <= modified + SLACK
