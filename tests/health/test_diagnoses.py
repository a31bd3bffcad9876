"""Crash, hang, restart, not-finite, plateau; what was raised and cleared."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from planted import (
    STATUS,
    TUTORIAL,
    VERL,
    batch,
    ids,
    judge,
    planted,
    reason,
    rows,
    wave,
)

from verl_tui.health.finding import Severity
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.records import Event, EventKind, Gpu, GpuReading, Phase, Restart, Settings
from verl_tui.runs.run import Run
from verl_tui.runs.views.state import State, remaining, state

if TYPE_CHECKING:
    from verl_tui.health.finding import Verdict

NAN = float("nan")


def _live(count: int, gap: float, **extra: list[float]) -> Run:
    """Return a run whose last record is at `count * gap` seconds."""
    run = Run("r")
    columns = {"critic/score/mean": wave(count, 0.5, 0.1), **extra}
    times = [gap * i for i in range(1, count + 1)]
    status = STATUS._replace(modified=times[-1])
    run.apply(batch(rows(columns, times=times), status=status), now=0.0)
    return run


def test_crash_tells_line_text_step_and_what_helps():
    run = planted({"critic/score/mean": wave(7, 0.5, 0.1)})
    run.apply(
        batch(
            Event(
                EventKind.FATAL,
                "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB",
                812,
                raised=True,
            )
        ),
        now=0.0,
    )
    found = judge(run).findings[0]
    assert (found.id, found.severity, found.step) == ("crash", Severity.CRITICAL, 7)
    assert "CUDA out of memory" in found.message
    assert found.evidence[0].startswith("x:812: "), "with its file"
    assert "ppo_max_token_len" in (found.advice or "")


def test_a_crash_says_what_the_run_was_doing_and_which_function_tells():
    phase = Phase("validating", "_validate() in ray_trainer.py")
    run = planted({"critic/score/mean": [0.5] * 3})
    run.apply(
        batch(Event(EventKind.FATAL, "ValueError: boom", 3, phase=phase)), now=0.0
    )
    found = judge(run).findings[0]
    assert (
        found.message == "the run crashed at step 3 while validating: ValueError: boom"
    )
    assert (
        "it was validating, by its traceback: _validate() in ray_trainer.py"
        in found.evidence
    )


def test_the_phase_of_the_worker_to_blame_stands_for_a_driver_that_only_reports_it():
    phase = Phase("scoring responses", "compute_score() in gsm8k.py")
    error = Event(
        EventKind.TRACEBACK,
        "ValueError: boom",
        2,
        actor="AgentLoopWorker",
        raised=True,
        phase=phase,
    )
    run = planted({"critic/score/mean": [0.5] * 3})
    run.apply(
        batch(error, Event(EventKind.FATAL, "RayTaskError(ValueError): x", 3)), now=0.0
    )
    assert judge(run).findings[0].message == (
        "the run crashed at step 3 while scoring responses: ValueError: boom (AgentLoopWorker)"
    )


def test_no_crash_where_a_step_came_after():
    run = planted({"critic/score/mean": [0.5] * 3})
    run.apply(
        batch(
            Event(EventKind.FATAL, "boom", 3),
            rows({"critic/score/mean": [0.5]}, [4], 3),
        ),
        now=0.0,
    )
    assert "crash" not in ids(judge(run))


def test_hang_only_inside_its_window():
    run = _live(50, 30.0)
    last = 50 * 30.0
    assert "hang" not in ids(judge(run, now=last + 100))
    found = next(one for one in judge(run, now=last + 600).findings if one.id == "hang")
    assert (
        found.message
        == "no step for 10 min since step 50: 20 times the usual 30 s of a plain step"
    )
    assert found.severity is Severity.CRITICAL
    assert any("last written 10 min ago" in sentence for sentence in found.evidence)
    old = judge(run, now=last + 5000)
    assert "hang" not in ids(old)
    assert "old log" in (reason(old, "hang") or "")


def _timed(
    count: int, seconds: float, validation: float, every: int, **settings: int
) -> Run:
    """Return a run that tells how long its steps took, the last of them seen to be written at 0."""
    run = Run("r")
    if settings:
        run.apply(
            batch(
                Settings(
                    {f"trainer.{name}": value for name, value in settings.items()}, "x"
                )
            ),
            now=0.0,
        )
    status = STATUS._replace(modified=0.0)
    columns = {
        "critic/score/mean": wave(count, 0.5, 0.1),
        "timing_s/step": [900.0, *[seconds] * (count - 1)],
    }
    validated = [step for step in range(1, count + 1) if step % every == 0]
    run.apply(batch(rows(columns), status=status, live=True), now=0.0)
    testing = rows({"timing_s/testing": [validation] * len(validated)}, validated)
    run.apply(batch(testing, status=status, live=True), now=0.0)
    return run


@pytest.mark.parametrize(
    ("count", "quiet", "hangs"),
    [
        # a plain step is due: 30 s; the first one's 900 s are forgotten
        (52, 400.0, True),
        (49, 400.0, False),  # step 50 validates: 330 s
        (49, 1700.0, True),
    ],
)
def test_hang_knows_what_kind_of_step_is_due(count, quiet, hangs):
    verdict = judge(_timed(count, 30.0, 300.0, 10), now=quiet)
    assert ("hang" in ids(verdict)) is hangs
    verdict = judge(_timed(count, 30.0, 300.0, 10, test_freq=10), now=quiet)
    assert ("hang" in ids(verdict)) is hangs


def _gpus(time: float, *busy: float) -> GpuReading:
    return GpuReading(
        time,
        tuple(Gpu(str(i), "H100", utilization=value) for i, value in enumerate(busy)),
    )


def test_hang_says_which_signs_held():
    run = _timed(52, 30.0, 300.0, 10)
    judge_ = Judge(load_guide(), run)
    run.gpus = _gpus(399.0, 0.0, 1.0)
    found = judge_.verdict(400.0).findings[0]
    assert (
        found.evidence[0]
        == "3 of 3 signs held: no step, the log is silent, GPUs are idle"
    )
    run.gpus = None
    assert (
        judge_.verdict(401.0).findings[0].evidence[0]
        == "2 of 3 signs held: no step, the log is silent"
    )
    run.gpus = _gpus(300.0, 97.0)
    stale = judge_.verdict(400.0).findings[0]
    assert any("was not measured" in one for one in stale.evidence)


def test_while_gpus_work_a_silent_run_is_given_twice_the_time_by_all_who_judge_it():
    run = _timed(52, 30.0, 300.0, 10)
    judge_ = Judge(load_guide(), run)
    run.gpus = _gpus(249.0, 97.0)
    busy = judge_.verdict(250.0)
    assert "hang" not in ids(busy)
    assert "GPUs still work" in (reason(busy, "hang") or "")
    assert state(run, 250.0) is State.RUNNING
    assert remaining(run, 250.0) is None
    run.gpus = _gpus(399.0, 97.0)
    assert "hang" in ids(judge_.verdict(400.0)), "but not for ever"
    assert state(run, 400.0) is State.STALLED


def test_what_was_raised_and_cleared_is_remembered():
    values = [0.03] * 20 + [0.15] * 30 + [0.03] * 40
    history = judge(planted({"ppo/kl_div": values}, TUTORIAL)).history
    (episode,) = [one for one in history if one.id == "kl-high"]
    assert (episode.since_step, episode.raised_step, episode.cleared_step) == (
        21,
        28,
        55,
    )
    assert episode.message == "policy KL was above 0.1, mean 0.126"
    assert episode.key == "ppo/kl_div"
    again = judge(planted({"ppo/kl_div": [*values, *[0.15] * 20]}, TUTORIAL)).history
    assert [one.cleared_step for one in again if one.id == "kl-high"] == [55, None]
    soon = judge(
        planted({"ppo/kl_div": [*values[:60], *[0.15] * 20]}, TUTORIAL)
    ).history
    assert [one.cleared_step for one in soon if one.id == "kl-high"] == [None], (
        "what comes back at once is the same"
    )


def test_restart_is_information():
    run = planted({"critic/score/mean": [0.5] * 10})
    run.apply(
        batch(Restart("file truncated"), rows({"critic/score/mean": [0.5]}, [6])),
        now=0.0,
    )
    found = next(one for one in judge(run).findings if one.id == "restart")
    assert (found.severity, found.since_step) == (Severity.INFO, 6)
    assert "file truncated" in found.message


# -- block by block ---------------------------------------------------------------------------------

RAMPS = {
    "critic/score/mean": (0.0, 1.0),
    "actor/entropy": (0.0, 3.0),
    "actor/grad_norm": (0.1, 3.0),
    "response_length/mean": (20.0, 4000.0),
    "response_length/clip_ratio": (0.0, 1.0),
    "timing_s/gen": (1.0, 200.0),
    "timing_s/step": (250.0, 260.0),
    "training/rollout_probs_diff_mean": (0.0, 0.02),
    "val-core/gsm8k/acc/mean@1": (0.0, 1.0),
    "reward/format": (-1.0, 1.0),
    "reward/accuracy": (0.0, 1.0),
    "system/gpu.0.gpu": (0.0, 100.0),
    "system/gpu.1.gpu": (60.0, 100.0),
}
"""Metric -> the levels between which it wanders."""


def _wandering(seed: int) -> dict[str, list[float]]:
    """Return metrics that go in straight lines from level to level, some with gaps."""
    chance = random.Random(seed)
    columns = {}
    for key, (low, high) in RAMPS.items():
        turns = [chance.uniform(low, high) for _ in range(5)]
        noise = chance.choice([0.0, 0.02, 0.1]) * (high - low)
        found = [
            before + (after - before) * i / 100 + chance.gauss(0.0, noise)
            for before, after in pairwise(turns)
            for i in range(100)
        ]
        every = chance.choice([1, 1, 7, 23])
        columns[key] = [NAN if i % every else one for i, one in enumerate(found)]
    return columns


BLOCKS = {"entropy-collapse", "length-collapse", "reward-hacking", "slow-phase"}


def _raised(verdict: Verdict, until: int) -> set[tuple[object, ...]]:
    return {
        (one.id, one.since_step, one.raised_step, one.message)
        for one in verdict.history
        if one.id in BLOCKS and (one.raised_step or 0) <= until
    }


def test_what_blocks_show_up_to_a_step_depends_on_nothing_after_it():
    seen = set()
    for seed in (9, 21, 31, 51):
        columns = _wandering(seed)
        whole = judge(planted(columns))
        seen |= {one.id for one in whole.history}
        stop = 60 + 5 * seed
        run = planted({key: values[:stop] for key, values in columns.items()})
        judge_ = Judge(load_guide(), run)
        assert _raised(judge_.verdict(1.0), 400) == _raised(whole, stop)
        steps = [*range(stop + 1, 401)]
        rest = {key: values[stop:] for key, values in columns.items()}
        beside = {key: [value] * len(steps) for key, value in VERL.items()}
        run.apply(batch(rows({**beside, **rest}, steps, stop)), now=0.0)
        assert _raised(judge_.verdict(1.0), 400) == _raised(whole, 400)
    assert seen >= BLOCKS
