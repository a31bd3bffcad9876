"""What a simulated run computes: its curves, functions from a step to numbers; and its rollouts,
word problems with worked answers, all invented here, and their dumps in the shape of verl 0.9's V1
trainer.

Noise comes from a generator seeded by run and step, so that each step can be computed by itself and
the same seed always gives the same run.
"""

from __future__ import annotations

import json
import math
import random
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from verl_tui.means import clamp

STEPS = 300
"""Optimiser steps of a run."""
COLLAPSE_STEP = 144
"""Step at which the reward of the collapsing run falls off a cliff."""
_DRIFT = 12
"""Steps before, from which its policy slips away."""


def generator(seed: int, *name: object) -> random.Random:
    """Return the random numbers of one named thing; equal names give equal numbers in every
    process.
    """
    return random.Random("/".join(map(str, (seed, *name))))


def chance(step: int, difficulty: float) -> float:
    """Return how likely a problem is solved; the gentle slope keeps most groups mixed, and only
    those teach.
    """
    skill = 0.22 + 0.68 * (step / STEPS) ** 0.7
    return 1 / (1 + math.exp(-3 * (skill - difficulty)))


def drift(step: int) -> float:
    """Return how far the collapsing policy has slipped away, 0 to 1."""
    return clamp((step - COLLAPSE_STEP + _DRIFT) / (2 * _DRIFT), 0.0, 1.0)


def lost(step: int) -> float:
    """Return the share of the collapsing policy's responses that only repeat themselves."""
    return 1 - 0.6 ** max(0, step - COLLAPSE_STEP + 1)


def actor_metrics(step: int, rng: random.Random, slip: float) -> dict[str, float]:
    """Return the metrics of a step that are not computed from its rollouts, healthy at no slip."""
    noise = rng.gauss
    return {
        "actor/entropy": (0.19 + 0.21 * math.exp(-step / 130) + noise(0, 0.006))
        * (1 - 0.97 * slip),
        "training/rollout_probs_diff_valid": 1.0,
        "training/rollout_probs_diff_max": clamp(noise(0.33, 0.05), 0.2, 0.5),
        "training/rollout_probs_diff_mean": noise(0.0027, 0.0002),
        "training/rollout_probs_diff_std": noise(0.0078, 0.0006),
        "training/rollout_actor_probs_pearson_corr": noise(0.99905, 0.0002),
        "actor/pg_loss": noise(-0.0008, 0.004) + 0.6 * slip,
        "actor/kl_loss": 0.0008
        + 0.011 * (1 - math.exp(-step / 140))
        + abs(noise(0, 0.0003))
        + 0.9 * slip,
        "actor/pg_clipfrac": abs(noise(0.0011, 0.0004)) + 0.34 * slip,
        "actor/ppo_kl": noise(2e-5, 9e-5) + (0.3 + noise(0, 0.01)) * slip,
        "actor/pg_clipfrac_lower": 0.0,
        "actor/grad_norm": 0.24
        + 0.3 * math.exp(-step / 100)
        + abs(noise(0, 0.02))
        + 7.5 * slip,
        # Peaks of the process never fall: they rise in the first steps and stay.
        "actor/perf/max_memory_allocated_gb": 21.4 + 1.7 * min(step, 6) / 6,
        "actor/perf/max_memory_reserved_gb": 27.0 + 2.4 * min(step, 6) / 6,
        "actor/perf/cpu_memory_used_gb": 96.2 + 0.004 * step + rng.uniform(0, 0.3),
    }


def phases(step: int, rng: random.Random) -> dict[str, float]:
    """Return the seconds of a step's parts, together about one; the first step compiles kernels."""
    warm_up = 0.9 if step == 1 else 0.0
    return {
        "gen": 0.42 + rng.uniform(-0.03, 0.05) + warm_up,
        "old_log_prob": 0.08 + rng.uniform(-0.005, 0.008),
        "ref": 0.07 + rng.uniform(-0.005, 0.008),
        "adv": 0.006 + rng.uniform(0, 0.002),
        "update_actor": 0.29 + rng.uniform(-0.02, 0.03) + warm_up,
        "update_weights": 0.05 + rng.uniform(-0.004, 0.006),
    }


