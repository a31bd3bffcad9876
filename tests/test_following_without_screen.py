"""Runs that are followed without a screen: for exports that go on, and for the guard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from clock import Clock
from ordinary_rights import ordinary_rights

from verl_tui.config import Config
from verl_tui.exporters.following import follow
from verl_tui.monitor import Monitor
from verl_tui.reading import refreshes
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0
PATIENCE = 30.0
"""Seconds after which what has not come will not."""


@pytest.fixture
def log(tmp_path):
    """A run whose newest step is a second old."""
    path = tmp_path / "run.jsonl"
    append(path, *range(1, 21))
    return path


def append(path: Path, *steps: int) -> None:
    with path.open("a", encoding="utf-8") as file:
        for step in steps:
            record = {
                "step": step,
                "data": {"critic/score/mean": step / 100, "timing_s/step": 2.0},
            }
            file.write(json.dumps(record) + "\n")
    os.utime(path, (NOW - 1, NOW - 1))


@pytest.mark.parametrize(
    ("each", "found"), [(5.0, State.ENDED), (3600.0, State.RUNNING)]
)
def test_silence_counts_only_while_somebody_looks(log, each, found):
    clock, monitor = Clock(NOW), Monitor(Config())
    following = refreshes(
        [str(log)], monitor, between=0.0, clock=clock, stop=threading.Event().is_set
    )
    with log.open("a"):
        next(following)
        while clock.now < NOW + 1000:  # a host that sleeps for an hour looks once
            clock.now += each
            next(following)
    following.close()
    (run,) = monitor.runs.values()
    assert state(run, clock.now) is found


@pytest.mark.parametrize(
    ("held", "found"), [(True, State.RUNNING), (False, State.ENDED)]
)
def test_the_first_look_knows_who_writes(log, held, found):
    os.utime(log)
    monitor = Monitor(Config())
    following = refreshes([str(log)], monitor, clock=time.time, stop=lambda: False)
    with log.open("a") if held else nullcontext():
        next(following)
    following.close()
    (run,) = monitor.runs.values()
    assert state(run, time.time()) is found


def test_a_log_that_may_not_be_read_any_more_holds_up_no_other(log, tmp_path):
    closed, end = tmp_path / "closed" / "run.jsonl", threading.Event()
    closed.parent.mkdir()
    append(closed, *range(1, 21))
    monitor = Monitor(Config(poll_interval=0.01))
    with ordinary_rights(), late(end):
        following = refreshes(
            [str(log), str(closed)],
            monitor,
            between=0.0,
            clock=Clock(NOW),
            stop=end.is_set,
        )
        next(following)
        append(closed, *range(21, 41))
        closed.chmod(0)
        while not any(
            one.problem for run in monitor.runs.values() for one in run.statuses
        ):
            next(following)
        append(log, 21)
        while max(run.step or 0 for run in monitor.runs.values()) < 21:
            next(following)
        following.close()


def test_the_newest_values_are_written_as_they_come_however_long_the_interval_is(log):
    stop = threading.Event()
    seen: list[int | None] = []

    with late(stop):
        for monitor in follow(
            [str(log)],
            Config(),
            interval=3600.0,
            clock=Clock(NOW),
            stop=stop.is_set,
            newest=True,
        ):
            (run,) = monitor.runs.values()
            seen.append(run.step)
            if run.step is None or run.step >= 22:
                stop.set()
            else:
                append(log, run.step + 1)
    assert seen == [20, 21, 22]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("watch --events", "nothing readable so far in notes; it is waited for"),
        ("guard", "nothing readable so far in notes; it is waited for"),
        ("export tensorboard --follow -o board", "nothing to export so far"),
        ("export prometheus --follow --textfile x.prom", "nothing to export so far"),
    ],
)
def test_files_without_a_training_are_waited_for_and_that_is_said(
    tmp_path, words, said
):
    notes = tmp_path / "notes.txt"
    notes.write_text("buy milk\n")
    os.utime(notes, (1e9, 1e9))
    command = [sys.executable, "-m", "verl_tui", *words.split(), "notes.txt"]
    with subprocess.Popen(
        command, cwd=tmp_path, text=True, stdout=-3, stderr=-1
    ) as following:
        assert following.stderr is not None
        assert following.stderr.readline() == f"verl-tui: {said}\n"
        assert following.poll() is None
        following.terminate()
        assert following.stderr.read() == ""


class late:  # noqa: N801 - reads as a statement
    """Sets an event where something does not come."""

    def __init__(self, event: threading.Event) -> None:
        self._timer = threading.Timer(PATIENCE, event.set)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
