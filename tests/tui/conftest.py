"""Fixtures for the tests of the whole app."""

from __future__ import annotations

import fcntl
import gc
import os
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from inside_textual import quick_pilots
from watching import NOW

from verl_tui.config import Config
from verl_tui.demo import grpo
from verl_tui.demo.grpo import GrpoRun, Simulation
from verl_tui.demo.rollouts import dump
from verl_tui.monitor import load
from verl_tui.on_demand import worker
from verl_tui.tui import monitor_app

if TYPE_CHECKING:
    from pathlib import Path


TESTS_A_SEARCH = 40
STEPS_WITH_SAMPLES = {0, *range(138, 152), *range(296, 301)}
"""At the start, around the collapse, at the end: samples take longer to read than all else."""
_TESTS = count(1)


@pytest.fixture(autouse=True)
def characters(monkeypatch):
    """The same characters whatever the machine's settings are."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    # what the user has pinned is no part of a test
    monkeypatch.setenv("VERL_TUI_STATE", "")


@pytest.fixture
def true_colour(monkeypatch):
    """All colours, as most terminals have them."""
    monkeypatch.setenv("COLORTERM", "truecolor")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Screens hear at once of what has been read for them."""
    monkeypatch.setattr(worker, "PAUSE", 0.0)


@pytest.fixture(scope="session")
def simulated(tmp_path_factory, worker_id):
    """The demo's two runs and a third one from beginning to end, the last step just made; one worker
    writes them for all.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    directory = shared / "simulated"
    with (shared / "simulated.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            _simulate(shared / "begun").rename(directory)
    return directory


def _simulate(directory: Path) -> Path:
    """Write the runs, with the samples of few steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grpo, "dump", _dump_seldom)
        Simulation(directory, 7, lambda: NOW).prepare(GrpoRun.total)
        third = GrpoRun(directory / "run_grpo_seed_8", 8)
        third.start(NOW - third.total)
        for step in range(1, third.total + 1):
            third.write(step, NOW - third.total + step)
        third.finish(NOW)
    for path in directory.rglob("*"):
        os.utime(path, (NOW, NOW))
    return directory


def _dump_seldom(path, rollouts, step, *, validated):
    if validated or step in STEPS_WITH_SAMPLES:
        dump(path, rollouts, step, validated=validated)


@pytest.fixture(scope="session")
def demo(simulated):
    """The simulated runs, read once: nothing in an app without a reading changes them."""
    return load([str(simulated)], Config(), NOW)


@pytest.fixture(scope="session")
def collapse(simulated):
    """The demo's run that collapses."""
    return load([str(simulated / "run_grpo_high_lr")], Config(), NOW)


@pytest.fixture
def apart(collapse, monkeypatch):
    """The same, with findings of which none follows from another."""
    before = collapse.verdicts["run_grpo_high_lr"]
    found = tuple(
        replace(one, consequence_of=None)
        for one in before.findings
        if one.id != "no-signal"  # its metric is a line of another one's chart
    )
    collapse.verdicts["run_grpo_high_lr"] = before._replace(findings=found)
    monkeypatch.setattr(collapse, "judge", lambda *_: True)
    yield collapse
    collapse.verdicts["run_grpo_high_lr"] = before


@pytest.fixture(autouse=True)
def somewhere(new_directory, monkeypatch):
    """Be in a directory of the test's own: screenshots and tables go to the current one."""
    monkeypatch.chdir(new_directory("here"))


@pytest.fixture(scope="session", autouse=True)
def seldom_garbage():
    """Leave all that lives long alone, as the app itself does: else the logs that all tests share
    are searched for garbage with every app, and with everything that is read again, a fifth of the
    time of these tests.
    """
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], 1_000_000)
    idle = SimpleNamespace(
        **dict.fromkeys(("freeze", "unfreeze", "collect"), lambda: 0)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor_app, "gc", idle)
        yield
    gc.set_threshold(*before)


@pytest.fixture(autouse=True)
def garbage():
    """Search for garbage after so many tests; what is none by then is not searched again."""
    yield
    if next(_TESTS) % TESTS_A_SEARCH == 0:
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def quick():
    """Have pilots wait for nothing but the app."""
    with quick_pilots():
        yield
