"""Why a screen shows nothing, or not all: what is said of sources."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from run_views import ACTIONS

from verl_tui.records import (
    Batch,
    Event,
    EventKind,
    Phase,
    Progress,
    SourceStatus,
    Unreadable,
)
from verl_tui.rendering.session.snapshot import View, nothing_yet, source_pieces
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from verl_tui.monitor import Monitor

NOW = 1_800_000_000.0

LOG = SourceStatus(
    "logs/a/train.log", "verl console", bytes_read=1500, size=4000, modified=NOW - 200
)
GONE = SourceStatus("logs/a/m.jsonl", "verl file logger", problem="vanished", size=10)
HOME = SourceStatus("logs/a", "checkpoints")


def run_of(*statuses: SourceStatus) -> Run:
    run = Run("a")
    for status in statuses:
        broken = tuple(
            Unreadable(n + 1, "no JSON", "x") for n in range(status.unreadable)
        )
        run.apply(Batch("a", status, broken), NOW)
    return run


def view_of(run: Run | None, **more: Any) -> View:
    monitor = SimpleNamespace(
        runs={}, verdicts={}, sentences=("x: gone", "y: nothing matches yet")
    )
    return View(cast("Monitor", monitor), run, NOW, **more)


def test_without_a_run_what_was_looked_for():
    assert nothing_yet(view_of(None)) == (
        "no run yet\nx: gone\ny: nothing matches yet\n"
        "a run appears here as soon as it writes a log; help for help, quit to quit"
    )
    view = view_of(None, loading=True)
    assert nothing_yet(view).startswith("looking for logs")
    found = cast("Any", view.monitor)
    found.runs, found.loaded = {"a": run_of(LOG)}, lambda: 0.548
    assert nothing_yet(view).startswith("reading logs, 54%")


def test_without_a_step_what_each_source_has_brought():
    assert nothing_yet(view_of(run_of(LOG, HOME, GONE))).split("\n") == [
        "no step yet",
        "train.log: verl console, 1.5 kB read of 4.0 kB · last written 3m ago",
        "m.jsonl: vanished",
    ]


@pytest.mark.parametrize(
    ("step", "phase", "words"),
    [
        (None, Phase("loading the model", "init_model()"), "before the first step while loading"),
        (None, None, "before the first step\n"),
        (6, Phase("saving a checkpoint", "_save_checkpoint()"), "at step 6 while saving a"),
        (6, None, "at step 6; the log has no metrics\n"),
    ],
)  # fmt: skip
def test_a_crash_without_metrics_says_what_the_run_was_doing(step, phase, words):
    run = Run("a")
    error = Event(EventKind.FATAL, "RuntimeError: no", 3, phase=phase)
    run.apply(Batch("a", LOG, (Progress(step, 10), error)), NOW)
    assert nothing_yet(view_of(run)).startswith(f"crashed {words}")


def test_the_status_line_says_what_is_wrong_first():
    assert list(source_pieces(run_of(LOG, HOME), ACTIONS)) == [], (
        "what is well needs no word"
    )
    bad = SourceStatus("b.jsonl", "verl file logger", size=9, unreadable=1200)
    assert list(source_pieces(run_of(LOG, bad), ACTIONS)) == [
        ("1,200 unreadable lines (sources)", "warning")
    ]
    one = SourceStatus("b.jsonl", "verl file logger", size=9, unreadable=1)
    assert list(source_pieces(run_of(LOG, one), ACTIONS)) == [
        ("1 unreadable line (sources)", "warning")
    ]
    assert list(source_pieces(run_of(LOG, GONE), ACTIONS)) == [
        ("m.jsonl: vanished (sources)", "critical")
    ]
    assert list(source_pieces(run_of(HOME), ACTIONS)) == []
