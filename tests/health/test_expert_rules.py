"""What experts look at: the first record, weights that stay old, entropy that explodes, the host's
memory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from planted import (
    OTHER,
    STATUS,
    VERL,
    batch,
    ids,
    judge,
    noisy,
    planted,
    reason,
    rows,
    wave,
)

from verl_tui.health.finding import Finding, Severity
from verl_tui.records import Event, EventKind
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def find(id: str, run: Run) -> Finding | None:
    verdict = judge(run)
    assert not [one for one in verdict.not_judged if one.reason.startswith("failed")]
    return next((one for one in verdict.findings if one.id == id), None)


# -- first-step ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (1.4, "is 1.4 in the first record"),
        (0.81, "is 0.81 in the first record"),
        (0.0004, ""),
        (0.2, ""),
        (math.nan, ""),
    ],
)
@pytest.mark.parametrize(
    ("key", "beside"), [("actor/kl_loss", VERL), ("train/kl_loss", OTHER)]
)
def test_the_first_record(
    first: float, words: str, key: str, beside: Mapping[str, float]
) -> None:
    found = find("first-step", planted({key: [first, *[0.001] * 9]}, beside))
    assert (found is not None) is bool(words)
    if found is not None:
        assert words in found.message
        assert (found.since_step, found.key) == (1, key)


# -- weights-not-synced ----------------------------------------------------------------------------

CORE = "val-core/gsm8k/acc/mean@1"


def validated(
    values: Sequence[float],
    rate: float = 1e-6,
    more: Mapping[str, Sequence[float]] | None = None,
) -> Run:
    """Return a run that validates every ten steps, from step 0 on."""
    run = planted(
        {
            "actor/lr": [rate] * (10 * len(values)),
            "critic/score/mean": wave(10 * len(values), 0.5, 0.1),
        }
    )
    at = [10 * i for i in range(len(values))]
    run.apply(batch(rows({CORE: values, **(more or {})}, at, 10_000)), now=0.0)
    return run


@pytest.mark.parametrize(
    "run",
    [
        validated([0.5178165276724791] * 2),  # too few to tell
        validated([0.5178165276724791, 0.5178165276724791, 0.5181956027293404]),
        validated([0.0] * 6),  # never right
        validated([1.0] * 6),
        validated([0.3] * 6),  # three of ten: comes again by chance
        validated([0.3333333432674408] * 6),  # a third in single precision
        validated(
            [0.5178165276724791] * 4,
            more={"val-core/math/acc/mean@1": [0.1234567, 0.1334567, 0.14, 0.13]},
        ),
        validated([math.nan] * 4),
    ],
)
def test_what_is_no_proof_of_old_weights(run: Run) -> None:
    assert find("weights-not-synced", run) is None


# -- entropy-explosion -----------------------------------------------------------------------------

CALM = noisy([0.3] * 200, 0.01)
WILD = [*CALM[:140], *[0.3 + 0.05 * i for i in range(60)]]
LEVEL = noisy([0.6] * 200, 0.02)


@pytest.mark.parametrize(
    ("entropy", "reward", "is_found"),
    [
        (WILD, LEVEL, True),
        # a raised upper clip: it explores and learns
        (WILD, noisy([0.3 + 0.002 * i for i in range(200)], 0.02), False),
        # Most of it is spent in the first twelfth, and then some of it comes back.
        ([1.2 * math.exp(-i / 8) + 0.25 + 0.002 * i for i in range(200)], LEVEL, False),
        ([value / 100 for value in WILD], LEVEL, False),  # of next to nothing
        (noisy([0.3] * 200, 0.12), LEVEL, False),
    ],
)
def test_entropy_that_leaves_its_past(
    entropy: list[float], reward: list[float], *, is_found: bool
) -> None:
    run = planted({"actor/entropy": entropy, "critic/score/mean": reward})
    assert (find("entropy-explosion", run) is not None) is is_found


# -- host-memory -----------------------------------------------------------------------------------

LEAK = noisy([200 + 2.0 * i for i in range(60)], 1.0)
PACE = {"timing_s/step": 60.0, **VERL}


def test_memory_that_grows_says_when_the_node_is_full() -> None:
    run = planted(
        {"perf/cpu_memory_used_gb": LEAK, "perf/cpu_memory_total_gb": [503.5] * 60},
        PACE,
    )
    found = find("host-memory", run)
    assert found is not None
    assert found.severity is Severity.WARNING
    assert "in 81 steps (≈ 81 min) it reaches 478 GB, 95% of the node" in found.message
    assert (found.since_step, found.step, found.key) == (
        1,
        60,
        "perf/cpu_memory_used_gb",
    )


def test_less_than_an_hour_is_critical_while_the_run_goes_on() -> None:
    columns = {
        "perf/cpu_memory_used_gb": LEAK,
        "perf/cpu_memory_total_gb": [400.0] * 60,
        "timing_s/step": [60.0] * 60,
    }
    run = Run("r")
    run.apply(
        batch(rows(columns, times=[60.0 * (i - 59) for i in range(60)]), live=True),
        now=0.0,
    )
    found = find("host-memory", run)
    assert found is not None
    assert found.severity is Severity.CRITICAL
    old = judge(run, now=1e9)
    assert [one.severity for one in old.findings if one.id == "host-memory"] == [
        Severity.WARNING
    ]
    run.apply(
        batch(Event(EventKind.FINISHED, "Final validation metrics: {}", 900)), now=0.0
    )
    assert find("host-memory", run) is None


def test_wandbs_share_of_the_host() -> None:
    found = find(
        "host-memory",
        planted({"system/memory_percent": [40 + 0.5 * i for i in range(60)]}, PACE),
    )
    assert found is not None
    assert "it reaches 95%" in found.message


@pytest.mark.parametrize(
    ("used", "total", "settings"),
    [
        (noisy([200.0] * 60, 2.0), 503.0, None),
        # one jump
        ([*noisy([132.0] * 30, 0.5), *noisy([182.0] * 30, 0.5)], 503.0, None),
        (
            noisy([150 + 60 * (1 - math.exp(-i / 10)) for i in range(60)], 0.5),
            503.0,
            None,
        ),  # a cache that fills up
        (
            [200.0 + 40 * (i % 12) / 12 for i in range(60)],
            503.0,
            None,
        ),  # a saw: each checkpoint gives it back
        (noisy([131 + 0.004 * i for i in range(300)], 0.1), 503.0, None),  # days ahead
        (LEAK, 503.0, {"trainer.total_training_steps": 100}),  # the run ends before
        (LEAK[:30], 503.0, None),
        (
            [
                *(200.0 + 100 * (i % 60) / 60 for i in range(120)),
                *(200.0 + i for i in range(58)),
            ],
            503.0,
            None,
        ),  # a slow saw
    ],
)
def test_memory_that_is_no_leak(
    used: list[float], total: float | None, settings: dict[str, int] | None
) -> None:
    columns = {
        "perf/cpu_memory_used_gb": used,
        **({"perf/cpu_memory_total_gb": [total] * len(used)} if total else {}),
    }
    assert find("host-memory", planted(columns, PACE, settings)) is None


def test_what_ray_says_of_memory() -> None:
    run = Run("r")
    run.apply(
        batch(
            rows({"critic/score/mean": [0.5] * 5}), status=STATUS._replace(modified=0.0)
        ),
        now=0.0,
    )
    text = "Memory on the node (IP: 10.0.0.1) where the task was running was 479.66GB / 503.51GB (0.952641), which exceeds"
    run.apply(batch(Event(EventKind.WARNING, text, 812)), now=0.0)
    found = find("host-memory", run)
    assert found is not None
    assert found.severity is Severity.WARNING
    assert "479.66 of 503.51 GB were in use" in found.message
    assert found.evidence[0].startswith("line 812: Memory on the node")


# -- dead groups without samples -------------------------------------------------------------------

SIZES = {
    "data.train_batch_size": 64,
    "actor_rollout_ref.rollout.n": 8,
    "algorithm.adv_estimator": "grpo",
}


def counted(mean: float, count: int = 40, size: int = 512) -> list[float]:
    """Return means of 0/1 rewards of so many samples."""
    return [round(size * value) / size for value in noisy([mean] * count, 0.004)]


@pytest.mark.parametrize(
    ("mean", "settings", "why"),
    [
        (counted(0.3), SIZES, None),
        (counted(0.083), SIZES, None),  # half of them
        (noisy([0.025] * 40, 0.003), SIZES, "rewards are not known to be 0 or 1"),
        (counted(0.025), {}, "neither grouped samples"),
        (counted(0.025), {**SIZES, "algorithm.adv_estimator": "gae"}, "no groups"),
        (counted(0.025), {**SIZES, "actor_rollout_ref.rollout.n": 1}, "no groups"),
        (
            counted(0.025),
            {**SIZES, "algorithm.filter_groups.enable": True},
            "filtered out",
        ),
    ],
)
def test_where_the_mean_of_rewards_proves_nothing(
    mean: list[float], settings: dict[str, object], why: str | None
) -> None:
    verdict = judge(planted({"critic/score/mean": mean}, VERL, settings))
    assert "dead-groups" not in ids(verdict)
    said = reason(verdict, "dead-groups")
    assert (said is None) if why is None else why in (said or "")


def test_a_solved_task_is_no_warning() -> None:
    found = find(
        "dead-groups", planted({"critic/score/mean": counted(0.98)}, VERL, SIZES)
    )
    assert found is None or found.severity is Severity.INFO
