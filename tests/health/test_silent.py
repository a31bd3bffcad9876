"""What goes wrong without an error: a disk that fills, a resume without its weights, an end before
the last step, a step that is all one phase, a wait that its log tells of.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from verl_tui.check.data import report
from verl_tui.config import Config
from verl_tui.monitor import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

BEGAN = datetime(2026, 5, 4, 8, 0, tzinfo=timezone.utc)
STEP = 60.0
"""Seconds a step."""
Lines = list[str]


def said(lines: Sequence[str], directory: Path, id: str) -> dict[str, Any] | None:
    """Return a finding on a log of these lines that nobody holds, None if there is none."""
    path = directory / "train.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    now = BEGAN.timestamp() + 20 * 3600
    os.utime(path, (now - 300, now - 300))
    (run,) = report(load([str(path)], Config(), now), now)["runs"]
    return next((one for one in run["findings"] if one["id"] == id), None)


def expect(lines: Sequence[str], directory: Path, id: str, words: str | None) -> None:
    """Check that a finding on a log of these lines says so, or that there is none."""
    finding = said(lines, directory, id)
    assert (finding is None) is (words is None), finding
    assert finding is None or words in finding["message"]


def at(seconds: float) -> str:
    return (BEGAN + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")


def ripple(step: int, size: float) -> float:
    """Return a repeatable noise."""
    return size * (step * 37 % 11 - 5) / 5


def step(number: int, **figures: float) -> str:
    """Return verl's line of a step; `__` in a name stands for `/`."""
    usual = {
        "critic/score/mean": 0.4 + 0.001 * number + ripple(number, 0.02),
        "actor/entropy": 0.5 + ripple(number, 0.02),
        "actor/kl_loss": 0.0001 * number,
        "actor/grad_norm": 0.3 + ripple(number, 0.02),
        "response_length/mean": 200 + ripple(number, 5),
        "timing_s/gen": 20.0,
        "timing_s/update_actor": 25.0,
        "timing_s/step": STEP,
    }
    usual |= {name.replace("__", "/"): value for name, value in figures.items()}
    words = " - ".join(f"{name}:{value}" for name, value in usual.items())
    return f"(TaskRunner pid=7) step:{number} - {words}"


def steps(first: int, last: int) -> Lines:
    return [step(number) for number in range(first, last + 1)]


# -- disks -----------------------------------------------------------------------------------------


def raylet(number: int, free: float, node: str = "10.1.0.5", size: float = 900) -> str:
    return (
        f"(raylet, ip={node}) [{at(number * STEP)},313 E 95 97] (raylet) file_system_monitor.cc:116: "
        f"/tmp/ray/session_2026-05-04_08-00-00_5 is over 95% full, available space: {free:.4f} GB; "
        f"capacity: {size} GB. Object creation will fail if spilling is required."
    )


def with_disks(last: int, *free: Callable[[int], float], upto: int = 99) -> Lines:
    """Return a log in which the disk of each of several nodes is almost full from step 10 on."""
    lines = []
    for number in range(1, last + 1):
        lines.append(step(number))
        if 10 <= number <= upto:
            lines += [
                raylet(number, one(number), f"10.1.0.{i}") for i, one in enumerate(free)
            ]
    return lines


def in_bytes(lines: Lines) -> Lines:
    """Return lines as Ray before 2.3 wrote them."""
    return [
        line.replace("4.0000 GB;", f"{4 * 2**30};").replace("900 GB", f"{900 * 2**30}")
        for line in lines
    ]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (with_disks(30, lambda n: 40 - n), "on 10.1.0.0 has 10 of 900 GB left, 30 GB"),
        (with_disks(30, lambda n: 40 - n), "it is full in 10 min"),
        (with_disks(30, lambda _: 300.0, lambda n: 200 - 4 * n), "on 10.1.0.1 has 80"),
        (with_disks(30, lambda _: 4.0), "a disk is almost full"),
        (in_bytes(with_disks(30, lambda _: 4.0)), "has 4 of 900 GB left"),
        (with_disks(30, lambda _: 40.0), None),  # a big disk that stays as full
        (with_disks(30, lambda n: 500 - n / 60), None),  # in three weeks
        (with_disks(60, lambda n: 40 - n, upto=30), None),  # cleared since
    ],
)
def test_a_disk_that_fills(lines, words, tmp_path):
    expect(lines, tmp_path, "disk-filling", words)


# -- phases ----------------------------------------------------------------------------------------


def timed(count: int, each: Callable[[int], dict[str, float]]) -> Lines:
    """Return steps with these phases; the step lasts as long as they and 45 s together."""
    lines = []
    for number in range(1, count + 1):
        phases = each(number)
        whole = 45 + sum(phases.values())
        timers = {f"timing_s__{name}": value for name, value in phases.items()}
        lines.append(step(number, **{**timers, "timing_s__step": whole}))
    return lines


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (timed(8, lambda _: {"reward": 9000.0}), "reward takes 100% of the step"),
        (timed(8, lambda _: {"adv": 400.0}), "adv takes 90%"),
        (timed(20, lambda _: {"save_checkpoint": 300.0}), "save_checkpoint takes 87%"),
        (timed(20, lambda _: {"gen": 4000.0}), "gen takes 99%"),
        (timed(20, lambda _: {"gen": 400.0}), None),  # long answers
        (
            [step(n, timing_s__gen=60, timing_s__step=61) for n in range(1, 20)],
            None,  # the other phases run beside it
        ),
        (timed(20, lambda _: {"reward": 30.0}), None),
        (timed(20, lambda n: {"reward": 9000.0 if n == 15 else 5.0}), None),  # once
        (timed(60, lambda n: {"save_checkpoint": 0.0 if n % 20 else 300.0}), None),
        (timed(3, lambda _: {"reward": 9000.0}), None),  # too few
    ],
)
def test_a_step_that_is_all_one_phase(lines, words, tmp_path):
    expect(lines, tmp_path, "one-phase", words)


