"""The file and the line at which the log is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.consequences import new_lines
from verl_tui.health.root_cause import root_cause
from verl_tui.sources import pipe
from verl_tui.sources.formats import rollouts, tensorboard, wandb
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.tables import parquet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.records import SourceStatus
    from verl_tui.runs.run import Run

_NO_TEXT = {tensorboard.name, wandb.name, rollouts.name, parquet.name, "checkpoints"}
"""Formats that are binary, or directories."""


class LogTarget(NamedTuple):
    """A position in a run's logs."""

    path: str | None = None
    """The file, None for the first."""
    line: int | None = None
    """Number of the line."""
    step: int | None = None
    """Step of the line, if its number is unknown."""


def texts(run: Run | None) -> Sequence[SourceStatus]:
    """Return the sources of a run that are text, consoles first."""
    statuses = run.statuses if run else ()
    # text from a pipe is kept nowhere
    found = (
        status
        for status in statuses
        if status.format not in _NO_TEXT and status.path != str(pipe.PATH)
    )
    return sorted(found, key=lambda one: one.format != console.name)


def has_log(run: Run) -> bool:
    """Return whether a run without charts has text to show in their place."""
    return any(status.format != "settings" and status.size for status in texts(run))


def log_target(
    run: Run | None, finding: Finding | None, cursor: int | None
) -> LogTarget:
    """Return the position at which the log is opened.

    Args:
        run: The shown run.
        finding: The chosen finding: its first line of trouble that is new there, else its step.
        cursor: Step under the charts' cursor.
    """
    if not finding:
        return LogTarget(step=cursor)
    if run and finding.id == "crash" and run.outcome:
        return error_target(run)
    since = finding.since_step
    if since is None:
        return LogTarget(step=finding.step)
    new = _new_target(run, finding.key, since) if run else None
    return new or LogTarget(step=since)


def _new_target(run: Run, key: str | None, since: int) -> LogTarget | None:
    """Return the first line of trouble that is new since a step, None if none is."""
    series = run.series(key) if key else None
    if not series:
        return None
    new = (one for one in new_lines(run, series.steps, since) if one.line)
    return next((LogTarget(one.path, line=one.line) for one in new), None)


def error_target(run: Run) -> LogTarget:
    """Return the line that shows why a run ended, else how; the newest of its log if none does."""
    event = run.outcome
    if not event:
        return LogTarget()
    cause = root_cause(run, event.phase)
    if cause:
        return LogTarget(cause.path, line=cause.event.line or None)
    paths = (path for path, state in run.sources.items() if state.ending is event)
    return LogTarget(next(paths, None), line=event.line or None)
