"""Harder cases than the table of planted failures: mild, slow and short failures, rough noise, healthy runs
that look sick.

python tests/scenarios/harder.py [SEEDS]

What is missed here, and what is told of healthy runs, is printed with its numbers. Nothing here is
a promise.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from scenarios.failures import KEYS, ramp, shorten, waiting
from scenarios.measure import judged
from scenarios.worlds import (
    DIALECTS,
    FORMS,
    HAN,
    WORDS,
    World,
    dump,
    loop,
    prose,
    validate,
    verl,
)

from verl_tui.health.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.health.finding import Episode

ALL = ("tutorial", "verl", "other")
VALIDATION = {
    "verl": "val-core/openai/gsm8k/acc/mean@1",
    "other": "eval_reward",
    "tutorial": "eval/accuracy",
}


@dataclass(frozen=True)
class Case:
    """A failure of a kind that is hard to see."""

    id: str
    name: str
    dialects: tuple[str, ...]
    plant: Callable[[World, int, random.Random], int | None]
    """Changes a world from a step on; returns the step of the true onset where that is another
    one.
    """
    steps: tuple[int, int]
    onset: tuple[int, int]


CASES: list[Case] = []
HEALTHY: dict[str, Callable[[random.Random], World]] = {}


def case(
    id: str,
    name: str,
    *dialects: str,
    steps: tuple[int, int] = (400, 700),
    onset: tuple[int, int] = (120, 280),
) -> Callable[[Callable[[World, int, random.Random], int | None]], None]:
    """Enter a case into the list."""
    return lambda plant: CASES.append(
        Case(id, name, dialects or ALL, plant, steps, onset)
    )


def healthy(name: str) -> Callable[[Callable[[random.Random], World]], None]:
    """Enter a kind of healthy run into the list."""
    return lambda make: HEALTHY.update({name: make})


# -- noise -----------------------------------------------------------------------------------------


def wander(world: World, size: float, memory: float = 0.85) -> list[float]:
    """Return noise of that standard deviation: half of its variance drifts, half is a batch's
    own.
    """
    drift = world.noise(size * math.sqrt(0.5), memory)
    return [value + world.chance.gauss(0, size * math.sqrt(0.5)) for value in drift]


def roughen(world: World, share: float = 0.03) -> World:
    """Let every metric wander by some share of its value."""
    for key, column in world.columns.items():
        noise = wander(world, share)
        if key.startswith(
            (
                "critic/advantages",
                "response/aborted",
                "system/",
                "gpu_util",
                "memory_util",
            )
        ):
            continue  # nothing that wanders
        world.columns[key] = [
            None if value is None else value * (1 + noise[i])
            for i, value in enumerate(column)
        ]
    if world.dialect == "tutorial":
        # No mean lies beyond the limit, and the guide's band is narrow.
        lengths = wander(world, 6)
        world.columns["rollout/response_length_mean"] = [
            min(511.0, 496 + value) for value in lengths
        ]
    return world


def key_of(world: World, what: str) -> str:
    """Return the world's own key of an indicator; a metric's name is its own key."""
    return KEYS.get(what, {}).get(world.dialect, what)


def near(
    id: str,
    what: str,
    to: tuple[float, float],
    size: float,
    *dialects: str,
    name: str = "just beyond",
) -> None:
    """A metric goes to a level not far beyond its threshold, within a few steps, and stays with its
    noise.
    """

    def plant(world: World, onset: int, chance: random.Random) -> None:
        level = chance.uniform(*to)
        length = chance.randint(1, 6)
        key = key_of(world, what)
        noise = wander(world, size)
        start = world.columns[key][onset - 2] or 0.0
        world.change(
            key,
            onset,
            lambda i, _: ramp(i, length, start, level) + noise[onset - 1 + i],
        )

    case(id, name, *dialects)(plant)


# -- one signal, just beyond its threshold ---------------------------------------------------------

near("kl-high", "policy_kl", (0.115, 0.13), 0.012)
near("kl-low", "policy_kl", (0.0036, 0.0043), 0.0006, "tutorial")
near("reward-low", "reward", (0.8, 0.92), 0.07, "tutorial")
near("ref-kl-high", "reference_kl", (0.32, 0.38), 0.015, "tutorial")
near("policy-loss-positive", "policy_loss", (0.02, 0.06), 0.015, "tutorial")
near("response-short", "length", (380, 394), 5, "tutorial")
near("response-long", "length", (522, 526), 1.5, "tutorial")
near("gpu-idle", "gpu", (43, 47), 3, "tutorial", "other")
near("gpu-memory-high", "memory", (90.8, 92), 0.6, "tutorial", "other")
near(
    "rollout-probs-diff",
    "training/rollout_probs_diff_mean",
    (0.011, 0.013),
    0.0008,
    "verl",
)
near(
    "rollout-is-mean",
    "rollout_corr/rollout_is_mean",
    (0.44, 0.48),
    0.02,
    "verl",
    name="just below",
)
near("rollout-is-mean", "rollout_corr/rollout_is_mean", (2.1, 2.3), 0.08, "verl")
near(
    "rollout-is-ess",
    "rollout_corr/rollout_is_eff_sample_size",
    (0.25, 0.28),
    0.015,
    "verl",
)
near("rollout-is-std", "rollout_corr/rollout_is_std", (1.06, 1.2), 0.05, "verl")
near("rollout-kl", "rollout_corr/kl", (0.11, 0.13), 0.01, "verl")
near("rollout-kl", "rollout_corr/kl", (-0.13, -0.11), 0.01, "verl", name="just below")
near("rollout-chi2", "rollout_corr/chi2_token", (1.1, 1.4), 0.1, "verl")
near("truncation", "cut", (0.12, 0.15), 0.02, "verl", "other")
near("prompt-truncation", "prompt_length/clip_ratio", (0.12, 0.15), 0.02, "verl")
near("clip-saturation", "clip", (0.33, 0.37), 0.03)


@case("reward-low", "never rises", "tutorial", onset=(1, 1))
def _reward_low_always(world: World, _: int, chance: random.Random) -> None:
    level = chance.uniform(0.4, 0.85)
    noise = wander(world, 0.07)
    world.columns["rollout/reward_mean"] = [level + value for value in noise]


@case("reward-low", "sinks", "tutorial")
def _reward_sinks(world: World, onset: int, chance: random.Random) -> int:
    length = chance.randint(60, 150)
    to = chance.uniform(0.4, 0.7)
    noise = wander(world, 0.07)
    start = world.columns["rollout/reward_mean"][onset - 2] or 2.0
    world.change(
        "rollout/reward_mean", onset, lambda i, _: ramp(i, length, start, to) + noise[i]
    )
    return onset + math.ceil(length * (start - 1.0) / (start - to))  # there it passes 1


@case("reward-noisy", "just beyond", "tutorial")
def _reward_noisy(world: World, onset: int, chance: random.Random) -> None:
    share = chance.uniform(0.54, 0.6)
    noise = wander(world, 0.03)
    reward = world.columns["rollout/reward_mean"]
    world.change(
        "rollout/reward_std",
        onset,
        lambda i, _: (share + noise[i]) * (reward[onset - 1 + i] or 0.0),
    )


@case("reward-noisy", "between steps, no spread logged", "tutorial")
def _reward_noisy_over_time(world: World, onset: int, chance: random.Random) -> None:
    del world.columns["rollout/reward_std"]
    share = chance.uniform(0.65, 0.9)
    world.change(
        "rollout/reward_mean",
        onset,
        lambda _, known: max(0.0, known * (1 + chance.gauss(0, share))),
    )


@case("kl-low", "fades", "tutorial")
def _kl_fades(world: World, onset: int, chance: random.Random) -> int:
    pace = chance.uniform(30, 80)
    noise = wander(world, 0.08)
    start = world.columns["rollout/kl_div"][onset - 2] or 0.02
    world.change(
        "rollout/kl_div",
        onset,
        lambda i, _: (0.001 + start * math.exp(-i / pace)) * (1 + noise[i]),
    )
    return onset + math.ceil(pace * math.log(start / 0.004))  # there it passes 0.005


@case("kl-high", "climbs")
def _kl_climbs(world: World, onset: int, chance: random.Random) -> int:
    length = chance.randint(40, 120)
    to = chance.uniform(0.14, 0.19)
    noise = wander(world, 0.008)
    start = world.columns[key_of(world, "policy_kl")][onset - 2] or 0.0
    world.change(
        key_of(world, "policy_kl"),
        onset,
        lambda i, _: ramp(i, length, start, to) + noise[i],
    )
    # there it passes 0.1, noise included
    return onset + int(length * (0.1 - 0.01 - start) / (to - start))


@case("ref-kl-high", "times its own past", "verl", "other")
def _reference_surge(world: World, onset: int, chance: random.Random) -> None:
    key = key_of(world, "reference_kl")
    past = median(value or 0.0 for value in world.columns[key][onset - 41 : onset - 1])
    level = max(0.15, past * chance.uniform(6, 8))
    length = chance.randint(1, 20)
    noise = wander(world, 0.08)
    world.change(key, onset, lambda i, _: ramp(i, length, past, level) * (1 + noise[i]))


@case("ref-kl-rising", "slowly", "tutorial")
def _reference_rising(world: World, onset: int, chance: random.Random) -> int:
    slope = chance.uniform(0.0004, 0.0007)
    noise = wander(world, 0.006)
    world.change("kl/divergence", onset, lambda i, _: 0.06 + slope * i + noise[i])
    return onset + math.ceil(0.04 / slope)  # there it leaves its band, 0.1


@case("policy-loss-jump", "just beyond")
def _policy_loss_jump(world: World, onset: int, chance: random.Random) -> None:
    key = key_of(world, "policy_loss")
    past = median(
        abs(value or 0.0) for value in world.columns[key][onset - 31 : onset - 1]
    )
    size = chance.choice((-1, 1)) * max(0.7, past * chance.uniform(6, 8))
    world.change(key, onset, lambda i, known: size if i == 0 else known)


@case("grad-norm-spike", "just beyond, noisy past")
def _grad_norm_spike(world: World, onset: int, chance: random.Random) -> None:
    key = key_of(world, "grad_norm")
    noise = wander(world, 0.12)
    times = chance.uniform(12, 15)
    world.change(key, 1, lambda i, known: known * (1 + noise[i]))
    past = median(value or 0.0 for value in world.columns[key][onset - 31 : onset - 1])
    world.change(key, onset, lambda i, known: past * times if i == 0 else known)


@case("grad-norm-rising", "over 300 steps", steps=(650, 800))
def _grad_norm_rising(world: World, onset: int, chance: random.Random) -> None:
    times, noise = chance.uniform(4, 8), wander(world, 0.12)
    world.change(
        key_of(world, "grad_norm"),
        onset,
        lambda i, known: known * times ** min(1, i / 300) * (1 + noise[i]),
    )


@case("reward-zero", "for three steps")
def _reward_zero(world: World, onset: int, _: random.Random) -> None:
    world.change(
        key_of(world, "reward"), onset, lambda i, known: 0.0 if i < 3 else known
    )


@case("circuit-breaker-kl", "five records, no more")
def _breaker_kl(world: World, onset: int, chance: random.Random) -> None:
    to = chance.uniform(0.205, 0.24)
    world.change(
        key_of(world, "policy_kl"),
        onset,
        lambda i, known: to + chance.random() / 100 if i < 5 else known,
    )


@case("circuit-breaker-reward", "five records, no more")
def _breaker_reward(world: World, onset: int, chance: random.Random) -> None:
    keep = chance.uniform(0.74, 0.785)
    key = key_of(world, "reward")
    before = world.columns[key][onset - 2] or 1.0
    world.change(
        key, onset, lambda i, known: before * keep ** (i + 1) if i < 5 else known
    )


@case("not-finite", "one value of any metric")
def _not_finite(world: World, onset: int, chance: random.Random) -> int:
    key = chance.choice(
        [name for name in world.columns if not name.startswith(("val", "eval"))]
    )
    value = (
        chance.choice((math.nan, math.inf, -math.inf))
        if world.dialect != "verl"
        else math.nan
    )
    world.change(key, onset, lambda i, known: value if i == 0 else known)
    return onset


@case("staleness", "one or two beyond, every other step", "verl")
def _staleness(world: World, onset: int, chance: random.Random) -> None:
    key = "training/off_policy/trajectory_staleness/max"
    world.columns[key] = [float(chance.randint(0, 6)) for _ in range(world.steps)]
    world.change(key, onset, lambda _, __: float(chance.choice((9, 9, 10, 9, 8))))


@case("critic-useless", "slightly below 0", "verl")
def _critic_useless(world: World, onset: int, chance: random.Random) -> None:
    key = "critic/vf_explained_var"
    to = chance.uniform(-0.1, -0.05)
    noise = wander(world, 0.04)
    world.put(key, lambda t: 0.3 + 0.3 * t, 0.05)
    world.change(key, onset, lambda i, _: to + noise[i])


@case("aborted", "in most steps", "verl")
def _aborted(world: World, onset: int, chance: random.Random) -> None:
    share = chance.uniform(0.85, 1.0)
    world.change(
        "response/aborted_ratio",
        onset,
        lambda _, __: 1 / 1024 if chance.random() < share else 0.0,
    )


@case("plateau", "from the beginning", steps=(400, 700), onset=(1, 1))
def _plateau(world: World, onset: int, chance: random.Random) -> None:
    level = {"tutorial": 2.1, "verl": 0.31, "other": 0.7}[world.dialect]
    noise = wander(world, level * 0.06, 0.5)
    world.columns[key_of(world, "reward")] = [level + value for value in noise]
    for score in [
        name for name in world.columns if name.startswith(("val-core", "eval"))
    ]:
        validate(world, score, lambda _: 0.4, size=0.015)


# -- several signals -------------------------------------------------------------------------------


def fall(
    world: World,
    onset: int,
    chance: random.Random,
    left: tuple[float, float],
    length: tuple[int, int],
) -> None:
    """The reward falls to a share of its level, and stays there with noise."""
    key = key_of(world, "reward")
    steps = chance.randint(*length)
    noise = wander(world, 0.05)
    before = world.columns[key][onset - 2] or 1.0
    to = before * chance.uniform(*left)
    world.change(
        key, onset, lambda i, _: ramp(i, steps, before, to) + before * noise[i]
    )


@case("policy-collapse", "within 5 to 15 steps, policy KL")
def _collapse(world: World, onset: int, chance: random.Random) -> None:
    fall(world, onset, chance, (0.05, 0.4), (5, 15))
    key = key_of(world, "policy_kl")
    ahead = chance.randint(2, 10)
    to = chance.uniform(0.13, 0.3)
    start = world.columns[key][onset - ahead - 2] or 0.0
    noise = wander(world, 0.1)
    world.change(
        key, onset - ahead, lambda i, _: ramp(i, ahead, start, to) * (1 + noise[i])
    )


@case("policy-collapse", "half of the reward, reference KL 6 times", "verl", "other")
def _half_collapse(world: World, onset: int, chance: random.Random) -> None:
    fall(world, onset, chance, (0.4, 0.5), (3, 10))
    key = key_of(world, "reference_kl")
    ahead = chance.randint(2, 10)
    start = world.columns[key][onset - ahead - 2] or 0.0
    noise = wander(world, 0.08)
    to = max(0.15, start * chance.uniform(6.0, 9.0))
    world.change(
        key, onset - ahead, lambda i, _: ramp(i, 10, start, to) * (1 + noise[i])
    )


@case(
    "policy-collapse",
    "late, reference KL 3 to 4 times",
    "verl",
    "other",
    steps=(700, 900),
    onset=(500, 600),
)
def _late_collapse(world: World, onset: int, chance: random.Random) -> None:
    fall(world, onset, chance, (0.05, 0.3), (5, 15))
    key = key_of(world, "reference_kl")
    ahead = chance.randint(2, 10)
    start = world.columns[key][onset - ahead - 2] or 0.0
    noise = wander(world, 0.08)
    times = chance.uniform(3.0, 4.0)
    world.change(
        key,
        onset - ahead,
        lambda i, _: start * ramp(i, 12, 1.0, times) * (1 + noise[i]),
    )


@case("policy-collapse", "reference KL 3 times its target", "tutorial")
def _collapse_reference(world: World, onset: int, chance: random.Random) -> None:
    fall(world, onset, chance, (0.05, 0.4), (5, 15))
    world.settings = {"kl_coef": 0.001, "target_kl": 0.05}
    ahead = chance.randint(2, 15)
    noise = wander(world, 0.06)
    to = 0.05 * chance.uniform(3.0, 5.0)
    world.change(
        "kl/divergence",
        onset - ahead,
        lambda i, _: ramp(i, 10, 0.05, to) * (1 + noise[i]),
    )


@case("policy-collapse", "negative rewards", "verl", "other")
def _collapse_below_zero(world: World, onset: int, chance: random.Random) -> None:
    key = key_of(world, "reward")
    noise = wander(world, 0.12)
    steps = chance.randint(5, 15)
    world.put(key, lambda t: -5 + 4 * (1 - math.exp(-4 * t)), 0.12)
    before = world.columns[key][onset - 2] or -2.0
    world.change(key, onset, lambda i, _: ramp(i, steps, before, -5.5) + noise[i])
    start = world.columns[key_of(world, "reference_kl")][onset - 7] or 0.02
    world.change(
        key_of(world, "reference_kl"),
        onset - 5,
        lambda i, _: ramp(i, 10, start, max(0.3, 10 * start)),
    )


@case("entropy-collapse", "slow, from the beginning", steps=(450, 700), onset=(40, 100))
def _entropy_slow(world: World, onset: int, chance: random.Random) -> None:
    _entropy(world, onset, chance, chance.uniform(70, 130))


@case("entropy-collapse", "within 20 steps")
def _entropy_fast(world: World, onset: int, chance: random.Random) -> None:
    _entropy(world, onset, chance, chance.uniform(5, 12))


def _entropy(world: World, onset: int, chance: random.Random, pace: float) -> None:
    level = {"tutorial": 1.6, "verl": 0.3, "other": 0.6}[world.dialect]
    reward = wander(world, 0.06, 0.5)
    entropy = wander(world, 0.06)
    world.columns[key_of(world, "reward")] = [level * (1 + value) for value in reward]
    key = key_of(world, "entropy")
    start = chance.uniform(0.4, 1.2)
    world.put(key, start, 0.02)
    world.change(
        key,
        onset,
        lambda i, _: (0.004 + start * math.exp(-i / pace)) * (1 + entropy[i]),
    )


@case("reward-hacking", "slight, noisy validation", steps=(500, 800))
def _hacking(world: World, onset: int, chance: random.Random) -> None:
    key = key_of(world, "reward")
    score = VALIDATION[world.dialect]
    gain = chance.uniform(0.12, 0.2)
    drop = chance.choice((0.0, 0.05, 0.1))
    every = chance.choice((5, 10, 20))
    before = world.columns[key][onset - 2] or 1.0
    length = chance.randint(120, 250)
    noise = wander(world, 0.03)
    validate(
        world, score, lambda t: 0.3 + 0.25 * min(1.0, t * 2), every=every, size=0.02
    )
    seen = [value for value in world.columns[score][: onset - 1] if value is not None]
    jitter = wander(world, 0.02, 0.2)
    world.change(
        key,
        onset,
        lambda i, _: before * (1 + ramp(i, length, 0.0, 2 * gain) + noise[i]),
    )
    world.change(
        score, onset, lambda i, _: seen[-1] - ramp(i, length, 0.0, drop) + jitter[i]
    )


@case("length-explosion", "limit from the settings", "tutorial", "verl")
def _explosion(world: World, onset: int, chance: random.Random) -> None:
    limit = 512 if world.dialect == "tutorial" else 2048
    length = chance.randint(50, 150)
    key = key_of(world, "length")
    if world.dialect == "tutorial":
        world.settings = {"max_new_tokens": limit}
    else:
        world.settings = {"data.max_response_length": limit, "trainer.use_v1": True}
        world.put("training/num_turns/mean", 2.0)
        world.put("response_length/max", limit)
    world.put(key, 0.5 * limit, 0.02 * limit)
    noise, reward = wander(world, 0.02), wander(world, 0.04)
    world.change(
        key, onset, lambda i, _: limit * min(1.0, ramp(i, length, 0.5, 0.95) + noise[i])
    )
    before = world.columns[key_of(world, "reward")][onset - 2] or 1.0
    loss = chance.uniform(0.25, 0.6)
    world.change(
        key_of(world, "reward"),
        onset,
        lambda i, _: before * (1 - ramp(i, length, 0, loss) + reward[i]),
    )


@case("length-explosion", "slowly, truncated share", "verl", "other")
def _explosion_slow(world: World, onset: int, chance: random.Random) -> None:
    length = chance.randint(100, 180)
    share = chance.uniform(0.25, 0.5)
    loss = chance.uniform(0.2, 0.4)
    noise = wander(world, 0.03)
    reward = wander(world, 0.05)
    key = key_of(world, "length")
    start = world.columns[key][onset - 2] or 400
    before = world.columns[key_of(world, "reward")][onset - 2] or 1.0
    world.change(
        key, onset, lambda i, _: start * (ramp(i, length, 1.0, 2.3) + noise[i])
    )
    world.change(
        key_of(world, "cut"),
        onset,
        lambda i, _: max(0.0, ramp(i, length, 0.01, share) * (1 + 3 * noise[i])),
    )
    world.change(
        key_of(world, "reward"),
        onset,
        lambda i, _: before * (1 - ramp(i, length, 0, loss) + reward[i]),
    )


@case("engine-mismatch", "just beyond, gradient norm twice", "verl")
def _mismatch(world: World, onset: int, chance: random.Random) -> None:
    key, to = chance.choice(
        (("training/rollout_probs_diff_mean", 0.0125), ("rollout_corr/kl", 0.13))
    )
    noise = wander(world, 0.06)
    norm = wander(world, 0.1)
    times = chance.uniform(2.0, 2.6)
    world.change(key, onset, lambda i, known: ramp(i, 20, known, to) * (1 + noise[i]))
    world.change(
        "actor/grad_norm",
        onset,
        lambda i, known: known * ramp(i, 100, 1.0, times) * (1 + norm[i]),
    )


@case("repetition", "creeping, a third and more of the samples", steps=(400, 500))
def _repetition(world: World, onset: int, chance: random.Random) -> int:
    chinese = chance.random() < 0.5
    share = chance.uniform(0.35, 0.6)
    length = chance.randint(10, 80)

    def text(step: int) -> str:
        broken = step >= onset and chance.random() < ramp(
            step - onset, length, 0.0, share
        )
        if not broken:
            return prose(chance, chinese=chinese)
        start = prose(chance, chinese=chinese)
        return start + loop(chance, chinese=chinese)

    dump(world, 5, text, lambda _, __: float(chance.random() < 0.5))
    return onset


@case("repetition", "whole sentences again and again", steps=(400, 500))
def _repetition_of_sentences(world: World, onset: int, chance: random.Random) -> int:
    chinese = chance.random() < 0.5

    def text(step: int) -> str:
        if step < onset or chance.random() < 0.3:
            return prose(chance, chinese=chinese)
        sentence = (
            "".join(chance.sample(HAN, 18))
            if chinese
            else " ".join(chance.sample(WORDS, 14)) + ". "
        )
        return sentence * chance.randint(6, 20)

    dump(world, 5, text, lambda _, __: float(chance.random() < 0.5))
    return math.ceil(onset / 5) * 5


@case("dead-groups", "more and more, up to four in five", "verl", "tutorial")
def _dead_groups(world: World, onset: int, chance: random.Random) -> int:
    length = chance.randint(30, 120)
    right = float(chance.random() < 0.5)
    share = chance.uniform(0.8, 0.95)
    for step in range(1, world.steps + 1):
        since = ramp(step - onset, length, 0.2, share) if step >= onset else 0.2
        records = []
        for group in range(16):
            dead = chance.random() < since
            scores = (
                [right] * 4 if dead else [1.0, 0.0, float(chance.random() < 0.5), 0.0]
            )
            records += [
                {
                    "input": f"q{group}",
                    "output": "so it is",
                    "score": s,
                    "step": step,
                    "uid": f"{step}-{group}_{n}_0",
                }
                for n, s in enumerate(scores)
            ]
        world.dumps[step] = records
    # there it passes 0.7, the guide has no figure
    return onset + math.ceil(length * (0.7 - 0.2) / (share - 0.2))


@case("component-imbalance", "saturates in the first steps", "other", onset=(15, 15))
def _imbalance(world: World, onset: int, chance: random.Random) -> int:
    stuck = chance.uniform(0.02, 0.15)
    pace = chance.uniform(6, 30)
    noise = wander(world, 0.015)
    world.columns["rewards/accuracy_reward/mean"] = [
        max(0.0, stuck + value) for value in noise
    ]
    world.put("rewards/format_reward/mean", 0.0)
    form = wander(world, 0.01)
    world.change(
        "rewards/format_reward/mean",
        1,
        lambda i, _: min(1.0, 1 - 0.9 * math.exp(-i / pace) + form[i]),
    )
    _total(world)
    return math.ceil(pace * math.log(9))  # there it passes nine tenths


@case(
    "component-imbalance",
    "three components in dumps",
    "verl",
    "tutorial",
    steps=(480, 500),
)
def _imbalance_in_dumps(world: World, onset: int, chance: random.Random) -> int:
    stuck = chance.uniform(0.02, 0.15)
    pace = chance.uniform(10, 40)

    def well_formed(step: int) -> float:
        return float(
            chance.random()
            < (
                0.2 + 0.78 * (1 - math.exp(-(step - onset) / pace))
                if step >= onset
                else 0.2
            )
        )

    dump(
        world,
        1,
        lambda _: "so it is",
        lambda _, __: float(chance.random() < 0.5),
        format_reward=well_formed,
        acc=lambda _: float(chance.random() < stuck),
        language=lambda _: 0.5,
    )
    return onset + math.ceil(pace * math.log(0.78 / 0.1))


def _total(world: World) -> None:
    parts = [
        column for key, column in world.columns.items() if key.startswith("rewards/")
    ]
    world.columns["reward"] = [
        sum(value or 0.0 for value in values) for values in zip(*parts, strict=True)
    ]


@case("slow-phase", "by seven tenths to twice", "verl")
def _slow_phase(world: World, onset: int, chance: random.Random) -> None:
    phase = chance.choice(("gen", "update_actor"))
    times = chance.uniform(1.7, 2.0)
    length = chance.randint(1, 100)
    column, step = world.columns[f"timing_s/{phase}"], world.columns["timing_s/step"]
    for i in range(onset - 1, world.steps):
        added = (column[i] or 0.0) * (ramp(i - onset + 1, length, 1.0, times) - 1)
        column[i], step[i] = (column[i] or 0.0) + added, (step[i] or 0.0) + added


@case("hang", "slow steps, or a quiet validation", "verl")
def _hang(world: World, onset: int, chance: random.Random) -> int:
    shorten(world, onset)
    times = chance.choice((0.2, 1.0, 4.0, 10.0))
    for key in [name for name in world.columns if name.startswith("timing_s/")]:
        world.columns[key] = [
            None if value is None else value * times for value in world.columns[key]
        ]
    waiting(world, max(200.0, 47 * times * chance.uniform(8, 14)))
    return onset


# -- healthy ---------------------------------------------------------------------------------------


@healthy("rough noise everywhere")
def _rough(chance: random.Random) -> World:
    return roughen(
        DIALECTS[chance.choice(ALL)](chance.randint(400, 1000), chance), 0.12
    )


@healthy("small, noisy validation sets")
def _noisy_validation(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](600, chance))
    every = chance.choice((5, 10, 20))
    size = chance.uniform(0.025, 0.045)
    rise = chance.uniform(0.35, 0.5)
    validate(
        world,
        VALIDATION["verl"],
        lambda t: 0.2 + rise * (1 - math.exp(-3 * t)),
        every=every,
        size=size,
    )
    return world


@healthy("several validation sets, a hard one stands still")
def _hard_set(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](600, chance))
    validate(
        world, "val-core/aime24/acc/mean@32", lambda t: 0.04 + 0.03 * t, size=0.012
    )
    validate(
        world,
        "val-core/math500/acc/mean@1",
        lambda t: 0.2 + 0.45 * (1 - math.exp(-3 * t)),
    )
    return world


@healthy("validation rises later and less than the reward")
def _generalises_less(chance: random.Random) -> World:
    world = roughen(verl(600, chance, top=0.8))
    validate(
        world,
        VALIDATION["verl"],
        lambda t: 0.3 + 0.22 * (1 - math.exp(-2.5 * t)),
        size=0.012,
    )
    return world


@healthy("curriculum: harder data from time to time")
def _curriculum(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](700, chance))
    starts = [0, *sorted(chance.sample(range(120, 600), 3))]
    loss = chance.uniform(0.2, 0.45)
    score = world.columns["critic/score/mean"]
    for i in range(world.steps):
        begun = max(start for start in starts if start <= i)
        score[i] = (score[i] or 0.0) * (
            1 - (loss * math.exp(-(i - begun) / 70) if begun else 0.0)
        )
    world.columns["critic/rewards/mean"] = list(score)
    return world


@healthy("epochs show in the reward")
def _epochs(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](700, chance))
    every = chance.randint(60, 140)
    for key in ("critic/score/mean", "response_length/mean"):
        world.change(
            key, 1, lambda i, known: known * (1 + 0.08 * ((i % every) / every - 0.5))
        )
    return world


@healthy("rare rewards at the beginning")
def _sparse(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](600, chance))
    start = chance.uniform(80, 160)

    def score(i: int, _: float) -> float:
        chances = 0.004 + 0.6 / (1 + math.exp(-(i - 250) / 50))
        return (
            sum(chance.random() < chances for _ in range(256)) / 256
            if i > start / 2
            else 0.0
        )

    world.change("critic/score/mean", 1, score)
    scores = world.columns["critic/score/mean"]
    for key in ("critic/advantages/max", "critic/advantages/min"):
        world.change(key, 1, lambda i, known: known if scores[i] or i % 3 == 0 else 0.0)
    validate(
        world,
        VALIDATION["verl"],
        lambda t: 0.01 + 0.55 / (1 + math.exp(-(t * 600 - 250) / 50)),
    )
    return world


@healthy("reward saturates early, entropy settles late")
def _entropy_settles(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](700, chance))
    fast = chance.uniform(30, 60)
    slow = chance.uniform(90, 180)
    noise = wander(world, 0.012)
    world.change(
        "critic/score/mean",
        1,
        lambda i, _: 0.94 - 0.55 * math.exp(-i / fast) + noise[i],
    )
    world.change(
        "actor/entropy",
        1,
        lambda i, _: (0.1 + 0.4 * math.exp(-i / slow)) * (1 + noise[i] * 4),
    )
    validate(
        world, VALIDATION["verl"], lambda t: 0.88 - 0.5 * math.exp(-t * 700 / fast)
    )
    return world


@healthy("answers take one form while reward and validation rise")
def _one_form(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](400, chance))
    form = "first we write down what is given then we solve step by step and the final answer is boxed here"
    start = chance.uniform(0.1, 0.2)
    end = chance.uniform(0.35, 0.5)

    def text(step: int) -> str:
        words = prose(chance).split()
        cut = int(len(words) * (start + (end - start) * min(1.0, step / 300)))
        return " ".join([*(form.split() * 2)[:cut], *words[cut:]])

    dump(world, 4, text, lambda _, __: float(chance.random() < 0.5))
    return world


@healthy("reasoning grows tenfold, few are cut")
def _long_reasoning(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](700, chance))
    growth = [1 + 9 / (1 + math.exp(-(i - 300) / 70)) for i in range(700)]
    noise = wander(world, 0.04)
    world.change(
        "response_length/mean", 1, lambda i, _: 400 * growth[i] * (1 + noise[i])
    )
    world.change("response_length/max", 1, lambda _, __: 8192.0)
    world.change(
        "response_length/clip_ratio", 1, lambda i, known: known + 0.005 * growth[i]
    )
    world.change(
        "perf/total_num_tokens", 1, lambda i, _: 4e5 * growth[i] * (1 + noise[i])
    )
    world.change("timing_s/gen", 1, lambda i, _: 15 * growth[i] ** 0.9 * (1 + noise[i]))
    world.change(
        "timing_s/update_actor", 1, lambda i, _: 8 * growth[i] * (1 + noise[i])
    )
    parts = zip(
        *(world.columns[f"timing_s/{part}"] for part in ("gen", "update_actor", "ref")),
        strict=True,
    )
    world.columns["timing_s/step"] = [
        sum(value or 0.0 for value in values) + 3 for values in parts
    ]
    world.settings["data.max_response_length"] = 8192
    return world


@healthy("several epochs a batch: KL and clipping at work")
def _off_policy(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](600, chance))
    kl, clip = wander(world, 0.3), wander(world, 0.12)
    level = chance.uniform(0.02, 0.05)
    climb = chance.uniform(1.0, 1.6)
    peaks = set(chance.sample(range(600), 10))
    world.change(
        "actor/ppo_kl", 1, lambda i, _: level * (1 + kl[i]) * (4 if i in peaks else 1)
    )
    world.change(
        "actor/pg_clipfrac",
        1,
        lambda i, _: 0.15 * (1 + (climb - 1) * i / 600) * (1 + clip[i]),
    )
    return world


@healthy("KL to the reference grows by an s-curve")
def _kl_grows(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](700, chance))
    middle = chance.uniform(200, 400)
    pace = chance.uniform(50, 90)
    top = chance.uniform(0.1, 0.35)
    noise = wander(world, 0.06)
    world.change(
        "actor/kl_loss",
        1,
        lambda i, _: (
            (0.001 + top / (1 + math.exp(-(i - middle) / pace))) * (1 + noise[i])
        ),
    )
    return world


@healthy("heavy tails: losses and gradient norms")
def _tails(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](800, chance))
    world.change(
        "actor/grad_norm", 1, lambda _, __: 0.3 * math.exp(chance.gauss(0, 0.45))
    )
    world.change(
        "actor/pg_loss",
        1,
        lambda _, __: (
            0.03 * chance.gauss(0, 1) / math.sqrt(chance.gammavariate(4, 0.25))
        ),
    )
    return world


@healthy("gradient norm grows by half in a thousand steps")
def _norm_grows(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](1000, chance))
    noise = wander(world, 0.1)
    world.change(
        "actor/grad_norm", 1, lambda i, _: 0.2 * (1 + 0.6 * i / 1000) * (1 + noise[i])
    )
    return world


@healthy("stragglers: single steps take four times as long")
def _stragglers(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](600, chance))
    for i in chance.sample(range(600), 25):
        for key in ("timing_s/gen", "timing_s/step"):
            world.columns[key][i] = (world.columns[key][i] or 0.0) * chance.uniform(
                2, 4
            )
    return world


@healthy("resumed from a checkpoint")
def _resumed(chance: random.Random) -> World:
    world = roughen(DIALECTS[chance.choice(ALL)](500, chance))
    world.again = chance.randint(380, 480)
    return world


@healthy("aborted now and then, advantages all zero once")
def _now_and_then(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](600, chance))
    world.change(
        "response/aborted_ratio",
        1,
        lambda _, __: 1 / 512 if chance.random() < 0.03 else 0.0,
    )
    for key in ("critic/advantages/max", "critic/advantages/min"):
        world.change(key, 1, lambda i, known: 0.0 if i % 97 in (40, 41) else known)
    return world


@healthy("two thousand steps")
def _long(chance: random.Random) -> World:
    return roughen(DIALECTS[chance.choice(ALL)](2000, chance), 0.08)


@healthy("a component learns slowly, another at once")
def _slow_component(chance: random.Random) -> World:
    world = roughen(DIALECTS["other"](700, chance))
    top = chance.uniform(0.35, 0.5)
    noise = wander(world, 0.02)
    world.change(
        "rewards/accuracy_reward/mean",
        1,
        lambda i, _: 0.1 + (top - 0.1) * i / 700 + noise[i],
    )
    world.change(
        "rewards/format_reward/mean",
        1,
        lambda i, _: 0.98 - 0.7 * math.exp(-i / 20) + noise[i] / 4,
    )
    _total(world)
    return world


@healthy("easy data: up to three groups in five are dead")
def _easy(chance: random.Random) -> World:
    world = roughen(DIALECTS["other"](700, chance))
    noise = wander(world, 0.05)
    world.change(
        "frac_reward_zero_std",
        1,
        lambda i, _: min(1.0, max(0.0, 0.2 + 0.4 * i / 700 + noise[i])),
    )
    return world


@healthy("tutorial: oscillating, GPUs dip, lengths at the band's edge")
def _tutorial_rough(chance: random.Random) -> World:
    world = roughen(DIALECTS["tutorial"](600, chance), 0.05)
    kl = wander(world, 0.3)
    world.change(
        "rollout/kl_div",
        1,
        lambda i, _: max(0.006, 0.022 * (1 + kl[i] + 0.3 * math.sin(i / 12))),
    )
    world.change("system/gpu_util", 1, lambda i, known: known if i % 3 else 20.0)
    world.change(
        "rollout/response_length_mean", 1, lambda i, _: min(516.0, 492 + 60 * kl[i])
    )
    return world


@healthy("tutorial: begins low and learns slowly")
def _tutorial_slow(chance: random.Random) -> World:
    world = roughen(DIALECTS["tutorial"](700, chance))
    noise = wander(world, 0.08)
    pace = chance.uniform(120, 220)
    world.change(
        "rollout/reward_mean",
        1,
        lambda i, _: 0.35 + 2.2 * (1 - math.exp(-i / pace)) + noise[i],
    )
    world.change(
        "rollout/reward_std",
        1,
        lambda i, _: 0.3 * (world.columns["rollout/reward_mean"][i] or 0.0),
    )
    return world


@healthy("tutorial: other spellings, scores up to 0.92")
def _tutorial_spellings(chance: random.Random) -> World:
    world = World("tutorial", 500, chance)
    world.put("reward/mean", lambda t: 0.25 + 0.67 * (1 - math.exp(-3 * t)), 0.03)
    world.columns["reward/mean"] = [
        min(0.98, value or 0.0) for value in world.columns["reward/mean"]
    ]
    world.put("reward/std", lambda t: 0.3 - 0.1 * t, 0.02)
    world.put("kl/divergence", 0.04, 0.008, low=0.005)
    world.put("policy/loss", lambda t: -0.3 + 0.15 * t, 0.04)
    world.put("value/loss", lambda t: 0.5 - 0.3 * t, 0.04)
    world.put("generation/length", 495, 5)
    world.put("generation/log_prob", -1.1, 0.05)
    world.put("throughput/samples_per_second", 42, 2)
    return world


@healthy("tutorial: KL falls in stair steps, then stays")
def _stairs(chance: random.Random) -> World:
    world = roughen(DIALECTS["tutorial"](800, chance))
    world.settings = {"kl_coef": 0.02, "kl_controller": "adaptive", "target_kl": 0.05}
    every = chance.randint(50, 90)
    falls = chance.randint(4, 5)
    noise = wander(world, 0.02, 0.5)
    world.change(
        "rollout/kl_div",
        1,
        lambda i, _: 0.03 * 0.55 ** min(falls, i // every) * (1 + noise[i]),
    )
    return world


@healthy("slow validation is due")
def _due(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](chance.randint(12, 30) * 10 - 1, chance))
    testing = chance.uniform(600, 1500)
    world.columns["timing_s/testing"] = [
        testing if (i + 1) % 10 == 0 else None for i in range(world.steps)
    ]
    world.age = testing + 45 * chance.uniform(1, 4)
    return world


@healthy("between two slow steps")
def _slow(chance: random.Random) -> World:
    world = roughen(DIALECTS["verl"](200, chance))
    for key in [name for name in world.columns if name.startswith("timing_s/")]:
        world.columns[key] = [
            None if value is None else value * 20 for value in world.columns[key]
        ]
    world.age = 900 * chance.uniform(1.0, 4.0)
    return world


# -- measuring -------------------------------------------------------------------------------------


class Found(NamedTuple):
    """What came of one case."""

    case: Case
    dialect: str
    seed: int
    onset: int
    raised: int | None
    early: tuple[int, ...]
    others: tuple[str, ...]


def world_of(one: Case, dialect: str, seed: int) -> tuple[World, int]:
    """Return a world with a case planted, and the step of its true onset."""
    chance = random.Random(f"{one.id} {one.name} {dialect} {seed}")
    world = roughen(DIALECTS[dialect](chance.randint(*one.steps), chance))
    onset = chance.randint(*one.onset)
    true = one.plant(world, onset, chance)
    return world, onset if true is None else true


def find(one: Case, dialect: str, seed: int, directory: Path) -> Found:
    """Plant a case and see when it is reported."""
    world, onset = world_of(one, dialect, seed)
    form = "console" if world.lines else FORMS[dialect][seed % len(FORMS[dialect])]
    history = judged(world, form, directory).history
    raised = sorted(
        episode.raised_step or 0 for episode in history if episode.id == one.id
    )
    late = [step for step in raised if step >= onset]
    others = {episode.id for episode in history if episode.severity > Severity.INFO} - {
        one.id
    }
    early = tuple(step for step in raised if step < onset)
    return Found(
        one,
        dialect,
        seed,
        onset,
        late[0] if late else None,
        early,
        tuple(sorted(others)),
    )


def alarms(name: str, seed: int, directory: Path) -> tuple[int, list[Episode]]:
    """Return the length of a healthy run in steps, and all warnings and criticals that it ever
    got.
    """
    world = HEALTHY[name](random.Random(f"{name} {seed}"))
    verdict = judged(
        world, FORMS[world.dialect][seed % len(FORMS[world.dialect])], directory
    )
    return world.steps, [one for one in verdict.history if one.severity > Severity.INFO]


def main(seeds: int) -> None:
    """Print what was found, case by case, then the alarms of healthy runs."""
    with tempfile.TemporaryDirectory() as scratch:
        _print_cases(Path(scratch), seeds)
        _print_healthy(Path(scratch), seeds)


def _print_cases(scratch: Path, seeds: int) -> None:
    print(
        "| finding | case | logs | found | early | median delay | 90% within |\n|---|---|---|---:|---:|---:|---:|"
    )
    for i, one in enumerate(CASES):
        for dialect in one.dialects:
            results = [
                find(one, dialect, seed, scratch / f"{i}-{dialect}-{seed}")
                for seed in range(seeds)
            ]
            delays = sorted(
                found.raised - found.onset
                for found in results
                if found.raised is not None
            )
            most = (
                delays[min(len(delays) - 1, int(0.9 * len(delays)))] if delays else "–"
            )
            middle = f"{median(delays):.0f}" if delays else "–"
            early = sum(bool(found.early) for found in results)
            print(
                f"| `{one.id}` | {one.name} | {dialect} | {len(delays)}/{seeds} | {early} | {middle} | {most} |"
            )
            for found in results:
                if found.raised is None or found.early:
                    print(
                        f"  {found.dialect} {found.seed}: {found._replace(case=one.id)}",
                        file=sys.stderr,
                    )  # type: ignore[arg-type]


def _print_healthy(scratch: Path, seeds: int) -> None:
    print(
        "\n| healthy runs | runs | steps | warnings and criticals |\n|---|---:|---:|---|"
    )
    for i, name in enumerate(HEALTHY):
        results = [
            alarms(name, seed, scratch / f"healthy-{i}-{seed}") for seed in range(seeds)
        ]
        ids = [episode.id for _, episodes in results for episode in episodes]
        words = (
            ", ".join(f"{ids.count(id)} × `{id}`" for id in dict.fromkeys(ids)) or "–"
        )
        print(
            f"| {name} | {seeds} | {sum(steps for steps, _ in results):,} | {words} |"
        )
        for seed, (_, episodes) in enumerate(results):
            for episode in episodes:
                print(f"  {name} {seed}: {episode}", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
