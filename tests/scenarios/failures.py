"""Failures planted into healthy worlds: every id of the indicator guide, in each dialect that it is
judged in.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from scenarios.worlds import DIALECTS, NOW, World, dump, loop, prose, validate

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 400


@dataclass(frozen=True)
class Failure:
    """A failure and where it can happen."""

    id: str
    dialects: tuple[str, ...]
    plant: Callable[[World, int, random.Random], int | None]
    """Changes a world from a step on; returns the step of the true onset where that is another
    one.
    """
    steps: int = STEPS
    form: str | None = None
    """How its log is written, where only one form shows it."""
    onset: tuple[int, int] = (150, 230)
    """Steps between which it begins."""


ALL = ("tutorial", "verl", "other")
FAILURES: list[Failure] = []


def failure(
    id: str,
    *dialects: str,
    steps: int = STEPS,
    form: str | None = None,
    onset: tuple[int, int] = (150, 230),
) -> Callable[[Callable[..., int | None]], None]:
    """Enter a way of planting into the list."""
    return lambda plant: FAILURES.append(
        Failure(id, dialects or ALL, plant, steps, form, onset)
    )


def level(
    id: str, what: str, low: float, high: float, size: float, *dialects: str
) -> None:
    """A metric goes to another level, somewhere between two, and stays."""

    def plant(world: World, onset: int, chance: random.Random) -> None:
        key = world.key(what)
        to = chance.uniform(low, high)
        world.change(key, onset, lambda _, __: to + chance.gauss(0, size))

    failure(id, *dialects)(plant)


def ramp(since: int, length: float, start: float, end: float) -> float:
    """Return a value that goes from one level to another within so many steps, and stays there."""
    return start + (end - start) * min(1.0, (since + 1) / length)


# -- the tutorials' guide --------------------------------------------------------------------------

level("reward-low", "reward", 0.3, 0.8, 0.03, "tutorial")
level("kl-high", "policy_kl", 0.13, 0.18, 0.01)
level("kl-low", "policy_kl", 0.0005, 0.0035, 0.0003, "tutorial")
level("ref-kl-high", "reference_kl", 0.4, 0.9, 0.02, "tutorial")
level("policy-loss-positive", "policy_loss", 0.1, 0.4, 0.03, "tutorial")
level("response-short", "length", 250, 380, 5, "tutorial")
level("response-long", "length", 526, 600, 2, "tutorial")
level("gpu-idle", "gpu", 15, 42, 3, "tutorial", "other")
level("gpu-memory-high", "memory", 92, 99, 0.5, "tutorial", "other")
level("circuit-breaker-kl", "policy_kl", 0.25, 0.6, 0.01)


@failure("reward-zero")
def _reward_zero(world: World, onset: int, _: random.Random) -> None:
    world.change(world.key("reward"), onset, lambda _, __: 0.0)


@failure("reward-cliff")
def _reward_cliff(world: World, onset: int, chance: random.Random) -> None:
    key = world.key("reward")
    length = chance.randint(1, 10)
    before = world.columns[key][onset - 2] or 0.0
    to = before * chance.uniform(0.02, 0.3)
    world.change(
        key,
        onset,
        lambda i, _: ramp(i, length, before, to) + chance.gauss(0, 0.02 * abs(before)),
    )


@failure("reward-slide")
def _reward_slide(world: World, onset: int, chance: random.Random) -> int:
    key = world.key("reward")
    length = chance.randint(60, 150)
    before = world.columns[key][onset - 2] or 0.0
    left = chance.uniform(0.02, 0.3)
    world.change(
        key,
        onset,
        lambda i, _: (
            ramp(i, length, before, left * before) + chance.gauss(0, 0.02 * abs(before))
        ),
    )
    return onset + round(0.25 * length / (1 - left))  # there it has lost a quarter


@failure("reward-jump")
def _reward_jump(world: World, onset: int, chance: random.Random) -> None:
    times = chance.choice((10, 100, 1000))
    world.change(world.key("reward"), onset, lambda _, known: times * known)


@failure("component-falls")
def _component_falls(world: World, onset: int, chance: random.Random) -> int:
    stem = {
        "verl": "reward_extra/{}/mean",
        "other": "rewards/{}/mean",
        "tutorial": "reward_components/{}",
    }
    falls, stays = (stem[world.dialect].format(name) for name in ("answer", "format"))
    level = chance.uniform(0.4, 0.8)
    length = chance.randint(1, 120)
    world.put(stays, 0.97, 0.005)
    world.put(falls, level, 0.03)
    world.change(falls, onset, lambda i, known: known * ramp(i, length, 1.0, 0.05))
    return onset + round(0.31 * length / 0.95)  # there it has lost 31%


@failure("nothing-learns", "verl", "other")
def _nothing_learns(world: World, onset: int, chance: random.Random) -> None:
    key = "actor/lr" if world.dialect == "verl" else "learning_rate"
    world.columns.pop(world.key("reference_kl"), None)
    world.put(key, 3.217e-6)
    world.change(key, onset, lambda _, __: 0.0)


@failure("reward-noisy", "tutorial")
def _reward_noisy(world: World, onset: int, chance: random.Random) -> None:
    share = chance.uniform(0.65, 1.2)
    reward = world.columns["rollout/reward_mean"]
    world.change(
        "rollout/reward_std", onset, lambda i, _: share * (reward[onset - 1 + i] or 0.0)
    )


@failure("ref-kl-high", "verl", "other")
def _reference_surge(world: World, onset: int, chance: random.Random) -> None:
    times = chance.uniform(7, 15)
    world.change(
        world.key("reference_kl"),
        onset,
        lambda _, known: max(0.2, known * times),
    )


@failure("ref-kl-rising", "tutorial")
def _reference_rising(world: World, onset: int, chance: random.Random) -> int:
    slope = chance.uniform(0.0008, 0.0012)
    world.change(
        "kl/divergence", onset, lambda i, _: 0.06 + slope * i + chance.gauss(0, 0.002)
    )
    return onset + math.ceil(0.04 / slope)  # there it leaves its band, 0.1


@failure("ref-kl-rising", "verl", "other")
def _reference_drift(world: World, onset: int, chance: random.Random) -> int:
    key = world.key("reference_kl")
    times = chance.uniform(1.5, 4.0)
    start = world.before(key, onset)
    world.change(
        key,
        onset,
        lambda i, _: start + times * (i / 150) ** 1.5 + chance.gauss(0, 0.005),
    )
    # there it passes 1
    return onset + math.ceil(150 * ((1.0 - start) / times) ** (1 / 1.5))


@failure("policy-loss-jump")
def _policy_loss_jump(world: World, onset: int, chance: random.Random) -> None:
    size = chance.choice((-1, 1)) * chance.uniform(2.5, 8.0)
    world.change(
        world.key("policy_loss"),
        onset,
        lambda i, known: size if i == 0 else known,
    )


@failure("circuit-breaker-reward")
def _reward_breaker(world: World, onset: int, chance: random.Random) -> None:
    keep = chance.uniform(0.55, 0.75)
    key = world.key("reward")
    before = world.columns[key][onset - 2] or 1.0
    world.change(key, onset, lambda i, _: before * keep ** min(i + 1, 8))


# -- verl's documents ------------------------------------------------------------------------------

level(
    "rollout-probs-diff",
    "training/rollout_probs_diff_mean",
    0.012,
    0.05,
    0.0005,
    "verl",
)
level("rollout-is-mean", "rollout_corr/rollout_is_mean", 0.2, 0.42, 0.02, "verl")
level("rollout-is-mean", "rollout_corr/rollout_is_mean", 2.3, 4.0, 0.05, "verl")
level(
    "rollout-is-ess",
    "rollout_corr/rollout_is_eff_sample_size",
    0.05,
    0.25,
    0.01,
    "verl",
)
level("rollout-is-std", "rollout_corr/rollout_is_std", 1.2, 3.0, 0.05, "verl")
level("rollout-kl", "rollout_corr/kl", 0.13, 0.5, 0.01, "verl")
level("rollout-kl", "rollout_corr/kl", -0.5, -0.13, 0.01, "verl")
level("rollout-kl", "rollout_corr/kl", 0.013, 0.05, 0.001, "verl")
level("rollout-kl", "gen_kl_error", 0.013, 0.05, 0.001, "other")
level("token-mult-prob-error", "token_mult_prob_error", 1.03, 1.1, 0.003, "other")
level(
    "engine-pearson",
    "training/rollout_actor_probs_pearson_corr",
    0.5,
    0.85,
    0.02,
    "verl",
)
level(
    "rejection-eats-batch",
    "rollout_corr/rollout_rs_masked_fraction",
    0.55,
    0.9,
    0.02,
    "verl",
)
level(
    "rejection-eats-batch",
    "rollout_corr/rollout_rs_masked_fraction",
    0.25,
    0.4,
    0.02,
    "verl",
)
level("rollout-chi2", "rollout_corr/chi2_token", 1.2, 5.0, 0.05, "verl")
level("truncation", "cut", 0.15, 0.6, 0.02, "verl", "other")
level("prompt-truncation", "prompt_length/clip_ratio", 0.15, 0.5, 0.01, "verl")
level("aborted", "response/aborted_ratio", 0.01, 0.2, 0.001, "verl")


@failure("sequence-is-saturated", "verl")
def _sequence_saturated(world: World, onset: int, chance: random.Random) -> None:
    world.settings["algorithm.rollout_correction.rollout_is"] = "sequence"
    kl = chance.uniform(0.1, 0.2)
    world.change("rollout_corr/kl", onset, lambda _, __: kl + chance.gauss(0, 0.002))


@failure("token-mult-prob-error", "other")
def _refit_fault(world: World, onset: int, chance: random.Random) -> None:
    high = chance.uniform(1.5, 4.0)
    world.change("token_mult_prob_error", onset, lambda i, known: known if i else high)


@failure("first-step", "verl", "other")
def _first_step(world: World, _: int, chance: random.Random) -> int:
    key = {"verl": "actor/kl_loss", "other": "train/kl_loss"}[world.dialect]
    world.put(key, 0.001)
    kl = world.columns[key]
    kl[0] = chance.choice((chance.uniform(0.7, 0.9), chance.uniform(1.2, 4.0)))
    return 1


@failure("weights-not-synced", "verl", "other")
def _old_weights(world: World, onset: int, chance: random.Random) -> int:
    key = {"verl": "val-core/openai/gsm8k/acc/mean@1", "other": "eval_reward"}[
        world.dialect
    ]
    world.put({"verl": "actor/lr", "other": "learning_rate"}[world.dialect], 1e-6)
    value = chance.uniform(0.2, 0.8)
    world.change(key, onset, lambda _, __: value)
    return next(i + 1 for i, known in enumerate(world.columns[key]) if known == value)


@failure("entropy-explosion")
def _entropy_explodes(world: World, onset: int, chance: random.Random) -> None:
    length = chance.randint(15, 60)
    times = chance.uniform(4, 10)
    reward = world.key("reward")
    fall = chance.uniform(0.3, 0.55)
    world.change(
        world.key("entropy"),
        onset,
        lambda i, known: known * ramp(i, length, 1.0, times),
    )
    if chance.random() < 0.5 or world.dialect == "tutorial":
        world.change(
            reward, onset, lambda i, known: known * ramp(i, 2 * length, 1.0, 1 - fall)
        )
    else:
        flat = world.columns[reward][onset - 2] or 0.0
        world.change(reward, onset, lambda _, __: flat + chance.gauss(0, 0.02))
        world.change(
            world.key("length"),
            onset,
            lambda i, known: known * ramp(i, length, 1.0, 2.0),
        )


@failure("host-memory", "verl")
def _leak(world: World, onset: int, chance: random.Random) -> None:
    each = chance.uniform(0.5, 2.0)
    world.put("perf/cpu_memory_used_gb", 180, 1.0)
    if chance.random() < 0.5:
        world.put("perf/cpu_memory_total_gb", 500.0)
    world.change("perf/cpu_memory_used_gb", onset, lambda i, known: known + each * i)


@failure("dead-groups", "verl")
def _dead_by_the_filter(world: World, onset: int, chance: random.Random) -> None:
    share = chance.uniform(0.76, 0.9)
    world.settings["data.train_batch_size"] = 128
    world.put("training/filter_groups/evicted_samples", 60, 8, low=0.0)
    world.change(
        "training/filter_groups/evicted_samples",
        onset,
        lambda _, __: 128 * share / (1 - share) + chance.gauss(0, 10),
    )


@failure("dead-groups", "verl")
def _dead_by_the_mean(world: World, onset: int, chance: random.Random) -> None:
    world.settings |= {"data.train_batch_size": 128, "actor_rollout_ref.rollout.n": 8}
    low = chance.uniform(0.005, 0.025)
    world.change("critic/score/mean", 1, lambda _, known: round(known * 1024) / 1024)
    world.change(
        "critic/score/mean",
        onset,
        lambda _, __: round(1024 * max(0.0, low + chance.gauss(0, 0.004))) / 1024,
    )


@failure("corrupted-requests", "verl", "other")
def _corrupted(world: World, onset: int, chance: random.Random) -> None:
    world.put("vllm:corrupted_requests", 0.0)
    count = chance.randint(1, 9)
    world.change("vllm:corrupted_requests", onset, lambda _, __: float(count))


@failure("truncation", "verl")
def _truncation_v1(world: World, onset: int, chance: random.Random) -> None:
    # The v1 trainer: a share of the longest response, which means cut ones only where that reached
    # the limit.
    world.put("training/num_turns/mean", 2.0)
    world.settings["data.max_response_length"] = 1024
    world.columns["response_length/max"] = [
        min(value or 0.0, 1020.0) for value in world.columns["response_length/max"]
    ]
    world.change("response_length/max", onset, lambda _, __: 1024.0)
    share = chance.uniform(0.15, 0.6)
    world.change(
        "response_length/clip_ratio", onset, lambda _, __: share + chance.gauss(0, 0.01)
    )


@failure("grad-norm-rising")
def _grad_norm_rising(world: World, onset: int, chance: random.Random) -> None:
    times = chance.uniform(4, 8)
    world.change(
        world.key("grad_norm"),
        onset,
        lambda i, known: known * times ** min(1.0, i / 130),
    )


@failure("staleness", "verl")
def _staleness(world: World, onset: int, chance: random.Random) -> None:
    key = "training/off_policy/trajectory_staleness/max"
    to = chance.randint(9, 20)
    world.columns[key] = [float(chance.randint(0, 6)) for _ in range(world.steps)]
    world.change(key, onset, lambda _, __: float(to))


@failure("critic-useless", "verl")
def _critic_useless(world: World, onset: int, chance: random.Random) -> None:
    world.put("critic/vf_explained_var", lambda t: 0.3 + 0.3 * t, 0.05)
    to = chance.uniform(-1.0, -0.15)
    world.change(
        "critic/vf_explained_var", onset, lambda _, __: to + chance.gauss(0, 0.03)
    )


@failure("no-signal", "verl")
def _no_signal(world: World, onset: int, _: random.Random) -> None:
    for key in ("critic/advantages/max", "critic/advantages/min"):
        world.change(key, onset, lambda _, __: 0.0)


@failure("not-finite")
def _not_finite(world: World, onset: int, chance: random.Random) -> None:
    key = world.key(chance.choice(("policy_loss", "grad_norm")))
    once = chance.random() < 0.5
    world.change(key, onset, lambda i, known: known if once and i else math.nan)


@failure("async-idle", "verl")
def _async_idle(world: World, onset: int, chance: random.Random) -> None:
    for side in ("rollouter", "trainer"):
        world.put(f"fully_async/{side}/idle_ratio", 0.15, 0.03, low=0.0)
    side = chance.choice(("rollouter", "trainer"))
    to = chance.uniform(0.65, 0.9)
    world.change(
        f"fully_async/{side}/idle_ratio",
        onset,
        lambda _, __: to + chance.gauss(0, 0.02),
    )


@failure("grad-norm-spike")
def _grad_norm_spike(world: World, onset: int, chance: random.Random) -> None:
    times = chance.uniform(20, 80)
    world.change(
        world.key("grad_norm"),
        onset,
        lambda i, known: known * times if i == 0 else known,
    )


@failure("clip-saturation")
def _clip_saturation(world: World, onset: int, chance: random.Random) -> int:
    to = chance.uniform(0.36, 0.6)
    length = chance.randint(1, 40)
    start = world.columns[world.key("clip")][0] or 0.0
    world.change(
        world.key("clip"),
        onset,
        lambda i, _: ramp(i, length, start, to) + chance.gauss(0, 0.01),
    )
    # there it passes 0.3
    return onset + math.ceil(length * (0.3 - start) / (to - start)) - 1


@failure("plateau", steps=700)
def _plateau(world: World, onset: int, chance: random.Random) -> None:
    key = world.key("reward")
    at = world.before(key, onset)
    world.change(key, onset, lambda _, __: at + chance.gauss(0, 0.02))
    for score in [
        name for name in world.columns if name.startswith(("val-core", "eval"))
    ]:
        last = next(
            value
            for value in reversed(world.columns[score][: onset - 1])
            if value is not None
        )
        world.change(
            score, onset, lambda _, __, last=last: last + chance.gauss(0, 0.01)
        )


# -- several signals -------------------------------------------------------------------------------


def cliff(world: World, onset: int, chance: random.Random) -> None:
    """The reward falls to near its floor within some steps."""
    key = world.key("reward")
    length = chance.randint(2, 10)
    before = world.columns[key][onset - 2] or 0.0
    to = before * chance.uniform(0.02, 0.35)
    world.change(
        key,
        onset,
        lambda i, _: ramp(i, length, before, to) + chance.gauss(0, 0.02 * abs(before)),
    )


@failure("policy-collapse")
def _policy_collapse(world: World, onset: int, chance: random.Random) -> None:
    cliff(world, onset, chance)
    ahead = chance.randint(1, 25)
    which = "policy_kl" if world.dialect == "tutorial" else "reference_kl"
    key = world.key(which)
    to = chance.uniform(0.15, 0.4) if which == "policy_kl" else chance.uniform(1.0, 3.0)
    start = world.columns[key][onset - ahead - 1] or 0.0
    world.change(
        key,
        onset - ahead,
        lambda i, _: ramp(i, 8, start, to) * chance.uniform(0.9, 1.1),
    )
    world.settings = {"kl_coef": 0.001, "kl_controller": "fixed"}


@failure("policy-collapse")
def _policy_collapse_in_loops(world: World, onset: int, chance: random.Random) -> None:
    cliff(world, onset, chance)
    chinese = chance.random() < 0.5

    def text(step: int) -> str:
        return (loop if step >= onset else prose)(chance, chinese=chinese)

    dump(world, 5, text, lambda _, __: float(chance.random() < 0.5))


@failure("entropy-collapse")
def _entropy_collapse(world: World, onset: int, chance: random.Random) -> None:
    reward, entropy = world.key("reward"), world.key("entropy")
    flat = world.before(reward, onset)
    start = world.before(entropy, onset)
    pace = chance.uniform(15, 60)
    world.change(reward, onset - 40, lambda _, __: flat + chance.gauss(0, 0.025))
    world.change(
        entropy,
        onset,
        lambda i, _: start * math.exp(-i / pace) + 0.003 + abs(chance.gauss(0, 0.002)),
    )


@failure("reward-hacking", "verl", "other")
def _reward_hacking(world: World, onset: int, chance: random.Random) -> None:
    reward = world.key("reward")
    before = world.before(reward, onset)
    gain = chance.uniform(0.15, 0.3)
    key = next(name for name in world.columns if name.startswith(("val-core", "eval")))
    validate(
        world, key, lambda t: 0.3 + 0.3 * min(1.0, t * 2), every=chance.choice((5, 10))
    )
    last = next(
        value
        for value in reversed(world.columns[key][: onset - 1])
        if value is not None
    )
    fall = chance.choice((0.0, 0.1, 0.25))
    world.change(
        reward,
        onset,
        lambda i, _: before + ramp(i, 150, 0.0, gain) + chance.gauss(0, 0.015),
    )
    world.change(
        key, onset, lambda i, _: last - ramp(i, 150, 0.0, fall) + chance.gauss(0, 0.01)
    )


@failure("reward-hacking")
def _hacking_by_sameness(world: World, onset: int, chance: random.Random) -> None:
    for name in [
        name for name in world.columns if name.startswith(("val-core", "eval"))
    ]:
        del world.columns[name]
    reward = world.key("reward")
    before = world.before(reward, onset)
    world.change(
        reward,
        onset,
        lambda i, _: (
            before * (1 + ramp(i, 150, 0.0, 0.35)) + chance.gauss(0, 0.01 * before)
        ),
    )
    same = prose(chance)

    def text(step: int) -> str:
        return (
            same
            if chance.random() < ramp(step - onset, 120, 0.0, 0.9)
            else prose(chance)
        )

    dump(world, 2, text, lambda _, __: float(chance.random() < 0.5))


@failure("length-explosion", "verl", "other")
def _length_explosion(world: World, onset: int, chance: random.Random) -> None:
    limit, length = 1024, chance.randint(50, 120)
    world.settings[
        "data.max_response_length"
        if world.dialect == "verl"
        else "max_completion_length"
    ] = limit
    share = chance.uniform(0.4, 0.8)
    loss = chance.uniform(0.35, 0.7)
    reward = world.key("reward")
    before = world.before(reward, onset)
    start = world.before(world.key("length"), onset)
    world.change(
        world.key("length"),
        onset,
        lambda i, _: ramp(i, length, start, 0.93 * limit) + chance.gauss(0, 10),
    )
    world.change(
        world.key("cut"),
        onset,
        lambda i, _: ramp(i, length, 0.01, share) + chance.gauss(0, 0.01),
    )
    world.change(
        reward,
        onset,
        lambda i, _: before * (1 - ramp(i, length, 0.0, loss)) + chance.gauss(0, 0.02),
    )


def scores(world: World) -> list[str]:
    """Return the reward, its parts and validation: all of them tell of a policy that says nothing
    any more.
    """
    known = (
        "critic/score",
        "critic/rewards",
        "reward",
        "rollout/reward_mean",
        "val-core",
        "eval",
    )
    return [key for key in world.columns if key.startswith(known)]


@failure("length-collapse")
def _length_collapse(world: World, onset: int, chance: random.Random) -> int:
    length = chance.randint(1, 60)
    left = chance.uniform(0.01, 0.15)
    fall = chance.uniform(0.5, 0.9)
    for key in scores(world):
        world.change(
            key, onset, lambda i, known: known * ramp(i, length, 1.0, 1 - fall)
        )
    world.change(
        world.key("length"),
        onset,
        lambda i, known: max(1.0, known * ramp(i, length, 1.0, left)),
    )
    return onset + round(0.75 * length / (1 - left))  # there a quarter is left


@failure("length-collapse")
def _shrinks_for_nothing(world: World, onset: int, chance: random.Random) -> int:
    length = chance.randint(1, 40)
    left = chance.uniform(0.005, 0.08)
    level = chance.uniform(0.05, 0.4)
    for key in scores(world):
        world.change(key, 1, lambda _, __: level + chance.gauss(0, 0.02))
    world.change(
        world.key("length"),
        onset,
        lambda i, known: max(1.0, known * ramp(i, length, 1.0, left)),
    )
    return onset + round(0.85 * length / (1 - left))  # there 15% is left


@failure("engine-mismatch", "verl")
def _engine_mismatch(world: World, onset: int, chance: random.Random) -> None:
    times = chance.uniform(2.5, 6)
    key, to = chance.choice(
        (
            ("training/rollout_probs_diff_mean", 0.03),
            ("rollout_corr/kl", 0.3),
            ("rollout_corr/chi2_token", 3.0),
        )
    )
    world.change(key, onset, lambda i, known: ramp(i, 40, known, to))
    world.change(
        "actor/grad_norm", onset, lambda i, known: known * ramp(i, 120, 1.0, times)
    )


@failure("repetition")
def _repetition(world: World, onset: int, chance: random.Random) -> int:
    chinese = chance.random() < 0.5
    share = chance.uniform(0.5, 1.0)

    def text(step: int) -> str:
        broken = step >= onset and chance.random() < share
        return (loop if broken else prose)(chance, chinese=chinese)

    dump(world, 5, text, lambda _, __: float(chance.random() < 0.5))
    return math.ceil(onset / 5) * 5  # the first dump that shows it


@failure("dead-groups", "verl", "tutorial")
def _dead_groups(world: World, onset: int, chance: random.Random) -> int:
    right = float(chance.random() < 0.5)

    def score(step: int, _: int) -> float:
        return right if step >= onset else float(chance.random() < 0.5)

    dump(world, 2, lambda _: prose(chance), score)
    return math.ceil(onset / 2) * 2


@failure("dead-groups", "other")
def _dead_groups_by_the_trainer(
    world: World, onset: int, chance: random.Random
) -> None:
    to = chance.uniform(0.8, 1.0)
    world.change(
        "frac_reward_zero_std",
        onset,
        lambda _, __: min(1.0, to + chance.gauss(0, 0.03)),
    )


@failure("component-imbalance", "other")
def _component_imbalance(world: World, onset: int, chance: random.Random) -> None:
    stuck = chance.uniform(0.02, 0.15)
    length = chance.randint(10, 60)
    world.columns["rewards/accuracy_reward/mean"] = [
        max(0.0, stuck + n) for n in world.noise(0.02)
    ]
    world.columns["rewards/format_reward/mean"] = [0.3 + n for n in world.noise(0.02)]
    world.change(
        "rewards/format_reward/mean",
        onset,
        lambda i, _: min(1.0, ramp(i, length, 0.3, 1.0) + chance.gauss(0, 0.01)),
    )


@failure("component-imbalance", "verl", "tutorial")
def _component_imbalance_in_dumps(
    world: World, onset: int, chance: random.Random
) -> None:
    stuck = chance.uniform(0.02, 0.15)
    length = chance.randint(10, 60)

    def well_formed(step: int) -> float:
        share = ramp(step - onset, length, 0.3, 1.0) if step >= onset else 0.3
        return float(chance.random() < share)

    dump(
        world,
        1,
        lambda _: "so it is",
        lambda _, __: float(chance.random() < 0.5),
        format_reward=well_formed,
        acc=lambda _: float(chance.random() < stuck),
    )


@failure("slow-phase", "verl")
def _slow_phase(world: World, onset: int, chance: random.Random) -> None:
    phase = chance.choice(("gen", "update_actor"))
    times = chance.uniform(2.0, 4.0)
    length = chance.randint(1, 60)
    column, step = world.columns[f"timing_s/{phase}"], world.columns["timing_s/step"]
    for i in range(onset - 1, world.steps):
        known = column[i] or 0.0
        added = known * (ramp(i - onset + 1, length, 1.0, times) - 1)
        column[i], step[i] = known + added, (step[i] or 0.0) + added


@failure("slow-phase", "other")
def _slow_step(world: World, onset: int, chance: random.Random) -> None:
    times = chance.uniform(2.0, 4.0)
    world.change("step_time", onset, lambda _, known: known * times)


@failure("restart")
def _restart(world: World, onset: int, _: random.Random) -> None:
    world.again = onset


@failure("crash", "verl", form="console")
def _crash(world: World, onset: int, chance: random.Random) -> int:
    errors = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79 GiB",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "[rank7]:[E1121 ProcessGroupNCCL.cpp:616] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL("
        "SeqNum=42, OpType=ALLTOALL, Timeout(ms)=600000) ran for 600013 milliseconds before timing out.",
    )
    shorten(world, onset)
    world.age = 300.0
    world.lines = [
        "Traceback (most recent call last):",
        '  File "main_ppo.py", line 42, in run',
        chance.choice(errors),
    ]
    return world.steps


def waiting(world: World, quiet: float) -> None:
    """Let a heartbeat go on since the last step, with counters that stand still: a silent log may
    be a copy.
    """
    world.age = 20.0
    beats = (
        datetime.fromtimestamp(NOW - quiet + at)  # noqa: DTZ006 - as logs do
        for at in range(0, int(quiet), 60)
    )
    counters = "pending: 0, running: 8, finished: 0, failure: 0"
    world.lines = [
        f"(TaskRunner pid=7) INFO:{beat:%Y-%m-%d %H:%M:%S},673:{counters}"
        for beat in beats
    ]


@failure("hang", "verl", form="console")
def _hang(world: World, onset: int, chance: random.Random) -> int:
    shorten(world, onset)
    waiting(world, chance.uniform(600, 3000))
    return world.steps


@failure("worker-errors", "verl", form="console")
def _worker_errors(world: World, onset: int, chance: random.Random) -> int:
    shorten(world, onset)
    said = chance.choice(
        (
            "RuntimeError: judge endpoint returned 503",
            "asyncio.TimeoutError: sandbox 17 is busy",
        )
    )
    world.lines = [
        f"(AgentLoopWorker pid={pid}) {line}"
        for pid in range(40, 40 + chance.randint(4, 40))
        for line in (
            "Traceback (most recent call last):",
            '  File "agent_loop.py", line 7, in run',
            said,
        )
    ]
    return world.steps


# -- what goes wrong in silence --------------------------------------------------------------------

level("kl-negative", "reference_kl", -0.6, -0.3, 0.03)


@failure("one-phase", "verl")
def _one_phase(world: World, onset: int, chance: random.Random) -> None:
    seconds = chance.uniform(800, 3000)
    world.put("timing_s/reward", 4.0, 0.2)
    for key in ("timing_s/reward", "timing_s/step"):
        world.change(key, onset, lambda _, known: known + seconds)


def _raylet(free: float, age: float) -> str:
    at = datetime.fromtimestamp(NOW - age)  # noqa: DTZ006 - as logs do
    return (
        f"(raylet, ip=10.1.0.5) [{at:%Y-%m-%d %H:%M:%S},313 E 95 97] (raylet) file_system_monitor.cc:116: "
        f"/tmp/ray is over 95% full, available space: {free:.4f} GB; capacity: 900 GB. Object creation "
        "will fail if spilling is required."
    )


@failure("disk-filling", "verl", form="console")
def _disk(world: World, onset: int, chance: random.Random) -> int:
    shorten(world, onset)
    left, each = chance.uniform(20, 40), chance.uniform(1, 3)
    world.age = 5.0
    world.lines = [_raylet(left - each * i / 6, 60.0 - 10 * i) for i in range(6)]
    return world.steps


@failure("ended-early", "verl", form="console")
def _ended_early(world: World, onset: int, _: random.Random) -> int:
    world.settings["trainer.total_training_steps"] = world.steps
    shorten(world, onset)
    world.age = 300.0
    world.lines = ["wandb: Find logs at: ./wandb/run-20260504_080012-k2j4/logs"]
    return world.steps


@failure("resume-lost", "verl", form="console")
def _resume_lost(world: World, onset: int, _: random.Random) -> int:
    """The run goes on with the values of its first steps."""
    begun = dict(world.columns)
    world.lines = ["(TaskRunner pid=9) Setting global step to " + str(onset)]
    world.lines += [
        f"(TaskRunner pid=9) step:{onset + 1 + i} - "
        + " - ".join(
            f"{key}:{values[i]!r}"
            for key, values in begun.items()
            if values[i] is not None
        )
        for i in range(1, 30)
    ]
    shorten(world, onset)
    return world.steps


# -- by the letter, at any cadence, on any device --------------------------------------------------

level("gpu-low", "gpu", 52.5, 57, 1.5, "tutorial", "other")


def devices(world: World, level: float) -> int:
    """Add eight devices at some level; return one of them."""
    for i in range(8):
        world.put(f"system/gpu.{i}.gpu", level, 4)
        world.put(f"system/gpu.{i}.memoryAllocated", 78, 1)
    return world.chance.randrange(8)


@failure("gpu-uneven")
def _gpu_uneven(world: World, onset: int, chance: random.Random) -> None:
    one, to = devices(world, 85), chance.uniform(0, 35)
    world.change(
        f"system/gpu.{one}.gpu", onset, lambda _, __: max(0.0, to + chance.gauss(0, 3))
    )


@failure("gpu-idle", "verl")
def _devices_idle(world: World, onset: int, chance: random.Random) -> None:
    devices(world, 85)
    to = chance.uniform(10, 42)
    for i in range(8):
        world.change(
            f"system/gpu.{i}.gpu",
            onset,
            lambda _, __: max(0.0, to + chance.gauss(0, 5)),
        )


@failure("gpu-low", "verl")
def _devices_low(world: World, onset: int, chance: random.Random) -> None:
    devices(world, 85)
    to = chance.uniform(53, 57)
    for i in range(8):
        world.change(
            f"system/gpu.{i}.gpu", onset, lambda _, __: to + chance.gauss(0, 3)
        )


@failure("ref-kl-above-band", "tutorial", steps=800)
def _reference_climbs(world: World, onset: int, chance: random.Random) -> int:
    slope = chance.uniform(0.00035, 0.0006)
    world.change(
        "kl/divergence", onset, lambda i, _: 0.05 + slope * i + chance.gauss(0, 0.006)
    )
    return onset + math.ceil(0.05 / slope)  # there it leaves its band, 0.1


@failure("ref-kl-above-band", "verl", "other")
def _reference_far(world: World, onset: int, chance: random.Random) -> None:
    reward = world.key("reward")
    to = chance.uniform(1.3, 4.0)
    flat = world.columns[reward][0] or 0.0
    world.columns[reward] = [flat + noise for noise in world.noise(0.02)]
    key = world.key("reference_kl")
    world.put(key, lambda _: 0.05, 0.005)
    world.change(key, onset, lambda _, __: to * (1 + chance.gauss(0, 0.05)))


@failure("policy-collapse", steps=40, onset=(7, 30))
def _collapse_in_few_points(world: World, onset: int, chance: random.Random) -> None:
    reward = world.key("reward")
    before = world.columns[reward][onset - 2] or 1.0
    to = chance.uniform(0.05, 0.4)
    world.columns[reward] = [before * (1 + noise) for noise in world.noise(0.04)]
    world.change(
        reward,
        onset,
        lambda i, _: before * max(to, 0.6 - 0.3 * i) * (1 + chance.gauss(0, 0.05)),
    )
    which = "policy_kl" if world.dialect == "tutorial" else "reference_kl"
    far = chance.uniform(0.4, 0.8) if which == "policy_kl" else chance.uniform(1.0, 3.0)
    world.change(
        world.key(which),
        onset - chance.randint(0, 2),
        lambda i, _: far * chance.uniform(0.9, 1.1),
    )


@failure("entropy-collapse", steps=60, onset=(2, 5))
def _dead_from_the_first_steps(world: World, onset: int, chance: random.Random) -> None:
    reward, entropy = world.key("reward"), world.key("entropy")
    world.columns[reward] = [0.1 + abs(noise) for noise in world.noise(0.02)]
    world.columns[entropy] = [4.5 * (1 + noise) for noise in world.noise(0.02)]
    world.change(
        entropy, onset, lambda i, _: 0.15 * math.exp(-i) * chance.uniform(0.3, 1)
    )
    world.change(reward, onset, lambda _, __: abs(chance.gauss(0, 0.02)))


@failure("dead-groups", "verl", "tutorial", steps=12, onset=(1, 1))
def _dead_groups_in_few_dumps(world: World, onset: int, chance: random.Random) -> int:
    dump(world, 1, lambda _: prose(chance), lambda _, __: 0.0)
    for records in world.dumps.values():
        records[:] = [
            {
                **record,
                "input": f"{record['input']} {i}",
                "score": float(chance.random() < 0.5) if i == 0 else 0.0,
            }
            for i in range(8)
            for record in records
        ]
    return onset


@failure("clip-saturation", onset=(1, 1))
def _clip_saturated_from_the_first_steps(
    world: World, onset: int, chance: random.Random
) -> None:
    to = chance.uniform(0.55, 0.75)
    world.change(world.key("clip"), onset, lambda _, __: to + chance.gauss(0, 0.02))


@failure("grad-norm-spike")
def _spike_among_solved_groups(world: World, onset: int, chance: random.Random) -> None:
    rest = chance.choice((0.0, 0.001))
    norms = [
        chance.uniform(0.3, 1.5) if chance.random() < 0.3 else rest
        for _ in range(world.steps)
    ]
    norms[onset - 1] = chance.uniform(25, 80)
    world.columns[world.key("grad_norm")] = [*norms]


@failure("policy-loss-jump", "tutorial")
def _loss_jumps_a_little(world: World, onset: int, chance: random.Random) -> None:
    world.put("ppo/policy_loss", -0.3, 0.03)
    world.change(
        "ppo/policy_loss",
        onset,
        lambda i, known: -chance.uniform(0.85, 1.0) if i == 0 else known,
    )


def shorten(world: World, steps: int) -> None:
    """Let a run end after so many steps."""
    world.steps = steps
    world.columns = {key: values[:steps] for key, values in world.columns.items()}


def planted(failure: Failure, dialect: str, seed: int) -> tuple[World, int]:
    """Return a world with a failure, and the step of its true onset."""
    chance = random.Random(f"{failure.id} {dialect} {seed}")
    world = DIALECTS[dialect](failure.steps, chance)
    onset = chance.randint(*failure.onset)
    true = failure.plant(world, onset, chance)
    return world, onset if true is None else true
