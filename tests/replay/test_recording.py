"""A recording tells what a log tells, in any portions, each thing at its moment."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonl import write_jsonl
from property_examples import examples
from recordings import BEGAN, GAP, console, file_logger, recording, tutorial

from verl_tui.config import Config
from verl_tui.monitor import Monitor, load
from verl_tui.runs.views.state import State, remaining, state

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.replay import Recording
    from verl_tui.runs.run import Run


EPOCHS = "trainer:\n  total_epochs: 3\n"


def known(monitor: Monitor) -> dict[str, Any]:
    """Return all that the screens show of runs, but for the order in which metrics came."""
    return {
        name: (monitor.verdicts[name], run_known(run))
        for name, run in monitor.runs.items()
    }


def run_known(run: Run) -> dict[str, Any]:
    series = [(key, run.series(key)) for key in run.keys]
    return {
        "series": {
            key: repr((list(one.steps), list(one.values), list(one.times)))
            for key, one in series
            if one
        },
        "indicators": run.indicators,
        "step": run.step,
        "total": run.total_steps,
        "outcome": run.outcome and run.outcome.kind,
        "settings": dict(run.settings),
        "samples": [
            (place, run.samples.kept(place), run.samples.dump(place))
            for place in run.samples.places
        ],
        "checkpoints": run.checkpoints,
        "restarts": list(run.restarts),
        "sources": {
            status.path: (
                status.records,
                status.unreadable,
                status.bytes_read,
                status.size,
            )
            for status in run.statuses
        },
    }


def monitor_at(recording: Recording, moment: float) -> Monitor:
    """Return a monitor of the records up to a moment, judged at that moment."""
    return played(recording, [moment])


def played(recording: Recording, moments: list[float]) -> Monitor:
    """Return a monitor that was given the recording up to one moment after the other."""
    monitor = Monitor(Config())
    recording.rewind()
    for moment in moments:
        for batch in recording.take(moment):
            monitor.apply(batch, moment)
        monitor.judge(moment)
    return monitor


ERROR = "ray.exceptions.RayTaskError(ValueError): no\n"


def dump(folder: Path, *steps: int) -> None:
    """Write dumps of a sample each, all at once."""
    for step in steps:
        row = {"input": "q", "output": f"a{step}", "score": 1.0, "step": step}
        path = write_jsonl(folder / f"{step}.jsonl", [row])
        os.utime(path, (BEGAN, BEGAN))


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A run of everything at once: times and none, restarts, dumps, checkpoints, settings, a
    crash.
    """
    directory = tmp_path_factory.mktemp("logs")
    resumed = directory / "resumed"
    tutorial(resumed, [*range(1, 40), *range(30, 60)], kl=0.4)
    (resumed / "config.yaml").write_text(EPOCHS)
    (resumed / "checkpoints" / "global_step_20").mkdir(parents=True)
    with (resumed / "verl_logs.jsonl").open("a", encoding="utf-8") as file:
        file.write("no JSON at all\n")
    crashed = directory / "crashed"
    console(crashed, 30, f"Traceback (most recent call last):\n{ERROR}")
    file_logger(crashed, 30)
    dump(crashed / "rollouts", 1, 2, 3, 30)
    for path in (path for path in directory.rglob("*") if path.is_file()):
        os.utime(path, (BEGAN + 6900, BEGAN + 6900))
    return directory


@pytest.fixture(scope="module")
def both(logs):
    """The recording of both runs, which went on at the same time."""
    made = recording(logs)
    assert made.together
    return made


