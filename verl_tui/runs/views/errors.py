"""The errors that a run's processes reported, and those that no step came after."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.runs.run import Run
    from verl_tui.runs.troubles import Trouble


def worker_errors(run: Run) -> list[tuple[str, Trouble]]:
    """Return the exceptions of a run's workers with the path of their log, the most frequent
    first.
    """
    found = [
        (path, trouble)
        for path, state in run.sources.items()
        for trouble in state.troubles
        if trouble.of_worker
    ]
    return sorted(found, key=lambda one: -one[1].count)


def last_troubles(run: Run) -> list[tuple[str, Trouble]]:
    """Return all trouble behind the last step of its log, in its order: the rest was survived."""
    found = [
        (path, trouble)
        for path, state in run.sources.items()
        for trouble in state.troubles
        if trouble.step == state.step
    ]
    return sorted(found, key=lambda one: one[1].fresh.line)


def last_errors(run: Run) -> list[tuple[str, Trouble]]:
    """Return the exceptions of workers behind the last step of their log."""
    return [one for one in last_troubles(run) if one[1].of_worker]