# -- word problems ---------------------------------------------------------------------------------


_NAMES = ("Mira", "Tobias", "Aiko", "Samuel", "Leila", "Nkechi", "Inés", "Ravi")
_OPENINGS = (
    "Let's work through this one piece at a time.",
    "First I collect what is given.",
    "We can split the problem into smaller parts.",
)
_CHECK = "Checking once more: {} fits everything the question says."
_STUTTERS = ("这个问题", "aaaaa bbbbb ccccc ", "the answer the the ")


class Problem(NamedTuple):
    """A question, the sentences that solve it, and the number they arrive at."""

    question: str
    steps: tuple[str, ...]
    answer: int


def _bakery(name: str, trays: int, rolls: int, sold: int) -> Problem:
    baked = trays * rolls
    return Problem(
        f"{name} bakes {trays} trays of {rolls} rolls each morning. A café takes {sold} of the "
        "rolls, and the rest are sold at the market for $3 each. How many dollars does the market "
        "bring in?",
        (
            f"{name} bakes {trays} × {rolls} = {baked} rolls in total.",
            f"After the café has taken its share, {baked} - {sold} = {baked - sold} rolls remain.",
            f"The market brings in {baked - sold} × 3 = {(baked - sold) * 3} dollars.",
        ),
        (baked - sold) * 3,
    )


def _ferry(name: str, trips: int, cars: int, days: int) -> Problem:
    daily = (cars + 9) * trips
    return Problem(
        f"A ferry crosses the bay {trips} times a day. On each crossing it carries {cars} cars and "
        f"9 bicycles. {name} counts all vehicles for {days} days. How many are that?",
        (
            f"One crossing carries {cars} + 9 = {cars + 9} vehicles.",
            f"In a day that makes {cars + 9} × {trips} = {daily} vehicles.",
            f"Over {days} days the count reaches {daily} × {days} = {daily * days}.",
        ),
        daily * days,
    )


def _choir(name: str, altos: int, more: int, guests: int) -> Problem:
    members = 4 * altos + more
    return Problem(
        f"In {name}'s choir there are {altos} altos, twice as many basses, and {more} more "
        f"sopranos than altos. At the summer concert {guests} guests sing along. How many people "
        "sing?",
        (
            f"There are 2 × {altos} = {2 * altos} basses.",
            f"There are {altos} + {more} = {altos + more} sopranos.",
            f"The choir has {altos} + {2 * altos} + {altos + more} = {members} members.",
            f"With the guests, {members} + {guests} = {members + guests} people sing.",
        ),
        members + guests,
    )


def invent(rng: random.Random) -> Problem:
    """Return a problem with a name and numbers of its own."""
    sizes = (rng.randint(4, 12), rng.randint(12, 30), rng.randint(20, 40))
    return rng.choice((_bakery, _ferry, _choir))(rng.choice(_NAMES), *sizes)


def solve(problem: Problem, rng: random.Random, *, right: bool, care: float) -> str:
    """Return a response as the policy would write it.

    Args:
        problem: What is asked.
        rng: Chooses words and mistakes.
        right: Whether the response earns the point.
        care: How far training has come, 0 to 1; later policies check their work and keep to the
            format.
    """
    lines = [rng.choice(_OPENINGS), *problem.steps]
    if right:
        if rng.random() < care:
            lines.append(_CHECK.format(problem.answer))
        return "\n".join([*lines, f"#### {problem.answer}"])
    if rng.random() > 0.35 + care:
        # The right number in the wrong form: the reward function finds no marker.
        return "\n".join([*lines, f"The answer is {problem.answer}."])
    slip = problem.answer + rng.choice((-1, 1)) * rng.randint(1, 9)
    known = lines[: rng.randint(2, len(problem.steps))]
    return "\n".join([*known, f"So the number should be {slip}.", f"#### {slip}"])


