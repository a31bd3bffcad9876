"""Errors that workers report again and again while the run goes on: the driver may die of them
later.
"""

from __future__ import annotations

from pathlib import PurePath
from statistics import median
from typing import TYPE_CHECKING

from verl_tui.health.diagnoses.diagnosis import Told, diagnosis
from verl_tui.runs.views.signs_of_life import worker_errors
from verl_tui.runs.views.state import State
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.health.guide import Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.troubles import Trouble

_BEFORE = 20
"""Steps before the first error that show the usual number of samples."""


@diagnosis("worker-errors")
def repeated_errors(context: RuleContext, rule: Rule) -> Told | None:
    """Find the workers' most frequent error, the last of them lately, its count, and the samples
    that it costs.
    """
    run = context.run
    if context.state in (State.CRASHED, State.FINISHED):
        return None
    lately = (run.step or 0) - rule.window
    for path, error in worker_errors(run):
        if (error.step or 0) >= lately and error.count >= rule.count:
            return _told(run, path, error)
    return None


def _told(run: Run, path: str, error: Trouble) -> Told:
    first, last = error.first, error.last
    lines = f"{one_line(PurePath(path).name, 60)}:{first.line}"
    if last.line != first.line:
        lines += f" to {last.line}"
    return Told(
        {
            "actor": one_line(first.actor),
            "count": error.count,
            "text": one_line(first.text, 200),
        },
        (f"{lines}: {one_line(first.text, 160)}", _cost(run, error.since)),
        since=error.since,
        step=error.step,
    )


def _cost(run: Run, since: int | None) -> str | None:
    """Return in words how many samples a step has lost since the first error; None if unknown or
    none.
    """
    series = run.present("samples/count")
    if series is None or since is None:
        return None
    pairs = list(zip(series.steps, series.values, strict=True))
    before = [value for step, value in pairs if since - _BEFORE <= step <= since]
    after = [value for step, value in pairs if step > since]
    if not before or not after or min(after) >= median(before):
        return None
    return f"samples a step: {median(before):,.0f} before, {after[-1]:,.0f} at step {pairs[-1][0]}"
