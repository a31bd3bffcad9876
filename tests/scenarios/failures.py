"""Failures planted into healthy worlds: every id of the indicator guide, in each dialect that it is
judged in.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from scenarios.worlds import DIALECTS, NOW, World, dump, loop, prose, ramp, validate

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
    id: str, *dialects: str, **more: object
) -> Callable[[Callable[..., int | None]], None]:
    """Enter a way of planting into the list, with what else its `Failure` has."""
    return lambda plant: FAILURES.append(
        Failure(id, dialects or ALL, plant, **more)  # type: ignore[arg-type]
    )


def level(
    id: str, what: str, low: float, high: float, size: float, *dialects: str
) -> None:
    """A metric goes to another level, somewhere between two, and stays."""

    def plant(world: World, onset: int, chance: random.Random) -> None:
        world.go(what, onset, chance.uniform(low, high), size)

    failure(id, *dialects)(plant)


def half(chance: random.Random) -> bool:
    """Return either, as often as the other."""
    return chance.random() < 0.5


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
    world.go("reward", onset, 0.0)


def falls(world: World, onset: int, length: int, left: float) -> None:
    """Let the reward fall to a share within so many steps."""
    before = world.at("reward", onset - 1)
    size = 0.02 * abs(before)
    world.go("reward", onset, before * left, size, start=before, length=length)


@failure("reward-cliff")
def _reward_cliff(world: World, onset: int, chance: random.Random) -> None:
    falls(world, onset, chance.randint(1, 10), chance.uniform(0.02, 0.3))


@failure("reward-slide")
def _reward_slide(world: World, onset: int, chance: random.Random) -> int:
    length, left = chance.randint(60, 150), chance.uniform(0.02, 0.3)
    falls(world, onset, length, left)
    return onset + round(0.25 * length / (1 - left))  # there it has lost a quarter


@failure("reward-jump")
def _reward_jump(world: World, onset: int, chance: random.Random) -> None:
    world.scale("reward", onset, chance.choice((10, 100, 1000)))


@failure("component-falls")
def _component_falls(world: World, onset: int, chance: random.Random) -> int:
    stem = {
        "verl": "reward_extra/{}/mean",
        "other": "rewards/{}/mean",
        "tutorial": "reward_components/{}",
    }
    falls, stays = (stem[world.dialect].format(name) for name in ("answer", "format"))
    level, length = chance.uniform(0.4, 0.8), chance.randint(1, 120)
    world.put(stays, 0.97, 0.005)
    world.put(falls, level, 0.03)
    world.scale(falls, onset, 0.05, length)
    return onset + round(0.31 * length / 0.95)  # there it has lost 31%


@failure("nothing-learns", "verl", "other")
def _nothing_learns(world: World, onset: int, _: random.Random) -> None:
    world.columns.pop(world.key("reference_kl"), None)
    world.put(world.key("rate"), 3.217e-6)
    world.go("rate", onset, 0.0)


@failure("nothing-learns")
def _level_from_the_start(world: World, _: int, chance: random.Random) -> int:
    parts = [key for key in world.columns if key.startswith("rewards/")]
    for key in ("reward", *parts, *validations(world)):
        world.go(key, 1, chance.uniform(0.3, 0.6), 0.03)
    return 1


@failure("reward-noisy", "tutorial")
def _reward_noisy(world: World, onset: int, chance: random.Random) -> None:
    share = chance.uniform(0.65, 1.2)
    world.change(
        "rollout/reward_std", onset, lambda i, _: share * world.at("reward", onset + i)
    )


@failure("ref-kl-high", "verl", "other")
def _reference_surge(world: World, onset: int, chance: random.Random) -> None:
    times = chance.uniform(7, 15)
    world.change("reference_kl", onset, lambda _, known: max(0.2, known * times))


@failure("ref-kl-rising", "tutorial")
def _reference_rising(world: World, onset: int, chance: random.Random) -> int:
    return climbs(world, onset, chance.uniform(0.0008, 0.0012), 0.06, 0.002)


def climbs(world: World, onset: int, slope: float, start: float, size: float) -> int:
    """Let the reference KL climb; return the step at which it leaves its band, 0.1."""
    world.change(
        "kl/divergence",
        onset,
        lambda i, _: start + slope * i + world.chance.gauss(0, size),
    )
    return onset + math.ceil((0.1 - start) / slope)


@failure("ref-kl-rising", "verl", "other")
def _reference_drift(world: World, onset: int, chance: random.Random) -> int:
    times = chance.uniform(1.5, 4.0)
    start = world.at("reference_kl", onset)
    world.change(
        "reference_kl",
        onset,
        lambda i, _: start + times * (i / 150) ** 1.5 + chance.gauss(0, 0.005),
    )
    # there it passes 1
    return onset + math.ceil(150 * ((1.0 - start) / times) ** (1 / 1.5))


def once(world: World, what: str, onset: int, value: float) -> None:
    """Let a metric be another at one step alone."""
    world.change(what, onset, lambda i, known: known if i else value)


@failure("policy-loss-jump")
def _policy_loss_jump(world: World, onset: int, chance: random.Random) -> None:
    size = chance.choice((-1, 1)) * chance.uniform(2.5, 8.0)
    once(world, "policy_loss", onset, size)


@failure("circuit-breaker-reward")
def _reward_breaker(world: World, onset: int, chance: random.Random) -> None:
    keep = chance.uniform(0.55, 0.75)
    before = world.at("reward", onset - 1) or 1.0
    world.change("reward", onset, lambda i, _: before * keep ** min(i + 1, 8))


# -- verl's documents ------------------------------------------------------------------------------

CORR = "rollout_corr/rollout_"
level("rollout-probs-diff", "training/rollout_probs_diff_mean", 0.012, 0.05, 5e-4, "verl")  # fmt: skip
level("rollout-is-mean", f"{CORR}is_mean", 0.2, 0.42, 0.02, "verl")
level("rollout-is-mean", f"{CORR}is_mean", 2.3, 4.0, 0.05, "verl")
level("rollout-is-ess", f"{CORR}is_eff_sample_size", 0.05, 0.25, 0.01, "verl")
level("rollout-is-std", f"{CORR}is_std", 1.2, 3.0, 0.05, "verl")
level("rollout-kl", "rollout_corr/kl", 0.13, 0.5, 0.01, "verl")
level("rollout-kl", "rollout_corr/kl", -0.5, -0.13, 0.01, "verl")
level("rollout-kl", "rollout_corr/kl", 0.013, 0.05, 0.001, "verl")
level("rollout-kl", "gen_kl_error", 0.013, 0.05, 0.001, "other")
level("token-mult-prob-error", "token_mult_prob_error", 1.03, 1.1, 0.003, "other")
level("engine-pearson", "training/rollout_actor_probs_pearson_corr", 0.5, 0.85, 0.02, "verl")  # fmt: skip
level("rejection-eats-batch", f"{CORR}rs_masked_fraction", 0.55, 0.9, 0.02, "verl")
level("rejection-eats-batch", f"{CORR}rs_masked_fraction", 0.25, 0.4, 0.02, "verl")
level("rollout-chi2", "rollout_corr/chi2_token", 1.2, 5.0, 0.05, "verl")
level("truncation", "cut", 0.15, 0.6, 0.02, "verl", "other")
level("prompt-truncation", "prompt_length/clip_ratio", 0.15, 0.5, 0.01, "verl")
level("aborted", "response/aborted_ratio", 0.01, 0.2, 0.001, "verl")


@failure("sequence-is-saturated", "verl")
def _sequence_saturated(world: World, onset: int, chance: random.Random) -> None:
    world.settings["algorithm.rollout_correction.rollout_is"] = "sequence"
    world.go("rollout_corr/kl", onset, chance.uniform(0.1, 0.2), 0.002)


@failure("token-mult-prob-error", "other")
def _refit_fault(world: World, onset: int, chance: random.Random) -> None:
    once(world, "token_mult_prob_error", onset, chance.uniform(1.5, 4.0))


@failure("first-step", "verl", "other")
def _first_step(world: World, _: int, chance: random.Random) -> int:
    key = {"verl": "actor/kl_loss", "other": "train/kl_loss"}[world.dialect]
    world.put(key, 0.001)
    low, high = chance.uniform(0.7, 0.9), chance.uniform(1.2, 4.0)
    world.columns[key][0] = chance.choice((low, high))
    return 1


@failure("weights-not-synced", "verl", "other")
def _old_weights(world: World, onset: int, chance: random.Random) -> int:
    (key,) = validations(world)
    world.put(world.key("rate"), 1e-6)
    value = chance.uniform(0.2, 0.8)
    world.go(key, onset, value)
    return next(i + 1 for i, known in enumerate(world.columns[key]) if known == value)


@failure("entropy-explosion")
def _entropy_explodes(world: World, onset: int, chance: random.Random) -> None:
    length, times = chance.randint(15, 60), chance.uniform(4, 10)
    fall = chance.uniform(0.3, 0.55)
    world.scale("entropy", onset, times, length)
    if half(chance) or world.dialect == "tutorial":
        world.scale("reward", onset, 1 - fall, 2 * length)
    else:
        world.go("reward", onset, world.at("reward", onset - 1), 0.02)
        world.scale("length", onset, 2.0, length)


@failure("host-memory", "verl")
def _leak(world: World, onset: int, chance: random.Random) -> None:
    each = chance.uniform(0.5, 2.0)
    world.put("perf/cpu_memory_used_gb", 180, 1.0)
    if half(chance):
        world.put("perf/cpu_memory_total_gb", 500.0)
    world.change("perf/cpu_memory_used_gb", onset, lambda i, known: known + each * i)


@failure("dead-groups", "verl")
def _dead_by_the_filter(world: World, onset: int, chance: random.Random) -> None:
    share = chance.uniform(0.76, 0.9)
    key = "training/filter_groups/evicted_samples"
    world.settings["data.train_batch_size"] = 128
    world.put(key, 60, 8, low=0.0)
    world.go(key, onset, 128 * share / (1 - share), 10)


@failure("dead-groups", "verl")
def _dead_by_the_mean(world: World, onset: int, chance: random.Random) -> None:
    world.settings |= {"data.train_batch_size": 128, "actor_rollout_ref.rollout.n": 8}
    low = chance.uniform(0.005, 0.025)
    world.change("reward", 1, lambda _, known: round(known * 1024) / 1024)
    world.change(
        "reward",
        onset,
        lambda _, __: round(1024 * max(0.0, low + chance.gauss(0, 0.004))) / 1024,
    )


@failure("corrupted-requests", "verl", "other")
def _corrupted(world: World, onset: int, chance: random.Random) -> None:
    world.put("vllm:corrupted_requests", 0.0)
    world.go("vllm:corrupted_requests", onset, float(chance.randint(1, 9)))


@failure("truncation", "verl")
def _truncation_v1(world: World, onset: int, chance: random.Random) -> None:
    # The v1 trainer: a share of the longest response, which means cut ones only where that reached
    # the limit.
    world.put("training/num_turns/mean", 2.0)
    world.settings["data.max_response_length"] = 1024
    world.change("response_length/max", 1, lambda _, known: min(known, 1020.0))
    world.go("response_length/max", onset, 1024.0)
    world.go("cut", onset, chance.uniform(0.15, 0.6), 0.01)


@failure("grad-norm-rising")
def _grad_norm_rising(world: World, onset: int, chance: random.Random) -> None:
    times = chance.uniform(4, 8)
    world.change(
        "grad_norm", onset, lambda i, known: known * times ** min(1.0, i / 130)
    )


@failure("staleness", "verl")
def _staleness(world: World, onset: int, chance: random.Random) -> None:
    key = "training/off_policy/trajectory_staleness/max"
    to = chance.randint(9, 20)
    world.columns[key] = [float(chance.randint(0, 6)) for _ in range(world.steps)]
    world.go(key, onset, float(to))


@failure("critic-useless", "verl")
def _critic_useless(world: World, onset: int, chance: random.Random) -> None:
    world.put("critic/vf_explained_var", lambda t: 0.3 + 0.3 * t, 0.05)
    world.go("critic/vf_explained_var", onset, chance.uniform(-1.0, -0.15), 0.03)


@failure("no-signal", "verl")
def _no_signal(world: World, onset: int, _: random.Random) -> None:
    for key in ("critic/advantages/max", "critic/advantages/min"):
        world.go(key, onset, 0.0)


@failure("not-finite")
def _not_finite(world: World, onset: int, chance: random.Random) -> None:
    key = chance.choice(("policy_loss", "grad_norm"))
    for_once = half(chance)
    world.change(key, onset, lambda i, known: known if for_once and i else math.nan)


@failure("async-idle", "verl")
def _async_idle(world: World, onset: int, chance: random.Random) -> None:
    keys = [f"fully_async/{side}/idle_ratio" for side in ("rollouter", "trainer")]
    for key in keys:
        world.put(key, 0.15, 0.03, low=0.0)
    world.go(chance.choice(keys), onset, chance.uniform(0.65, 0.9), 0.02)


@failure("grad-norm-spike")
def _grad_norm_spike(world: World, onset: int, chance: random.Random) -> None:
    times = chance.uniform(20, 80)
    once(world, "grad_norm", onset, times * world.at("grad_norm", onset))


@failure("clip-saturation")
def _clip_saturation(world: World, onset: int, chance: random.Random) -> int:
    to, length = chance.uniform(0.36, 0.6), chance.randint(1, 40)
    start = world.at("clip", 1)
    world.go("clip", onset, to, 0.01, start=start, length=length)
    # there it passes 0.3
    return onset + math.ceil(length * (0.3 - start) / (to - start)) - 1


@failure("plateau", steps=700)
def _plateau(world: World, onset: int, _: random.Random) -> None:
    world.go("reward", onset, world.at("reward", onset), 0.02)
    for key in validations(world):
        world.go(key, onset, world.last(key, onset), 0.01)


def validations(world: World) -> list[str]:
    """Return the keys of validation."""
    return [key for key in world.columns if key.startswith(("val-core", "eval"))]


# -- several signals -------------------------------------------------------------------------------


def cliff(world: World, onset: int, chance: random.Random) -> None:
    """The reward falls to near its floor within some steps."""
    falls(world, onset, chance.randint(2, 10), chance.uniform(0.02, 0.35))


@failure("policy-collapse")
def _policy_collapse(world: World, onset: int, chance: random.Random) -> None:
    cliff(world, onset, chance)
    ahead = chance.randint(1, 25)
    what, low, high = (
        ("policy_kl", 0.15, 0.4)
        if world.dialect == "tutorial"
        else ("reference_kl", 1.0, 3.0)
    )
    to = chance.uniform(low, high)
    start = world.at(what, onset - ahead)
    world.change(
        what,
        onset - ahead,
        lambda i, _: ramp(i, 8, start, to) * chance.uniform(0.9, 1.1),
    )
    world.settings = {"kl_coef": 0.001, "kl_controller": "fixed"}


@failure("policy-collapse")
def _policy_collapse_in_loops(world: World, onset: int, chance: random.Random) -> None:
    cliff(world, onset, chance)
    chinese = half(chance)

    def text(step: int) -> str:
        return (loop if step >= onset else prose)(chance, chinese=chinese)

    dump(world, 5, text, lambda _, __: float(half(chance)))


@failure("entropy-collapse")
def _entropy_collapse(world: World, onset: int, chance: random.Random) -> None:
    flat, start = world.at("reward", onset), world.at("entropy", onset)
    pace = chance.uniform(15, 60)
    world.go("reward", onset - 40, flat, 0.025)
    world.change(
        "entropy",
        onset,
        lambda i, _: start * math.exp(-i / pace) + 0.003 + abs(chance.gauss(0, 0.002)),
    )


@failure("reward-hacking", "verl", "other")
def _reward_hacking(world: World, onset: int, chance: random.Random) -> None:
    before, gain = world.at("reward", onset), chance.uniform(0.15, 0.3)
    (key,) = validations(world)
    every = chance.choice((5, 10))
    validate(world, key, lambda t: 0.3 + 0.3 * min(1.0, t * 2), every)
    last, fall = world.last(key, onset), chance.choice((0.0, 0.1, 0.25))
    world.go("reward", onset, before + gain, 0.015, start=before, length=150)
    # in steps too, although it is logged at some of them
    world.go(key, onset, last - fall, 0.01, start=last, length=150)


@failure("reward-hacking")
def _hacking_by_sameness(world: World, onset: int, chance: random.Random) -> None:
    for key in validations(world):
        del world.columns[key]
    before = world.at("reward", onset)
    world.go("reward", onset, 1.35 * before, 0.01 * before, start=before, length=150)
    same = prose(chance)

    def text(step: int) -> str:
        share = ramp(step - onset, 120, 0.0, 0.9)
        return same if chance.random() < share else prose(chance)

    dump(world, 2, text, lambda _, __: float(half(chance)))


@failure("length-explosion", "verl", "other")
def _length_explosion(world: World, onset: int, chance: random.Random) -> None:
    limit, length = 1024, chance.randint(50, 120)
    verl = world.dialect == "verl"
    name = "data.max_response_length" if verl else "max_completion_length"
    world.settings[name] = limit
    share, loss = chance.uniform(0.4, 0.8), chance.uniform(0.35, 0.7)
    long, good = world.at("length", onset), world.at("reward", onset)
    world.go("length", onset, 0.93 * limit, 10, start=long, length=length)
    world.go("cut", onset, share, 0.01, start=0.01, length=length)
    world.go("reward", onset, good * (1 - loss), 0.02, start=good, length=length)


def scores(world: World) -> list[str]:
    """Return the reward, its parts and validation: all of them tell of a policy that says nothing
    any more.
    """
    known = ("critic/score", "critic/rewards", "reward", "rollout/reward_mean")
    return [
        key for key in world.columns if key.startswith((*known, "val-core", "eval"))
    ]


def shrink(world: World, onset: int, length: int, left: float) -> None:
    """Let responses shrink to a share within so many steps, to one token at least."""
    world.scale("length", onset, left, length)
    world.change("length", onset, lambda _, known: max(1.0, known))


@failure("length-collapse")
def _length_collapse(world: World, onset: int, chance: random.Random) -> int:
    length, left = chance.randint(1, 60), chance.uniform(0.01, 0.15)
    fall = chance.uniform(0.5, 0.9)
    for key in scores(world):
        world.scale(key, onset, 1 - fall, length)
    shrink(world, onset, length, left)
    return onset + round(0.75 * length / (1 - left))  # there a quarter is left


@failure("length-collapse")
def _shrinks_for_nothing(world: World, onset: int, chance: random.Random) -> int:
    length, left = chance.randint(1, 40), chance.uniform(0.005, 0.08)
    level = chance.uniform(0.05, 0.4)
    for key in scores(world):
        world.go(key, 1, level, 0.02)
    shrink(world, onset, length, left)
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
    world.scale("grad_norm", onset, times, 120)


@failure("repetition")
def _repetition(world: World, onset: int, chance: random.Random) -> int:
    chinese, share = half(chance), chance.uniform(0.5, 1.0)

    def text(step: int) -> str:
        broken = step >= onset and chance.random() < share
        return (loop if broken else prose)(chance, chinese=chinese)

    dump(world, 5, text, lambda _, __: float(half(chance)))
    return math.ceil(onset / 5) * 5  # the first dump that shows it


@failure("dead-groups", "verl", "tutorial")
def _dead_groups(world: World, onset: int, chance: random.Random) -> int:
    right = float(half(chance))

    def score(step: int, _: int) -> float:
        return right if step >= onset else float(half(chance))

    dump(world, 2, lambda _: prose(chance), score)
    return math.ceil(onset / 2) * 2


@failure("dead-groups", "other")
def _dead_groups_by_the_trainer(
    world: World, onset: int, chance: random.Random
) -> None:
    world.go("frac_reward_zero_std", onset, chance.uniform(0.8, 1.0), 0.03)
    world.change("frac_reward_zero_std", onset, lambda _, known: min(1.0, known))


def _to_its_top(world: World, key: str, onset: int, length: int) -> None:
    """Let a reward, or a part of it, come to the top of its scale from a step on."""
    world.put(key, 0.3, 0.02)
    world.go(key, onset, 1.0, 0.01, start=0.3, length=length)
    world.change(key, onset, lambda _, known: min(1.0, known))


@failure("component-imbalance", "other")
def _component_imbalance(world: World, onset: int, chance: random.Random) -> None:
    stuck, length = chance.uniform(0.0, 0.08), chance.randint(10, 60)
    world.put("rewards/accuracy_reward/mean", stuck, 0.02, low=0.0)
    for key in (world.key("reward"), "rewards/format_reward/mean"):
        _to_its_top(world, key, onset, length)


@failure("component-imbalance", "verl", "tutorial")
def _component_imbalance_in_dumps(
    world: World, onset: int, chance: random.Random
) -> None:
    stuck, length = chance.uniform(0.0, 0.03), chance.randint(10, 60)
    _to_its_top(world, world.key("reward"), onset, length)

    def well_formed(step: int) -> float:
        share = ramp(step - onset, length, 0.3, 1.0) if step >= onset else 0.3
        return float(chance.random() < share)

    dump(
        world,
        1,
        lambda _: "so it is",
        lambda _, __: float(half(chance)),
        format_reward=well_formed,
        acc=lambda _: float(chance.random() < stuck),
    )


@failure("slow-phase", "verl")
def _slow_phase(world: World, onset: int, chance: random.Random) -> None:
    phase = f"timing_s/{chance.choice(('gen', 'update_actor'))}"
    times, length = chance.uniform(2.0, 4.0), chance.randint(1, 60)
    healthy = [*world.columns[phase]]
    world.scale(phase, onset, times, length)
    more = [
        late - soon for late, soon in zip(world.columns[phase], healthy, strict=True)
    ]
    world.change("timing_s/step", onset, lambda i, known: known + more[onset - 1 + i])


@failure("slow-phase", "other")
def _slow_step(world: World, onset: int, chance: random.Random) -> None:
    world.scale("step_time", onset, chance.uniform(2.0, 4.0))


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
    world.age = 300.0
    world.lines = [
        "Traceback (most recent call last):",
        '  File "main_ppo.py", line 42, in run',
        chance.choice(errors),
    ]
    return world.shorten(onset)


@failure("hang", "verl", form="console")
def _hang(world: World, onset: int, chance: random.Random) -> int:
    """A heartbeat goes on since the last step, with counters that stand still: a silent log may be
    a copy.
    """
    quiet = chance.uniform(600, 3000)
    world.age = 20.0
    world.lines = [
        f"(TaskRunner pid=7) INFO:{dated(quiet - at)},673:pending: 0, running: 8, finished: 0, failure: 0"
        for at in range(0, int(quiet), 60)
    ]
    return world.shorten(onset)


def dated(ago: float) -> str:
    """Return a moment so many seconds ago as logs write it."""
    at = datetime.fromtimestamp(NOW - ago)  # noqa: DTZ006 - as logs do
    return f"{at:%Y-%m-%d %H:%M:%S}"


@failure("worker-errors", "verl", form="console")
def _worker_errors(world: World, onset: int, chance: random.Random) -> int:
    said = chance.choice(
        (
            "RuntimeError: judge endpoint returned 503",
            "asyncio.TimeoutError: sandbox 17 is busy",
        )
    )
    for pid in range(40, 40 + chance.randint(4, 40)):
        world.lines += [
            f"(AgentLoopWorker pid={pid}) Traceback (most recent call last):",
            f'(AgentLoopWorker pid={pid})   File "agent_loop.py", line 7, in run',
            f"(AgentLoopWorker pid={pid}) {said}",
        ]
    return world.shorten(onset)


# -- what goes wrong in silence --------------------------------------------------------------------

level("kl-negative", "reference_kl", -0.6, -0.3, 0.03)


@failure("one-phase", "verl")
def _one_phase(world: World, onset: int, chance: random.Random) -> None:
    seconds = chance.uniform(800, 3000)
    world.put("timing_s/reward", 4.0, 0.2)
    for key in ("timing_s/reward", "timing_s/step"):
        world.change(key, onset, lambda _, known: known + seconds)


@failure("disk-filling", "verl", form="console")
def _disk(world: World, onset: int, chance: random.Random) -> int:
    left, each = chance.uniform(20, 40), chance.uniform(1, 3)
    world.age = 5.0
    world.lines = [
        f"(raylet, ip=10.1.0.5) [{dated(60.0 - 10 * i)},313 E 95 97] (raylet) file_system_monitor.cc:116: "
        f"/tmp/ray is over 95% full, available space: {left - each * i / 6:.4f} GB; capacity: 900 GB. Object "
        "creation will fail if spilling is required."
        for i in range(6)
    ]
    return world.shorten(onset)


@failure("ended-early", "verl", form="console")
def _ended_early(world: World, onset: int, _: random.Random) -> int:
    world.settings["trainer.total_training_steps"] = world.steps
    world.age = 300.0
    world.lines = ["wandb: Find logs at: ./wandb/run-20260504_080012-k2j4/logs"]
    return world.shorten(onset)


@failure("resume-lost", "verl", form="console")
def _resume_lost(world: World, onset: int, _: random.Random) -> int:
    """The run goes on with the values of its first steps."""
    world.lines = [f"(TaskRunner pid=9) Setting global step to {onset}"]
    for i, (_, row) in enumerate(world.rows()[1:30], 1):
        figures = " - ".join(f"{key}:{value!r}" for key, value in row.items())
        world.lines.append(f"(TaskRunner pid=9) step:{onset + 1 + i} - {figures}")
    return world.shorten(onset)


# -- by the letter, at any cadence, on any device --------------------------------------------------

level("gpu-low", "gpu", 52.5, 57, 1.5, "tutorial", "other")


def devices(world: World, level: float) -> list[str]:
    """Add eight devices at some level; return the keys of their use."""
    for i in range(8):
        world.put(f"system/gpu.{i}.gpu", level, 4)
        world.put(f"system/gpu.{i}.memoryAllocated", 78, 1)
    return [f"system/gpu.{i}.gpu" for i in range(8)]


@failure("gpu-uneven")
def _gpu_uneven(world: World, onset: int, chance: random.Random) -> None:
    one, to = chance.choice(devices(world, 85)), chance.uniform(0, 35)
    world.change(one, onset, lambda _, __: max(0.0, to + chance.gauss(0, 3)))


@failure("gpu-idle", "verl")
def _devices_idle(world: World, onset: int, chance: random.Random) -> None:
    keys, to = devices(world, 85), chance.uniform(10, 42)
    for key in keys:
        world.change(key, onset, lambda _, __: max(0.0, to + chance.gauss(0, 5)))


@failure("gpu-low", "verl")
def _devices_low(world: World, onset: int, chance: random.Random) -> None:
    keys, to = devices(world, 85), chance.uniform(53, 57)
    for key in keys:
        world.go(key, onset, to, 3)


@failure("ref-kl-above-band", "tutorial", steps=800)
def _reference_climbs(world: World, onset: int, chance: random.Random) -> int:
    return climbs(world, onset, chance.uniform(0.00035, 0.0006), 0.05, 0.006)


@failure("ref-kl-above-band", "verl", "other")
def _reference_far(world: World, onset: int, chance: random.Random) -> None:
    to = chance.uniform(1.3, 4.0)
    world.put(world.key("reward"), world.at("reward", 1), 0.02)
    world.put(world.key("reference_kl"), 0.05, 0.005)
    world.go("reference_kl", onset, to, 0.05 * to)


@failure("policy-collapse", steps=40, onset=(7, 30))
def _collapse_in_few_points(world: World, onset: int, chance: random.Random) -> None:
    before = world.at("reward", onset - 1) or 1.0
    to = chance.uniform(0.05, 0.4)
    world.put(world.key("reward"), before, 0.04 * before)
    world.change(
        "reward",
        onset,
        lambda i, _: before * max(to, 0.6 - 0.3 * i) * (1 + chance.gauss(0, 0.05)),
    )
    what, low, high = (
        ("policy_kl", 0.4, 0.8)
        if world.dialect == "tutorial"
        else ("reference_kl", 1.0, 3.0)
    )
    far = chance.uniform(low, high)
    begins = onset - chance.randint(0, 2)
    world.change(what, begins, lambda _, __: far * chance.uniform(0.9, 1.1))


@failure("entropy-collapse", steps=60, onset=(2, 5))
def _dead_from_the_first_steps(world: World, onset: int, chance: random.Random) -> None:
    world.columns[world.key("reward")] = [0.1 + abs(it) for it in world.noise(0.02)]
    world.put(world.key("entropy"), 4.5, 4.5 * 0.02)
    world.change(
        "entropy", onset, lambda i, _: 0.15 * math.exp(-i) * chance.uniform(0.3, 1)
    )
    world.change("reward", onset, lambda _, __: abs(chance.gauss(0, 0.02)))


@failure("dead-groups", "verl", "tutorial", steps=12, onset=(1, 1))
def _dead_groups_in_few_dumps(world: World, onset: int, chance: random.Random) -> int:
    dump(world, 1, lambda _: prose(chance), lambda _, __: 0.0)
    for records in world.dumps.values():
        records[:] = [
            {
                **record,
                "input": f"{record['input']} {i}",
                "score": float(half(chance)) if i == 0 else 0.0,
            }
            for i in range(8)
            for record in records
        ]
    return onset


@failure("clip-saturation", onset=(1, 1))
def _clip_saturated_from_the_first_steps(
    world: World, onset: int, chance: random.Random
) -> None:
    world.go("clip", onset, chance.uniform(0.55, 0.75), 0.02)


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
    once(world, "policy_loss", onset, -chance.uniform(0.85, 1.0))


def planted(failure: Failure, dialect: str, seed: int) -> tuple[World, int]:
    """Return a world with a failure, and the step of its true onset."""
    chance = random.Random(f"{failure.id} {dialect} {seed}")
    world = DIALECTS[dialect](failure.steps, chance)
    onset = chance.randint(*failure.onset)
    true = failure.plant(world, onset, chance)
    return world, onset if true is None else true