PROMPTS, GROUP = 16, 4
"""Prompts of a training batch, and responses to each."""
TRAIN_SIZE, VALIDATION_SIZE = 1600, 40
"""Problems in the training set and in the validation set."""
_LONGEST = 256
"""Tokens of the longest response."""
_FORM = 'Reason step by step and put the final number after "####".'


class Rollout(NamedTuple):
    """One response to one prompt."""

    uid: str
    input: str
    output: str
    gts: str
    score: float
    prompt_tokens: int
    response_tokens: int


class Rollouts:
    """What the policy of a run writes.

    Args:
        seed: Chooses problems and words.
        collapses: Whether the policy ends in repetition.
    """

    def __init__(self, seed: int, *, collapses: bool) -> None:
        self._seed = seed
        self._collapses = collapses

    def training(self, step: int) -> list[Rollout]:
        """Return the rollouts of a training step, groups side by side as V1 sorts them."""
        rng = generator(self._seed, "rollouts", step)
        batch = []
        for place in range(PROMPTS):
            index = ((step - 1) * PROMPTS + place) % TRAIN_SIZE
            problem = invent(generator(self._seed, "train", index))
            # One problem from each sixteenth of the range keeps the batch's score from jumping
            # with its luck.
            odds = chance(step, (place + rng.random()) / PROMPTS)
            name = _identity(rng)
            for number in range(GROUP):
                right = rng.random() < odds
                uid = f"{name}_{number}_0"
                batch.append(self._respond(problem, uid, step, rng, right=right))
        return sorted(batch, key=lambda rollout: rollout.uid)

    def validation(self, step: int) -> list[Rollout]:
        """Return the answers to the validation set, always the same problems."""
        rng = generator(self._seed, "validation", step)
        answers = []
        for place in range(VALIDATION_SIZE):
            problem = invent(generator(self._seed, "val", place))
            # Greedy decoding rolls no dice: each problem has a luck of its own, a golden section
            # away from the last one's.
            luck = place * 0.618 % 1 + rng.gauss(0, 0.04)
            right = luck < chance(step, (place + 0.5) / VALIDATION_SIZE)
            uid = f"{_identity(rng)}_0_0"
            answers.append(self._respond(problem, uid, step, rng, right=right))
        return answers

    def _respond(
        self, problem: Problem, uid: str, step: int, rng: random.Random, *, right: bool
    ) -> Rollout:
        loops = self._collapses and rng.random() < lost(step)
        if loops:
            unit = rng.choice(_STUTTERS)  # it never comes to its end token
            output = unit * (_LONGEST * 5 // 2 // len(unit))
        else:
            output = solve(problem, rng, right=right, care=0.15 + 0.5 * step / STEPS)
        prompt = (
            f"system\nYou are a helpful assistant.\nuser\n{problem.question} {_FORM}\n"
            "assistant\n"
        )
        return Rollout(
            uid=uid,
            input=prompt,
            output=output,
            gts=str(problem.answer),
            score=float(right and not loops),
            # Figures and signs are tokens of their own, so a token is a little shorter here than
            # in prose.
            prompt_tokens=len(prompt) // 4 + 12,
            response_tokens=_LONGEST if loops else len(output) * 2 // 5 + 3,
        )


def dump(
    path: Path, rollouts: Sequence[Rollout], step: int, *, validated: bool = False
) -> None:
    """Write the dump of a step, one JSON object a line; one of a validation repeats the score as
    `reward`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for one in rollouts:
            entry = {
                "input": one.input,
                "output": one.output,
                "gts": one.gts,
                "score": one.score,
                "step": step,
                **({"reward": one.score} if validated else {}),
                "uid": one.uid,
            }
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _identity(rng: random.Random) -> str:
    """Return what `uuid4()` would, from the run's own random numbers."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))