# -- ends ------------------------------------------------------------------------------------------

TOTAL = "(TaskRunner pid=7) Total training steps: 40"
GOODBYE = "wandb: Find logs at: ./wandb/run-20260504_080012-k2j4/logs"
RESUMED = "(TaskRunner pid=7) Setting global step to 20"
BAR = "(TaskRunner pid=7) Training Progress:  50%|█████     | 20/40 [00:00<?, ?it/s]"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([TOTAL, *steps(1, 20), GOODBYE], "at step 20 of 40, in order"),
        ([TOTAL, RESUMED, BAR, GOODBYE], "at step 20 of 40, from which it had resumed"),
        (
            [*steps(1, 20), "Timeout has been reached, stopping training early"],
            "in order, without an error: it stopped at a time limit of its own",
        ),
        (
            [TOTAL, *steps(1, 20), "exiting program after 230.1 minutes", GOODBYE],
            "at step 20 of 40, in order, without an error: it stopped at a time limit",
        ),
        ([TOTAL, *steps(1, 40), GOODBYE], None),
        ([TOTAL, *steps(1, 39), GOODBYE], None),  # some logs lack the last step
        ([TOTAL, *steps(1, 40)[::5], GOODBYE], None),  # logged every five steps
        ([TOTAL, *steps(1, 20)], None),  # maybe a copy
        ([TOTAL, *steps(1, 20), '("Final validation metrics: None")', GOODBYE], None),
        (
            ["Timeout has been reached, stopping training early", *steps(1, 20)],
            None,  # it went on
        ),
    ],
)
def test_an_end_before_the_last_step(lines, words, tmp_path):
    expect(lines, tmp_path, "ended-early", words)


# -- resumes ---------------------------------------------------------------------------------------


def learning(age: int) -> dict[str, float]:
    """Return what depends on weights that have been trained for so many steps."""
    return {
        "critic__score__mean": 0.2 + 0.006 * age + ripple(age, 0.02),
        "actor__kl_loss": 0.0002 * age,
        "actor__lr": 1e-6 * min(1.0, age / 30),
    }


def resumed(change: Callable[[int], dict[str, float]], *, at_step: int = 60) -> Lines:
    """Return a log that resumes after step 60; what a restart changes by the steps since."""
    again = range(at_step + 1, at_step + 31)
    return [
        *(step(number, **learning(number)) for number in range(1, 61)),
        "2026-05-04 10:00:00,533\tINFO worker.py:1927 -- Started a local Ray instance.",
        *([f"(TaskRunner pid=9) Setting global step to {at_step}"] if at_step else []),
        *(
            step(number, **{**learning(number), **change(number - at_step)})
            for number in again
        ),
    ]


def only(name: str) -> Callable[[int], dict[str, float]]:
    return lambda age: {name: learning(age)[name]}


LOADS = "(TaskRunner pid=7) {'trainer': {'resume_mode': 'auto', 'resume_from_path': '/ckpt'}}"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (resumed(learning), "the restart at step 61 did not load the weights"),
        (resumed(learning), "critic/score/mean 0.53"),
        ([LOADS, *resumed(learning, at_step=0)], "at step 1 did not load the weights"),
        (resumed(learning, at_step=0), None),  # maybe started anew on purpose
        (resumed(lambda _: {}), None),
        (resumed(only("critic__score__mean")), None),  # other data: the KL goes on
        (resumed(only("actor__kl_loss")), None),  # the reference was replaced
    ],
)
def test_a_resume_that_loaded_nothing(lines, words, tmp_path):
    expect(lines, tmp_path, "resume-lost", words)


# -- waits -----------------------------------------------------------------------------------------


def beats(counters: str, count: int) -> Lines:
    began = 12 * STEP
    return [
        f"(TaskRunner pid=7) INFO:{at(began + 60 * i)},164:{counters}"
        for i in range(count)
    ]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            [
                f"Inference server was not reached after {10 * i} seconds (Error: All connection "
                "attempts failed) on http://10.9.0.4:8100"
                for i in range(1, 90)
            ],
            "for 15 min, waits for the inference server at http://10.9.0.4:8100",
        ),
        (
            [
                f"{at(70 * i)} - WARNING - huggingface_hub.file_download - Error while downloading "
                "from https://cdn-lfs.hf.co/repos/1a/model-2.safetensors: Read timed out."
                for i in range(20)
            ],
            "for 22 min, waits for a download that is cut off again and again",
        ),
        (
            [
                *steps(1, 12),
                *(
                    f"[Mon May  4 09:{i:02d}:05 2026] nfs: server 10.2.0.9 not responding, still trying"
                    for i in range(0, 40, 2)
                ),
            ],
            "for 38 min, waits for the file server 10.2.0.9",
        ),
        (
            [*steps(1, 12), *beats("pending: 0, running: 2, finished: 254", 40)],
            "no step for 39 min since step 12: its counters stand still: pending: 0, running: 2",
        ),
        ([*steps(1, 12), *beats("pending: 9, running: 2", 5)], None),  # too short
    ],
)
def test_what_is_waited_for_leads(lines, words, tmp_path):
    expect(lines, tmp_path, "hang", words)
