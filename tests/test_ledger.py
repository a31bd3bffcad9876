"""The ledger of hours, on runs whose losses are known as they were made so."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from jsonl import write_jsonl
from log_reading import read_run
from scenarios.failures import FAILURES
from scenarios.worlds import NOW, World, dump, prose, verl
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.summary import scalar

from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.ledger import in_words, ledger, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.runs.run import Run

GUIDE = load_guide()
STEPS, STEP = 100, 60.0
LOGGED = (
    *("critic/score/mean", "actor/pg_loss", "actor/ppo_kl", "actor/grad_norm", "actor/entropy"),
    *("response_length/mean", "response_length/clip_ratio"),
)  # fmt: skip
GPUS = {"trainer.n_gpus_per_node": 8, "trainer.nnodes": 2}


def world(steps: int = STEPS, timed: Sequence[float] = ()) -> World:
    """Return a healthy run of verl, whose steps take as long as is said; each makes one minute."""
    made = verl(steps, random.Random(7))
    made.columns = {key: made.columns[key] for key in LOGGED}
    made.columns["timing_s/step"] = list(timed) or [STEP] * steps
    made.settings |= {**GPUS, "data.train_batch_size": 128}
    return made


def written(
    made: World, folder: Path, *passes: tuple[Sequence[int], Sequence[float]]
) -> Path:
    """Write event files, one for each process: its steps, and when each was done."""
    folder.mkdir()
    for steps, ends in passes:
        with TemporaryDirectory() as directory:
            writer = EventsWriter(str(Path(directory) / "run"))
            for step, end in zip(steps, ends, strict=True):
                for key, column in made.columns.items():
                    if (value := column[step - 1]) is not None:
                        event = Event(wall_time=end, step=step)
                        event.summary.CopyFrom(scalar(key, value))
                        writer.write_event(event)
            writer.close()
            (found,) = Path(directory).iterdir()
            name = folder / f"events.out.tfevents.{int(ends[0])}.host.{len(ends)}.0"
            name.write_bytes(found.read_bytes())
            os.utime(name, (ends[-1], ends[-1]))
    settings = (f"{key}: {json.dumps(it)}\n" for key, it in made.settings.items())
    (folder / "config.yaml").write_text("".join(settings))
    for step, records in made.dumps.items():
        write_jsonl(folder / "rollouts" / f"{step}.jsonl", records)
    return folder


def clock(*gaps: float) -> list[float]:
    """Return moments that lie so far apart, the first so long after the beginning."""
    return list(itertools.accumulate(gaps, initial=NOW))[1:]


def told(run: Run, now: float | None = None) -> dict[str, Any]:
    at = (run.last_record or NOW) if now is None else now
    found = ledger(run, Judge(GUIDE, run).verdict(at), GUIDE, at)
    assert found is not None
    json.dumps(found, allow_nan=False)
    assert sum(one["hours"] for one in found["lines"]) == pytest.approx(found["hours"])
    return found


def minutes(found: dict[str, Any]) -> dict[str, float]:
    """Return the minutes of all GPUs that each line has, of those that have any."""
    by = 60.0 / (found["devices"] or 1)
    return {one["id"]: one["hours"] * by for one in found["lines"] if one["hours"]}


def line(found: dict[str, Any], id: str) -> dict[str, Any]:
    return next(one for one in found["lines"] if one["id"] == id)


# -- known losses ----------------------------------------------------------------------------------

EVERY = range(1, STEPS + 1)
STEADY = clock(*[STEP] * STEPS)
Made = "tuple[World, list[tuple[Sequence[int], Sequence[float]]]]"


def healthy() -> Made:
    return world(), [(EVERY, STEADY)]


def dead_groups() -> Made:
    made = world()

    def score(step: int, group: int) -> float:
        return 1.0 if group == 0 else float(made.chance.random() < 0.5)

    # one of four groups has no spread, three have
    dump(made, 1, lambda _: prose(made.chance), score)
    for records in made.dumps.values():
        for group in range(1, 4):
            records[4 * group]["score"], records[4 * group + 1]["score"] = 0.0, 1.0
    return made, [(EVERY, STEADY)]


def hang() -> Made:
    made = world(timed=[STEP] * 56 + [STEP + 7200.0] + [STEP] * 43)
    return made, [(EVERY, clock(*[STEP] * 56, STEP + 7200.0, *[STEP] * 43))]


def restart() -> Made:
    ends = clock(*[STEP] * 80, 1200.0 + STEP, *[STEP] * 59)
    return world(), [(range(1, 81), ends[:80]), (range(41, 101), ends[80:])]


def clean_restart() -> Made:
    ends = clock(*[STEP] * 50, 600.0 + STEP, *[STEP] * 49)
    return world(), [(range(1, 51), ends[:50]), (range(51, 101), ends[50:])]


def validating_restart() -> Made:
    """A process that goes on validates before its first step, which is logged later."""
    made = world()
    for key, column in made.columns.items():
        made.columns[key] = [
            it if n % 10 == 5 else None for n, it in zip(EVERY, column, strict=True)
        ]
    made.columns["val/acc"] = [0.5 if n == 50 else None for n in EVERY]
    rows, half = range(5, STEPS, 10), 5 * STEP
    ends = clock(half, *[2 * half] * 4, half, 600.0, half, *[2 * half] * 4)
    return made, [((*rows[:5], 50), ends[:6]), ((50, *rows[5:]), ends[6:])]


def sparse_clean_restart() -> Made:
    every = range(10, STEPS + 1, 10)
    ends = clock(*[10 * STEP] * 5, 600.0 + 10 * STEP, *[10 * STEP] * 4)
    return world(), [(every[:5], ends[:5]), (every[5:], ends[5:])]


def broken() -> Made:
    made = world()
    for key in ("actor/pg_loss", "actor/grad_norm"):
        made.change(key, 31, lambda _, __: math.nan)
    return made, [(EVERY, STEADY)]


def dead_and_broken() -> Made:
    made, passes = dead_groups()
    for key in ("actor/pg_loss", "actor/grad_norm"):
        made.change(key, 61, lambda _, __: math.nan)
    return made, passes


def waiting() -> Made:
    made = world()
    made.settings |= {"rollout.n_gpus_per_node": 8, "rollout.nnodes": 6}
    made.put("fully_async/trainer/idle_ratio", 0.4)
    made.put("fully_async/rollouter/idle_ratio", 0.2)
    return made, [(EVERY, STEADY)]


def stragglers() -> Made:
    made = world()
    made.put("timing_s/generate_sequences", 20.0)
    made.put("timing_s/generation_timing/max", 35.0)
    return made, [(EVERY, STEADY)]


def validating() -> Made:
    made = world(timed=[STEP + 30.0 * (n % 10 == 0) for n in EVERY])
    made.columns["timing_s/testing"] = [30.0 if n % 10 == 0 else None for n in EVERY]
    taken = made.columns["timing_s/step"]
    return made, [(EVERY, clock(*[one or 0.0 for one in taken]))]


def stale() -> Made:
    made = world()
    evicted = [32.0 if n > 50 else None for n in EVERY]
    made.columns["training/off_policy/evicted_samples"] = evicted
    return made, [(EVERY, STEADY)]


def masked() -> Made:
    made = world()
    made.settings |= {"mask_truncated_completions": True}
    made.put("response_length/clip_ratio", 0.05)
    return made, [(EVERY, STEADY)]


def no_share_is_a_number() -> Made:
    made = world()
    made.columns["frac_reward_zero_std"] = [math.nan] * STEPS
    return made, [(EVERY, STEADY)]


KNOWN: list[tuple[Callable[[], Made], dict[str, float]]] = [
    (healthy, {"taught": 100}),
    (dead_groups, {"dead-groups": 25, "taught": 75}),
    (hang, {"hang": 120, "taught": 100}),
    (restart, {"repeated": 40, "down": 20, "taught": 100}),
    (clean_restart, {"down": 10, "taught": 100}),
    (sparse_clean_restart, {"down": 10, "taught": 100}),
    (validating_restart, {"down": 10, "taught": 95}),
    (broken, {"break": 70, "taught": 30}),
    (dead_and_broken, {"break": 40, "dead-groups": 15, "taught": 45}),
    (waiting, {"waiting": 25, "taught": 75}),
    (stragglers, {"waiting": 25, "taught": 75}),
    (validating, {"aside": 5, "taught": 100}),
    (stale, {"stale": 10, "taught": 90}),
    (masked, {"masked": 5, "taught": 95}),
    (no_share_is_a_number, {"taught": 100}),
]


@pytest.mark.parametrize(
    ("make", "expected"), [pytest.param(*one, id=one[0].__name__) for one in KNOWN]
)
def test_losses_that_are_known(make, expected, tmp_path):
    made, passes = make()
    run = read_run(written(made, tmp_path / "run", *passes))
    found = told(run)
    assert minutes(found) == pytest.approx(expected, rel=0.01)
    wall = passes[-1][1][-1] - NOW
    assert found["wall_hours"] == pytest.approx(wall / 3600, rel=0.01)
    count = 64 if make is waiting else 16
    assert (found["unit"], found["devices"]) == ("GPU hours", count)
    assert found["hours"] == pytest.approx(count * wall / 3600, rel=0.01)
    assert found["times_stated"]
    for id in expected.keys() if make is not healthy else ():
        one = line(found, id)
        assert one["step"] == one["steps"][0][0]
        assert all(first <= last for first, last in one["steps"])
        known = {*run.keys, *run.settings}
        assert id == "aside" or known.issuperset(one["figures"]), id
    guessed = {one["id"] for one in found["lines"] if one["heuristic"]}
    assert guessed == {"down", "hang", "masked"} & expected.keys()
    shown = [cells[0] for _, cells in listed(found)]
    assert shown[0] == "taught"
    assert len(shown) == len(expected)


def test_after_a_collapse_nothing_is_taught_and_a_stop_saves_the_rest(tmp_path):
    made = verl(400, random.Random(3))
    made.columns["timing_s/step"] = [STEP] * 400
    plant = next(one for one in FAILURES if one.id == "policy-collapse")
    plant.plant(made, 160, random.Random(3))
    made.settings |= GPUS
    ends = clock(*[STEP] * 400)
    found = told(read_run(written(made, tmp_path / "run", (range(1, 401), ends))))
    lost = line(found, "break")
    assert 130 <= lost["step"] <= 165
    assert lost["steps"][-1] == [lost["step"], 400]
    assert "since step" in " ".join(lost["evidence"])
    stop = found["stop"]
    assert stop["severity"] == "critical"
    assert 160 <= stop["step"] <= 180
    assert stop["hours"] == pytest.approx((400 - stop["step"]) * STEP * 16 / 3600)
    assert stop["taught_hours"] == 0
    assert f"a stop at {stop['finding']}" in in_words(found)[1]


def test_a_run_that_hangs_loses_hours_until_now(tmp_path):
    run = read_run(written(world(), tmp_path / "run", (EVERY, STEADY)))
    found = told(run, STEADY[-1] + 1800)
    assert minutes(found) == pytest.approx({"hang": 30, "taught": 100}, rel=0.01)
    lost = line(found, "hang")
    assert (lost["finding"], lost["step"]) == ("hang", STEPS)
    assert found["stop"]["hours"] == pytest.approx(8.0)


def test_without_times_it_says_that_it_estimates_and_of_what(tmp_path):
    made = world()
    made.settings = {}
    (tmp_path / "run").mkdir()
    form = "step:{} - critic/score/mean:0.5 - timing_s/step:60.0\n"
    (tmp_path / "run" / "train.log").write_text("".join(map(form.format, EVERY)))
    found = told(read_run(tmp_path / "run"))
    assert not found["times_stated"]
    assert (found["unit"], found["devices"]) == ("hours of the run", None)
    assert found["wall_hours"] == pytest.approx(100 / 60)
    (words, *_) = in_words(found)
    assert "estimated by step timers" in words
    assert "the number of GPUs is not known" in words
    assert "at most 100% taught" in words
    assert "down" in {one["id"] for one in found["unknown"]}


def test_a_restart_without_times_costs_what_its_steps_usually_take(tmp_path):
    path = tmp_path / "train.log"
    steps = [*range(1, 81), *range(41, 101)]
    text = "step:{} - critic/score/mean:0.5{} - timing_s/step:60.0\n"
    path.write_text("".join(text.format(it, it % 10) for it in steps))
    found = told(read_run(path))
    assert minutes(found) == pytest.approx({"repeated": 40, "taught": 100})
    assert line(found, "repeated")["steps"] == [[41, 80]]
    assert line(found, "repeated")["heuristic"] == "they took as long as others"


def test_the_time_until_the_first_step_is_that_of_the_lines_before(tmp_path):
    path = tmp_path / "train.log"
    moment = "2026-01-01 10:{:02}:00,000 INFO worker.py: at work\n"
    lines = [moment.format(at) for at in (0, 15)]
    for step in range(1, 11):
        lines.append(f"step:{step} - critic/score/mean:0.5 - timing_s/step:60.0\n")
        lines.append(moment.format(15 + step))
    path.write_text("".join(lines))
    found = told(read_run(path))
    assert minutes(found)["taught"] == pytest.approx(10)
    assert minutes(found)["start-up"] == pytest.approx(14, abs=1)  # less the first step


def test_means_are_of_logged_points_the_largest_first(tmp_path):
    made, passes = validating()
    saved = [10.0 * n if n % 50 == 0 else None for n in EVERY]
    made.columns["timing_s/save_checkpoint"] = saved
    found = told(read_run(written(made, tmp_path / "run", *passes)))
    (aside,) = (one for one in found["lines"] if one["id"] == "aside")
    assert aside["evidence"] == [
        "timing_s/save_checkpoint: 750 on average",
        "timing_s/testing: 30 on average",
    ]


def test_a_pause_that_no_restart_explains_is_a_hang_and_its_timer_is_told(tmp_path):
    ends = clock(*[0.5] * 50, 1800.5, *[0.5] * 49)
    made = world(timed=[0.5] * STEPS)
    made.settings = {"trainer.n_gpus_per_node": 1}
    found = told(read_run(written(made, tmp_path / "run", (EVERY, ends))))
    lost = line(found, "hang")
    words, (_, cells) = in_words(found)[0], listed(found)[0]
    assert words.startswith(
        "31 min of GPU time (1 GPU by its settings), 31 min by the clock, "
    )
    assert cells[:2] == ("taught", "50 s")
    assert lost["evidence"] == ["step 51 took 30 min, 0.5 s of them by its timer"]
    assert "where the log shows no restart" in lost["heuristic"]


# -- where it is told ------------------------------------------------------------------------------


def test_it_is_told_by_get_and_in_reports(tmp_path, asked):
    made, passes = restart()
    path = written(made, tmp_path / "run", *passes)
    lines = asked("get", "ledger", path, code=0).out.splitlines()
    first, taught, down, again, *_ = lines
    assert first == (
        "run: 42.7 GPU hours (16 GPUs by its settings), 2.67 h by the clock, times in the log: "
        "at most 63% taught"
    )
    assert taught.split("\t")[:3] == ["taught", "26.7 h", "62.5%"]
    assert down.split("\t")[1:3] == ["5.33 h", "12.5%"]
    assert again.split("\t") == [
        *("steps made again after a restart", "10.7 h", "25%"),
        "steps 41-80; restart at step 41: went on in another file",
    ]
    found = json.loads(asked("get", "ledger", path, "--json", code=0).out)
    text = asked("report", path, "-o", "-", "--format", "json", code=0).out
    (run,) = json.loads(text)["runs"]
    assert run["hours"].items() <= found.items()
    for form in ("md", "html"):
        text = asked("report", path, "-o", "-", "--format", form, code=0).out
        assert "GPU hours of run" in text
        assert "restart at step 41" in text


def test_without_a_step_there_is_one_sentence(tmp_path, asked):
    (tmp_path / "train.log").write_text("Traceback (most recent call last):\nX: y\n")
    assert asked("get", "ledger", tmp_path, code=3).err.endswith(": no step so far\n")
