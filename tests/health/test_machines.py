"""What is said of devices, memory, phases and weights that stay old."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from planted import (
    OTHER,
    STATUS,
    TUTORIAL,
    VERL,
    Case,
    batch,
    case,
    found,
    hold,
    judge,
    noisy,
    planted,
    rows,
    wave,
)

from verl_tui.health.finding import Severity
from verl_tui.records import Event, EventKind
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

REWARD = "critic/score/mean"
NAN = math.nan


# -- GPUs ------------------------------------------------------------------------------------------


def eight(
    idle: Sequence[int], level: float = 2.0, held: float = 80.0
) -> dict[str, list[float]]:
    """Return the figures of eight devices."""
    figures = {}
    for i in range(8):
        figures[f"system/gpu.{i}.gpu"] = wave(30, level if i in idle else 88.0, 2.0, shift=i)  # fmt: skip
        figures[f"system/gpu.{i}.memoryAllocated"] = [held if i in idle else 80.0] * 30
    return figures


ALONE = "the log has fewer than two devices that the run uses"
HOSTS = {
    f"system/gpu.{i}.gpu/l:node{node}": [70.0, *wave(30, 3.0 if (i, node) == (1, 2) else 88.0, 2.0)]
    for i in range(2) for node in (1, 2)
}  # fmt: skip
SLOWER = {**eight(range(1, 8), 0.0, 0.0), **eight(range(4, 8), 0.0, 0.0), "system/gpu.3.gpu": [88.0] * 15 + [40.0] * 15}  # fmt: skip
DEVICES = [
    # all work, all idle, two hold other memory and never worked: they may be another one's
    *(case(id, eight([])) for id in ("gpu-uneven", "gpu-idle", "gpu-low")),
    case("gpu-uneven", eight(range(8), 40.0)),
    case("gpu-idle", eight(range(8), 40.0), "mean utilisation of the GPUs"),
    *(case(id, eight([4, 5], 0.0, held=55.0)) for id in ("gpu-uneven", "gpu-idle", "gpu-low")),
    # one device is compared with those that work, on its host
    case("gpu-uneven", {"system/gpu.0.gpu": eight([])["system/gpu.0.gpu"]}, why=ALONE),
    case("gpu-uneven", eight(range(1, 8), 0.0, held=0.0), why=ALONE),
    case("gpu-uneven", SLOWER, "", key="system/gpu.3.gpu"),
    case("gpu-uneven", HOSTS, "", key="system/gpu.1.gpu/l:node2"),
    case("gpu-memory-high", {"system/memory_util": [95.0] * 30}, "memory controller", beside=TUTORIAL),
    case("gpu-idle", {"system/gpu_util": [95.0, 5.0, 90.0] * 10}, beside=TUTORIAL),  # single dips
]  # fmt: skip


@pytest.mark.parametrize("one", DEVICES, ids=lambda one: one.id)
def test_devices(one):
    hold(one)


# -- the host's memory -----------------------------------------------------------------------------

LEAK = noisy([200 + 2.0 * i for i in range(60)], 1.0)
PACE = {"timing_s/step": 60.0, **VERL}
USED, TOTAL = "perf/cpu_memory_used_gb", "perf/cpu_memory_total_gb"
SAW = [*(200.0 + 100 * (i % 60) / 60 for i in range(120)), *(200.0 + i for i in range(58))]  # fmt: skip


def memory(used: list[float], settings: dict[str, int] | None = None) -> Case:
    columns = {USED: used, TOTAL: [503.0] * len(used)}
    return case("host-memory", columns, beside=PACE, settings=settings)


MEMORIES = [
    case("host-memory", {USED: LEAK, TOTAL: [503.5] * 60},
         "in 81 steps (≈ 81 min) it reaches 478 GB, 95% of the node", beside=PACE, severity=Severity.WARNING,
         since_step=1, step=60, key=USED),
    case("host-memory", {"system/memory_percent": [40 + 0.5 * i for i in range(60)]}, "it reaches 95%", beside=PACE),
    # no leak: level, one jump, a cache that fills up, saws, days ahead, the run ends before, too few points
    memory(noisy([200.0] * 60, 2.0)),
    memory([*noisy([132.0] * 30, 0.5), *noisy([182.0] * 30, 0.5)]),
    memory(noisy([150 + 60 * (1 - math.exp(-i / 10)) for i in range(60)], 0.5)),
    memory([200.0 + 40 * (i % 12) / 12 for i in range(60)]),
    memory(SAW),
    memory(noisy([131 + 0.004 * i for i in range(300)], 0.1)),
    memory(LEAK, {"trainer.total_training_steps": 100}),
    memory(LEAK[:30]),
]  # fmt: skip


@pytest.mark.parametrize("one", MEMORIES, ids=lambda one: one.id)
def test_memory(one):
    hold(one)


def test_less_than_an_hour_is_critical_while_the_run_goes_on():
    columns = {USED: LEAK, TOTAL: [400.0] * 60, "timing_s/step": [60.0] * 60}
    run = Run("r")
    times = [60.0 * (i - 59) for i in range(60)]
    run.apply(batch(rows(columns, times=times), live=True), now=0.0)
    for now, severity in ((1.0, Severity.CRITICAL), (1e9, Severity.WARNING)):
        one = found(judge(run, now=now), "host-memory")
        assert one is not None
        assert one.severity is severity
    run.apply(batch(Event(EventKind.FINISHED, "Final validation metrics: {}", 900)), now=0.0)  # fmt: skip
    assert found(judge(run), "host-memory") is None


def test_what_ray_says_of_memory():
    run = Run("r")
    run.apply(batch(rows({REWARD: [0.5] * 5}), status=STATUS._replace(modified=0.0)), now=0.0)  # fmt: skip
    text = "Memory on the node (IP: 10.0.0.1) where the task was running was 479.66GB / 503.51GB (0.952641), which exceeds"
    run.apply(batch(Event(EventKind.WARNING, text, 812)), now=0.0)
    one = found(judge(run), "host-memory")
    assert one is not None
    assert one.severity is Severity.WARNING
    assert "479.66 of 503.51 GB were in use" in one.message
    assert one.evidence[0].startswith("line 812: Memory on the node")


# -- phases, staleness, first steps ----------------------------------------------------------------

STALE = {"training/off_policy/trajectory_staleness/max": [30.0] * 10}
LIMIT = "trainer.v1.sampler.max_off_policy_threshold"


def phase(name: str, before: list[float], since: list[float]) -> Case:
    columns = {
        "timing_s/step": noisy([60.0] * 200, 1),
        f"timing_s/{name}": [*before, *since],
    }
    return case("slow-phase", columns)


def first(value: float, says: str | None) -> list[Case]:
    """Return first records in verl's names and in others'."""
    facts = {"since_step": 1} if says else {}
    return [
        case("first-step", {key: [value, *[0.001] * 9]}, says, beside=beside, **facts)
        for key, beside in (("actor/kl_loss", VERL), ("train/kl_loss", OTHER))
    ]


PHASES = [
    # what is no time, and what is longer than the step, is no slow phase
    *(
        phase(name, noisy([20.0] * 120, 1), noisy([50.0] * 80, 1))
        for name in ("agent_loop/slowest/prompt_length", "agent_loop/num_preempted/mean", "rollout/total_tokens")
    ),
    phase("all_workers", noisy([300.0] * 120, 5), noisy([900.0] * 80, 5)),
    # staleness without a limit
    *(case("staleness", STALE, settings={LIMIT: null}, why="max_off_policy_threshold is null") for null in (None, "null", "None")),
    case("staleness", STALE, "", settings={LIMIT: 8}),
    # a KL to the reference in the first record
    *first(1.4, "is 1.4 in the first record"), *first(0.81, "is 0.81 in the first record"),
    *first(0.0004, None), *first(0.2, None), *first(NAN, None),
]  # fmt: skip


@pytest.mark.parametrize("one", PHASES, ids=lambda one: one.id)
def test_phases_and_first_steps(one):
    hold(one)


# -- weights that stay old -------------------------------------------------------------------------

ODD = 0.5178165276724791


@pytest.mark.parametrize(
    ("values", "more"),
    [
        ([ODD] * 2, {}),  # too few to tell
        ([ODD, ODD, 0.5181956027293404], {}),
        ([0.0] * 6, {}),  # never right
        ([1.0] * 6, {}),
        ([0.3] * 6, {}),  # three of ten: comes again by chance
        ([0.3333333432674408] * 6, {}),  # a third in single precision
        ([ODD] * 4, {"val-core/math/acc/mean@1": [0.1234567, 0.1334567, 0.14, 0.13]}),
        ([NAN] * 4, {}),
    ],
)
def test_what_is_no_proof_of_old_weights(values, more):
    count = 10 * len(values)
    run = planted({"actor/lr": [1e-6] * count, REWARD: wave(count, 0.5, 0.1)})
    at = range(0, count, 10)
    validated = rows({"val-core/gsm8k/acc/mean@1": values, **more}, at, 10_000)
    run.apply(batch(validated), now=0.0)
    assert found(judge(run), "weights-not-synced") is None
