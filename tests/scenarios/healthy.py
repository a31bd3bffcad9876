"""Healthy trainings of many kinds, with all that looks like trouble and is none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scenarios.worlds import (
    World,
    add_up,
    dump,
    other,
    prose,
    settling,
    tutorial,
    validate,
    verl,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

ACCURACY = "val-core/openai/gsm8k/acc/mean@1"
HEALTHY: dict[str, Callable[[random.Random], World]] = {}


def healthy(name: str) -> Callable[[Callable[[random.Random], World]], None]:
    """Enter a kind of healthy run into the list."""
    return lambda make: HEALTHY.update({name: make})


def within(low: float, value: float, high: float) -> float:
    """Return a value, or the end of its range that it passes."""
    return min(high, max(low, value))


def right(chance: random.Random, share: float) -> float:
    """Return the score of a response that is right with a probability."""
    return float(chance.random() < share)


@healthy("PPO with a critic")
def _ppo(chance: random.Random) -> World:
    world = verl(500, chance)
    world.put(
        "critic/vf_explained_var",
        lambda t: -0.5 * math.exp(-60 * t) + 0.2 + 0.4 * t,
        0.05,
    )
    world.put("critic/vf_loss", lambda t: 0.3 - 0.2 * t, 0.02)
    world.put("actor/ppo_kl", 0.004, 0.002)
    world.put("actor/pg_clipfrac", 0.05, 0.015, low=0.0)
    return world


@healthy("GRPO, 0/1 rewards")
def _grpo(chance: random.Random) -> World:
    world = verl(
        600, chance, top=chance.uniform(0.5, 0.9), floor=chance.uniform(0.05, 0.4)
    )
    dump(
        world,
        5,
        lambda _: prose(chance),
        lambda step, group: right(chance, 0.3 + 0.4 * step / 600 if group % 2 else 0.6),
        acc=lambda step: right(chance, 0.3 + 0.4 * step / 600),
    )
    return world


@healthy("GRPO, small and bursty batches")
def _bursty(chance: random.Random) -> World:
    world = verl(500, chance)
    score = world.columns["critic/score/mean"]
    for i in range(world.steps):
        burst = chance.gauss(0, 0.1) * (3 if chance.random() < 0.05 else 1)
        score[i] = within(0.0, (score[i] or 0.0) + burst, 1.0)
    norms = world.columns["actor/grad_norm"]
    for i in chance.sample(range(world.steps), 12):
        norms[i] = (norms[i] or 0.0) * chance.uniform(2, 4)
    return world


@healthy("shaped rewards, 0 to 3")
def _shaped(chance: random.Random) -> World:
    world = verl(500, chance)
    world.put(
        "critic/score/mean",
        settling(0.4, 2.6, 2.5),
        0.12,
        low=0.0,
    )
    validate(
        world,
        ACCURACY,
        settling(0.3, 0.7, 2.5),
    )
    return world


@healthy("negative rewards, -5 to -1")
def _negative(chance: random.Random) -> World:
    world = verl(500, chance)
    world.put("critic/score/mean", settling(-5, -1, 2.5), 0.15)
    validate(
        world,
        "val-core/openai/gsm8k/reward/mean@1",
        settling(-5, -1.2, 2.5),
        size=0.1,
    )
    return world


@healthy("asynchronous")
def _async(chance: random.Random) -> World:
    world = verl(500, chance)
    for side in ("rollouter", "trainer"):
        world.put(f"fully_async/{side}/idle_ratio", 0.15, 0.06, low=0.0)
    stale = [float(chance.choice((0, 1, 1, 2, 2, 3, 4, 7))) for _ in range(world.steps)]
    world.columns["training/off_policy/trajectory_staleness/max"] = [*stale]
    world.put("actor/ppo_kl", 0.003, 0.004)
    world.put("rollout_corr/kl", 0.01, 0.01)
    return world


@healthy("SFT")
def _sft(chance: random.Random) -> World:
    world = World("verl", 800, chance)
    world.put("train/loss", settling(1.9, 0.4, 5), 0.05)
    world.put("train/grad_norm", settling(3.0, 1.0, 8), 0.15, low=0.1)
    world.put("train/lr(1e-3)", lambda t: 0.01 * (1 - t))
    world.put("train/time(s)", 1.4, 0.1)
    validate(world, "val/loss", settling(1.85, 0.45, 5), every=50)
    return world


@healthy("warm-up only")
def _warm_up(chance: random.Random) -> World:
    return chance.choice((verl, tutorial, other))(10, chance)


@healthy("archive without an end marker")
def _archive(chance: random.Random) -> World:
    world = chance.choice((verl, tutorial, other))(400, chance)
    world.age = 40 * 86400.0
    return world


@healthy("tutorial, adaptive controller")
def _adaptive(chance: random.Random) -> World:
    world = tutorial(500, chance)
    world.settings = {"kl_coef": 0.02, "kl_controller": "adaptive", "target_kl": 0.05}
    kl, every = 0.03, chance.randint(60, 90)
    stairs: list[float | None] = []
    for i in range(world.steps):
        kl *= 0.5 if i and i % every == 0 else 1.0
        stairs.append(kl * (1 + chance.gauss(0, 0.01)))
    world.columns["rollout/kl_div"] = stairs
    return world


@healthy("tutorial")
def _tutorial(chance: random.Random) -> World:
    return tutorial(chance.randint(300, 900), chance)


@healthy("converged")
def _converged(chance: random.Random) -> World:
    world = verl(700, chance, top=0.95, floor=0.3)
    world.put("critic/score/mean", settling(0.3, 0.95, 9), 0.01)
    validate(
        world,
        ACCURACY,
        settling(0.3, 0.88, 9),
    )
    world.put("actor/entropy", settling(0.45, 0.1, 8), 0.006, low=0.02)
    world.put("actor/kl_loss", lambda t: 0.002 + 0.3 * t, 0.01, low=0.0)
    return world


@healthy("rare validation, slow steps beside it")
def _rare(chance: random.Random) -> World:
    world = verl(600, chance)
    validate(
        world,
        ACCURACY,
        settling(0.2, 0.7, 3),
        every=50,
    )
    validate(world, "timing_s/testing", 90.0, 50, 0.0)
    validate(world, "timing_s/save_checkpoint", 60.0, 100, 0.0)
    step = world.columns["timing_s/step"]
    for i in range(99, world.steps, 100):
        step[i] = (step[i] or 0.0) + 60.0
    return world


@healthy("raised upper clip: entropy doubles as it learns")
def _explores(chance: random.Random) -> World:
    world = verl(500, chance)
    world.put(
        "actor/entropy",
        lambda t: 0.3 * math.exp(-20 * t) + 0.2 + 0.45 * t,
        0.01,
        low=0.01,
    )
    world.put("response_length/mean", lambda t: 320 + 500 * t, 12)
    world.put("critic/score/mean", lambda t: 0.2 + 0.55 * t, 0.02, low=0.0)
    world.put("timing_s/gen", lambda t: 20 + 30 * t, 1.5, low=1.0)
    world.put("perf/total_num_tokens", lambda t: 1e6 * (1 + 1.5 * t), 2e4)
    return world


@healthy("entropy is spent early, memory jumps and is given back")
def _spends(chance: random.Random) -> World:
    world = verl(600, chance)
    world.put("actor/entropy", settling(0.95, 0.25, 18), 0.01, low=0.01)
    world.put("actor/lr", 1e-6)
    jump = chance.randint(80, 200)
    back = chance.randint(350, 500)
    world.put(
        "perf/cpu_memory_used_gb",
        lambda t: 132 + 8 * t + 40 * (1 - math.exp(-60 * t)),
        0.6,
    )
    world.change("perf/cpu_memory_used_gb", jump, lambda _, known: known + 50)
    world.change("perf/cpu_memory_used_gb", back, lambda _, known: known - 50)
    return world


@healthy("TRL, several rewards")
def _trl(chance: random.Random) -> World:
    return other(chance.randint(300, 900), chance)


@healthy("responses that grow for good")
def _longer(chance: random.Random) -> World:
    world = verl(600, chance)
    world.put("response_length/mean", lambda t: 300 + 900 * t, 25)
    world.put("timing_s/gen", lambda t: 20 + 55 * t, 1.5, low=1.0)
    world.put("perf/total_num_tokens", lambda t: 1e6 * (1 + 2.6 * t), 2e4)
    add_up(world)
    world.settings["data.max_response_length"] = 4096
    return world


# -- units, scales and sparsity of their own -------------------------------------------------------


@healthy("solved groups: gradients of 0, rare peaks of the loss")
def _solved_groups(chance: random.Random) -> World:
    world = other(500, chance)
    rest = chance.choice((0.0, 0.0012))
    share = chance.uniform(0.1, 0.5)

    def norm(i: int) -> float:
        live = i < 60 or chance.random() < share
        return chance.uniform(0.4, 2.5) if live else rest

    world.columns["grad_norm"] = [norm(i) for i in range(world.steps)]
    world.columns["loss"] = [
        chance.uniform(0.2, 0.6)
        if chance.random() < (0.5 if i < 60 else 0.06)
        else 0.07
        for i in range(world.steps)
    ]
    return world


@healthy("a task that is solved, far from the reference")
def _solved(chance: random.Random) -> World:
    world = other(400, chance)
    pace = chance.uniform(5, 12)
    world.put("reward", settling(0.1, 0.97, pace), 0.01)
    world.change("reward", 1, lambda _, known: min(1.0, known))
    world.columns["rewards/accuracy_reward/mean"] = [*world.columns["reward"]]
    world.columns["rewards/format_reward/mean"] = [1.0] * world.steps
    world.put("entropy", settling(2.53, 0.03, pace), 0.004, low=0.0)
    world.put("kl", settling(0.0, 0.8, pace), 0.05, low=0.0)
    world.put("frac_reward_zero_std", lambda t: min(1.0, 0.1 + 1.5 * t), 0.03, low=0.0)
    world.settings["beta"] = 0.02
    del world.columns["eval_reward"]
    return world


@healthy("GSPO, no limit of staleness, figures that are no seconds")
def _gspo(chance: random.Random) -> World:
    world = verl(500, chance)
    world.settings = {
        "actor_rollout_ref.actor.policy_loss.loss_mode": "gspo",
        "trainer.v1.sampler.max_off_policy_threshold": None,
    }
    world.put("actor/pg_clipfrac", lambda t: 0.2 + 0.5 * min(1.0, 3 * t), 0.03)
    world.columns["training/off_policy/trajectory_staleness/max"] = [
        float(chance.randint(5, 40)) for _ in range(500)
    ]
    slowest = "timing_s/agent_loop/slowest"
    world.put(f"{slowest}/prompt_length", lambda t: 200 if t < 0.5 else 900, 20)
    world.put(f"{slowest}/response_length", lambda t: 800 if t < 0.5 else 4000, 80)
    return world


@healthy("samples that say much beside their score")
def _samples(chance: random.Random) -> World:
    world = verl(300, chance)
    dump(
        world,
        1,
        lambda _: prose(chance),
        lambda step, _: right(chance, 0.2 + 0.5 * step / 300),
        num_calls=lambda step: min(6.0, 1 + step / 20),
        difficulty=lambda _: 3.0,
        acc=lambda step: right(chance, 0.2 + 0.5 * step / 300),
    )
    return world


@healthy("eight devices, half of them not the run's")
def _devices(chance: random.Random) -> World:
    world = chance.choice((verl, tutorial, other))(300, chance)
    for i in range(8):
        used = i < 4
        world.put(
            f"system/gpu.{i}.gpu", 84 if used else 0.0, 6 if used else 0.0, low=0.0
        )
        world.put(f"system/gpu.{i}.memoryAllocated", 75 if used else 0.5, 0.1)
    return world


# -- all that a trainer may log --------------------------------------------------------------------


def _rough(
    world: World, figures: dict[str, tuple[float, float]], devices: int = 0
) -> None:
    """Add figures inside their bands, and busy devices, in noise with heavy tails (Student's t,
    four degrees).
    """
    chance = world.chance
    busy = {f"system/gpu.{i}.gpu": (60, 100) for i in range(devices)}
    for key, (low, high) in {**figures, **busy}.items():
        level = chance.uniform(low + 0.2 * (high - low), high - 0.2 * (high - low))
        size = chance.uniform(0.05, 0.3) * min(level - low, high - level)
        world.columns[key] = [
            within(low, level + size * _heavy(chance), high) for _ in range(world.steps)
        ]


def _heavy(chance: random.Random) -> float:
    return chance.gauss(0, 1) / math.sqrt(2 * chance.gammavariate(2, 0.5))


@healthy("all that verl's v1 trainer logs")
def _all_of_verl(chance: random.Random) -> World:
    world = verl(chance.choice((60, 200, 400)), chance)
    world.settings |= {
        "data.max_response_length": 1024,
        "data.max_prompt_length": 1024,
        "data.train_batch_size": 64,
        "actor_rollout_ref.rollout.n": 8,
        "algorithm.rollout_correction.rollout_is": "sequence",
    }
    names = {
        "rollout_corr/kl": (0.0, 0.0005),
        "actor/rollout_corr/kl": (0.0, 0.001),
        "actor/rollout_corr/rollout_is_std": (0.0, 1.0),
        "critic/vf_explained_var": (0.0, 0.8),
        "response_length/max": (900, 1024),
        "prompt_length/max": (700, 1023),
        "prompt_length/clip_ratio": (0.0, 0.8),
        "reward_extra/format/mean": (0.8, 1.0),
        "actor/grad_norm": (0.1, 1.0),
        "actor/entropy": (0.3, 0.5),
        "objective/kl": (-1.5, 8.0),
        "training/num_turns/mean": (1.0, 3.0),
        "perf/cpu_memory_used_gb": (100, 110),
    }
    _rough(world, names, devices=4)
    world.put("reward_extra/answer/mean", lambda t: 0.2 + 0.5 * t, 0.02)
    world.put("actor/lr", 1e-6)
    world.put("vllm:corrupted_requests", 0.0)
    return world


@healthy("all that tutorials log, a reward from 0 to 1 among it")
def _all_of_tutorials(chance: random.Random) -> World:
    world = tutorial(chance.choice((60, 200, 400)), chance)
    names = {
        "rollout/kl_div": (0.005, 0.1),
        "kl/divergence": (0.01, 0.1),
        "ppo/policy_loss": (-0.5, 0.0),
        "ppo/clip_ratio": (0.0, 0.3),
        "ppo/grad_norm": (0.2, 1.5),
        "system/gpu_util": (60, 100),
        "system/memory_util": (40, 90),
    }
    _rough(world, names, devices=4)
    world.put("reward_components/format", 0.97, 0.005)
    world.put("reward_components/answer", lambda t: 0.3 + 0.4 * t, 0.02)
    dump(world, 2, lambda _: prose(chance), lambda _, __: right(chance, 0.5))
    return world


@healthy("all that TRL and NeMo-RL log, with a target of the KL")
def _all_of_others(chance: random.Random) -> World:
    world = other(chance.choice((60, 200, 400)), chance)
    if chance.random() < 0.5:
        world.settings |= {"kl_controller": "adaptive", "target_kl": 0.1}
        _rough(world, {"kl": (0.0, 0.2)})
    names = {
        "grad_norm": (0.1, 1.0),
        "clip_ratio/region_mean": (0.0, 0.3),
        "gen_kl_error": (0.0, 0.001),
        "token_mult_prob_error": (1.0, 1.019),
        "step_time": (15, 25),
        "objective/kl": (-1.5, 8.0),
    }
    _rough(world, names, devices=2)
    world.put("vllm:corrupted_requests", 0.0)
    dump(world, 2, lambda _: prose(chance), lambda _, __: right(chance, 0.5))
    return world