@given(shares=st.lists(st.floats(0, 1), max_size=12))
@settings(
    max_examples=examples(0.5),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_in_any_portions_the_end_is_what_the_files_say(logs, both, shares):
    end = both.end + 1000
    moments = [both.ahead(both.start, share) for share in sorted(shares)]
    monitor = played(both, [*moments, end])
    assert known(monitor) == known(load([str(logs)], Config(), end))
    assert monitor.loaded() == 1.0
    assert any(verdict.findings for verdict in monitor.verdicts.values())


def test_nothing_is_known_before_it_happened(both):
    recorded = both.runs["resumed"]
    for moment, step in zip(recorded.moments, recorded.steps, strict=True):
        run = monitor_at(both, moment).runs["resumed"]
        assert run.step == step
        assert run.last_record == moment
        latest = max((place.step for place in run.samples.places), default=0)
        assert latest <= max(39, step)
        assert all((status.modified or 0) <= moment for status in run.statuses)
        assert (run.checkpoints != {}) == (moment >= (recorded.when(20) or math.inf))


def test_stated_times_are_the_moments_of_steps_and_settings_come_first(tmp_path):
    tutorial(tmp_path / "run", range(1, 11))
    (tmp_path / "run" / "config.yaml").write_text(EPOCHS)
    made = recording(tmp_path / "run")
    (recorded,) = made.runs.values()
    assert list(recorded.moments) == [BEGAN + GAP * place for place in range(10)]
    assert (recorded.pace, recorded.estimated) == (None, False)
    (run,) = monitor_at(made, made.start).runs.values()
    assert run.settings["trainer.total_epochs"] == 3
    assert run.step == 1


@pytest.mark.parametrize(
    ("seconds", "gap", "pace"),
    [(50.0, 50.0, "paced by timing_s/step"), (None, 1.0, "a second a step")],
)
def test_without_times_the_timer_sets_the_pace_else_a_second_a_step(
    tmp_path, seconds, gap, pace
):
    file_logger(tmp_path, 20, seconds=seconds, written=BEGAN)
    (recorded,) = recording(tmp_path).runs.values()
    assert [round(moment, 3) for moment in recorded.moments] == [
        BEGAN - gap * (20 - step) for step in range(1, 21)
    ]
    assert recorded.pace == pace


def test_dumps_alone_are_paced_by_a_second_a_step(tmp_path):
    dump(tmp_path, *range(1, 9))
    made = recording(tmp_path)
    (recorded,) = made.runs.values()
    assert list(recorded.moments) == [BEGAN - 8 + step for step in range(1, 9)]
    (run,) = monitor_at(made, BEGAN - 5).runs.values()
    assert [place.step for place in run.samples.places] == [1, 2, 3]


def test_state_and_expected_end_are_those_of_the_moment(tmp_path):
    console(tmp_path, 30, ERROR)
    made = recording(tmp_path)
    (recorded,) = made.runs.values()
    moment = recorded.moments[9] + 5
    (run,) = monitor_at(made, moment).runs.values()
    assert state(run, moment) is State.RUNNING
    assert remaining(run, moment) == pytest.approx(200.0)
    assert state(run, moment + 3000) is State.RUNNING, "more is to be played"
    (run,) = monitor_at(made, made.end).runs.values()
    assert state(run, made.end) is State.CRASHED


def test_copied_dumps_are_no_records_of_the_future(tmp_path):
    file_logger(tmp_path, 40, seconds=600.0, written=BEGAN)
    dump(tmp_path / "rollouts", *range(1, 41))
    made = recording(tmp_path)
    moment = made.when(10)
    assert moment is not None
    (run,) = monitor_at(made, moment).runs.values()
    assert (run.step, len(run.samples.places)) == (10, 10)
    assert (state(run, moment), run.last_record) == (State.RUNNING, moment)


def test_runs_of_one_time_share_the_clock_and_others_begin_together(tmp_path):
    tutorial(tmp_path / "a", range(1, 11))
    tutorial(tmp_path / "b", range(1, 11), began=BEGAN + 5 * GAP)
    tutorial(tmp_path / "c", range(1, 11), began=BEGAN + 1000 * GAP)
    made = recording(tmp_path / "a", tmp_path / "b")
    assert made.together
    begins = [recorded.moments[0] for recorded in made.runs.values()]
    assert begins == [BEGAN, BEGAN + 5 * GAP]
    made = recording(tmp_path / "a", tmp_path / "c")
    assert not made.together
    late = BEGAN + 1000 * GAP
    assert {recorded.moments[0] for recorded in made.runs.values()} == {late}
    for run in monitor_at(made, made.end).runs.values():
        series = run.series("rollout/reward_mean")
        assert series is not None
        assert series.times[0] == late
        assert run.last_record == made.end


def test_steps_are_found_by_number_and_by_share(tmp_path):
    tutorial(tmp_path / "run", range(1, 12))
    made = recording(tmp_path / "run")
    at = made.when(5)
    assert at == BEGAN + 4 * GAP
    assert made.next_step(at + 1, "run", 1) == BEGAN + 5 * GAP
    assert made.next_step(at + 1, "run", -1) == BEGAN + 3 * GAP
    assert made.next_step(at, None, 6) == made.end
    assert made.next_step(at, "run", 7) is None
    assert made.when(12) is None
    assert made.ahead(at, 0.1) == pytest.approx(at + GAP)


def test_a_second_pass_stays_behind_the_first_though_its_clock_went_back(tmp_path):
    first = tutorial(tmp_path / "run", range(1, 21)).read_text(encoding="utf-8")
    path = tutorial(tmp_path / "run", range(5, 16), began=BEGAN - 300)
    path.write_text(first + path.read_text(encoding="utf-8"), encoding="utf-8")
    made = recording(tmp_path / "run")
    os.utime(path, (made.end, made.end))
    moments = [made.ahead(made.start, share) for share in (0.1, 0.3, 0.6)]
    found = played(made, [*moments, made.end])
    whole = load([str(tmp_path / "run")], Config(), made.end)
    assert known(found) == known(whole)
