"""The errors that a run's workers reported, and those that no step came after."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.runs.reported_errors import ReportedError
    from verl_tui.runs.run import Run


def worker_errors(run: Run) -> list[tuple[str, ReportedError]]:
    """Return the errors of a run's workers with the path of their log, the most frequent first."""
    found = [
        (path, error)
        for path, state in run.sources.items()
        for error in state.errors
        if error.first.actor
    ]
    return sorted(found, key=lambda one: -one[1].count)


def last_errors(run: Run) -> list[tuple[str, ReportedError]]:
    """Return those behind the last step of their log: the others were caught."""
    return [
        (path, error)
        for path, error in worker_errors(run)
        if error.step == run.sources[path].step
    ]
