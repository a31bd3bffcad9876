"""Which run is shown first, and which come last in the list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from run_views import NOW, make_run

from verl_tui.health.finding import Finding, Moment, Severity, Verdict
from verl_tui.records import Batch, SourceStatus
from verl_tui.rendering.session.run_order import ORDERS, first_to_show, ordered
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor

CRITICAL = Verdict((Finding("crash", Severity.CRITICAL, "it crashed"),))
WARNING = Verdict((Finding("kl-high", Severity.WARNING, "KL is high"),))


def written(name: str, ago: float, steps: int = 5) -> Run:
    run = make_run(name, steps, quiet=ago)
    run.apply(
        Batch(name, SourceStatus(f"{name}.log", "console", modified=NOW - ago)), NOW
    )
    return run


def notes() -> Run:
    run = Run("INDEX")
    read = SourceStatus("INDEX.md", "console", size=9, bytes_read=9, modified=NOW)
    run.apply(Batch("INDEX", read._replace(unheld=True)), NOW)
    return run


def first(*runs: Run, **verdicts: Verdict) -> str | None:
    monitor = SimpleNamespace(runs={run.name: run for run in runs}, verdicts=verdicts)
    return first_to_show(cast("Monitor", monitor), NOW)


def test_a_critical_run_is_shown_first_however_old_it_is():
    runs = written("a", 5.0), written("b", 90_000.0), written("c", 5.0)
    assert first(*runs, b=CRITICAL, c=WARNING) == "b"


def test_of_several_critical_runs_the_newest_is_shown():
    runs = written("a", 9_000.0), written("b", 500.0), written("c", 5.0)
    assert first(*runs, a=CRITICAL, b=CRITICAL) == "b"


def test_a_run_with_steps_is_shown_before_notes():
    assert first(notes(), written("a", 9_000.0)) == "a"
    assert first(notes()) == "INDEX"
    assert first() is None


@pytest.mark.parametrize("order", ORDERS)
def test_what_is_no_training_is_last_in_every_order(order):
    listed = ordered(
        [notes(), written("a", 9_000.0), written("z", 5.0)], order, Moment(NOW, {})
    )
    assert listed[-1].name == "INDEX"
