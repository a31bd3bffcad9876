"""States of runs that real trainers made, fresh, after two minutes and after two hours, against
what is known of them.

Without them these tests skip.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest
from log_reading import MADE

from verl_tui.config import Config
from verl_tui.health.finding import Severity
from verl_tui.monitor import load
from verl_tui.runs.views.state import State, remaining, state

if TYPE_CHECKING:
    from pathlib import Path

WRITTEN = 1_800_000_000.0
AGES = (5.0, 120.0, 7200.0)
JUDGE = "judge model endpoint returned 503"


class Truth(NamedTuple):
    """How a run ended."""

    step: int | None
    cause: str = ""
    """A part of what its crash is to name; empty where it finished."""


RUNS = {
    "lf93_ppo": Truth(100),
    "lf_dpo": Truth(200),
    "lf_dpo_raise": Truth(47, JUDGE),
    "lf_kto": Truth(60),
    "swift_log1": Truth(123, "Size does not match at dimension 1"),
    "swift_raise": Truth(31, JUDGE),
    "swift_resume": Truth(80),
    "t014_eval": Truth(20, "'list' object has no attribute 'get'"),
    "t014_log1": Truth(300),
    "t019_eval": Truth(100),
    "t019_log1": Truth(300),
    "t019_raise": Truth(41, JUDGE),
    "t019_resume": Truth(160),
    "t019_unbuf": Truth(100),
    "t116_rloo_raise": Truth(62, JUDGE),
    "t116_trackio_live": Truth(44, JUDGE),
    "verl061_collapse": Truth(30),
    "verl061_defaults": Truth(15),
    "verl061_healthy": Truth(40),
    "verl061_ppo": Truth(20),
    "verl061_raise": Truth(11, JUDGE),
    "verl061_resume": Truth(30),
    "verl061_sigterm": Truth(11, "SIGTERM"),
    "verl061_startfail_ray": Truth(None, "Attempting to start raylet with 1 GPU"),
    "verl091_healthy": Truth(22),
    "verl091_raise": Truth(11, JUDGE),
}


def copied(name: str, tmp_path: Path) -> Path:
    """Return a copy of a run whose files look as if the last of them had been written at
    `WRITTEN`.
    """
    if not (MADE / name).is_dir():
        pytest.skip(f"no {MADE / name}: set VERL_TUI_LOGS")
    place = tmp_path / name
    shutil.copytree(MADE / name, place, symlinks=True)
    there = place.rglob("*")
    files = [path for path in there if path.is_file() and not path.is_symlink()]
    later = WRITTEN - max(path.stat().st_mtime for path in files)
    for path in files:
        at = path.stat().st_mtime + later
        os.utime(path, (at, at))
    return place


def seldom(*cases: object, unless: bool) -> object:
    """Return a case that is looked at with --thorough only, unless something holds."""
    return pytest.param(*cases, marks=() if unless else pytest.mark.thorough)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        # of every third run, in turns the console or all of it
        seldom(name, file, unless=at % 6 == turn)
        for at, name in enumerate(RUNS)
        for turn, file in ((1, "train.log"), (5, ""))
    ],
)
def test_a_run_is_what_became_of_it_however_old_it_is(name, file, tmp_path):
    path, truth = copied(name, tmp_path) / file, RUNS[name]
    opened = load([str(path)], Config(), WRITTEN + AGES[0])
    opened_late = load([str(path)], Config(), WRITTEN + AGES[-1])
    for monitor, age in (*((opened, age) for age in AGES), (opened_late, AGES[-1])):
        monitor.judge(WRITTEN + age)
        (run,) = monitor.runs.values()
        ended = State.CRASHED if truth.cause else State.FINISHED
        assert state(run, WRITTEN + age) is ended, age
        assert run.step == truth.step
        assert remaining(run, WRITTEN + age) is None
        findings = monitor.verdicts[run.name].findings
        crashes = [one for one in findings if one.id in ("crash", "hang")]
        assert len(crashes) == (1 if truth.cause else 0)
        for crash in crashes:
            assert (crash.id, crash.severity) == ("crash", Severity.CRITICAL)
            assert truth.cause in crash.message


@pytest.mark.parametrize(
    "name", [seldom(name, unless=at % 8 == 1) for at, name in enumerate(RUNS)]
)
def test_any_file_of_a_run_alone_tells_nothing_wrong_of_its_end(name, tmp_path):
    place, truth = copied(name, tmp_path), RUNS[name]
    ends = {State.ENDED, State.CRASHED if truth.cause else State.FINISHED}
    for path in sorted(place.rglob("*")):
        dumped = path.parent.name in ("rollouts", "validations")
        if dumped or path.name == "train.log" or not path.is_file():
            continue
        monitor = load([str(path)], Config(), WRITTEN + AGES[0])
        for run in monitor.runs.values():
            for age in AGES if run.step is not None else ():
                monitor.judge(WRITTEN + age)
                now = state(run, WRITTEN + age)
                found = monitor.verdicts[run.name].findings
                assert "hang" not in {one.id for one in found}, (path, age)
                early = now is State.RUNNING and age < 3600
                assert early or now in ends, (path, age, now)
