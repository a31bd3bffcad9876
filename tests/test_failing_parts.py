"""A part that fails is shown as failed, and costs no other: sources, runs, threads, drivers."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from command_line import placed

from verl_tui.cli import main
from verl_tui.config import Config
from verl_tui.guard import Guard, Orders
from verl_tui.monitor import Monitor, load
from verl_tui.reading import ReadingThreads
from verl_tui.records import Batch, GpuReading, MetricRows, SourceStatus
from verl_tui.runs.run import Run
from verl_tui.sources.host import gpus
from verl_tui.sources.host.gpus import GpuSource
from verl_tui.sources.host.processes import Writers

NOW = 1_800_000_000.0
PATIENCE = 30.0


def batch(path: str, *steps: int, run: str = "run_1") -> Batch:
    """Return a batch of a source of a run."""
    values = tuple(float(step) for step in steps)
    rows = MetricRows(("score",), steps, (values,), tuple(range(len(steps))))
    return Batch(run, SourceStatus(path, "test", modified=NOW), (rows,))


@pytest.fixture
def logs(tmp_path):
    for name in ("good", "bad"):
        folder = tmp_path / name
        folder.mkdir()
        form = '{{"step": {}, "data": {{"critic/score/mean": 0.5}}}}\n'
        lines = map(form.format, range(1, 9))
        (folder / "log.jsonl").write_text("".join(lines))
    return tmp_path


def test_records_that_cannot_be_taken_in_cost_their_source_alone(monkeypatch):
    apply = Run.apply

    def fails(self: Run, batch: Batch, now: float) -> None:
        if batch.records and batch.status.path == "bad":
            raise OverflowError("too large")
        apply(self, batch, now)

    monkeypatch.setattr(Run, "apply", fails)
    monitor = Monitor(Config())
    monitor.apply(batch("bad", 1, 2), NOW)
    monitor.apply(batch("good", 1, 2, 3), NOW)
    monkeypatch.undo()
    monitor.apply(batch("bad", 4, 5), NOW)
    run = monitor.runs["run_1"]
    assert run.step == 3, "what lies behind a gap would be wrong"
    problems = {
        path: state.status.problem and placed(state.status.problem)
        for path, state in run.sources.items()
    }
    assert problems == {
        "bad": "cannot be taken in any further: OverflowError in PLACE: too large",
        "good": None,
    }


def test_a_failed_rule_is_said_by_check(logs, monkeypatch, asked):
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("verl_tui.health.diagnoses.life.waiting", fails)
    assert "1 rule failed, " in asked("check", logs / "good", code=0).out
    said = asked("check", logs / "good", "-v", code=0).out
    assert "1 rule failed" in said
    assert "hang: failed: ZeroDivisionError in PLACE" in placed(said)


def test_a_run_that_cannot_be_guarded_leaves_the_others_guarded(logs, monkeypatch):
    from verl_tui.runs.views.state import State, state

    def fails(run: Run, now: float) -> State:
        if run.name == "bad":
            raise KeyError("state")
        return state(run, now)

    monkeypatch.setattr("verl_tui.guard.state", fails)
    guard = Guard(load([str(logs)], Config(), NOW), Orders())
    events = [*guard.tick(NOW), *guard.tick(NOW + 1)]
    by_run: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        by_run.setdefault(event["run"], []).append(event)
    assert [event["event"] for event in by_run["good"]][:2] == ["watching", "state"]
    (reported,) = by_run["bad"]
    assert reported["event"] == "unguarded"
    assert placed(reported["message"]) == "cannot be guarded: KeyError in PLACE"


def test_reading_goes_on_after_an_error_that_no_source_kept_to_itself(
    logs, monkeypatch
):
    failures = [RuntimeError("no threads")]

    def fails_once(*_: object) -> None:
        if failures:
            raise failures.pop()

    monkeypatch.setattr(Writers, "want", fails_once)
    monitor, news = Monitor(Config()), threading.Event()
    config = Config(gpu_interval=60.0)
    reading = ReadingThreads([str(logs)], config, clock=time.time, notify=news.set)
    reading.start()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not monitor.problems:
        news.wait(0.1)
        for one in reading.take():
            monitor.apply(one, time.time())
    reading.stop()
    (said,) = monitor.problems
    why = "RuntimeError in PLACE: no threads"
    assert placed(said) == f"reading was interrupted, and goes on: {why}"
    steps = {run.name: run.step for run in monitor.runs.values()}
    assert steps == {"good": 8, "bad": 8}


@pytest.mark.parametrize(
    "command",
    ["doctor {}", "bundle {} --list", "export prometheus {} --textfile {}.prom", "--snapshot {}.txt {}"],
)  # fmt: skip
def test_a_driver_that_hangs_holds_nothing_up(command, tmp_path, monkeypatch, capsys):
    log = tmp_path / "train.log"
    log.write_text("step:1 - critic/score/mean:0.5\n")
    over = threading.Event()

    def hangs(_source: GpuSource, now: float) -> GpuReading:
        over.wait()
        return GpuReading(now)

    monkeypatch.setattr(GpuSource, "read", hangs)
    monkeypatch.setattr(gpus, "PATIENCE", 0.01)
    try:
        assert main(command.format(log, log).split()) in (0, 1)
    finally:
        over.set()
    if command.startswith("doctor"):
        assert "the NVIDIA driver does not answer" in capsys.readouterr().out
