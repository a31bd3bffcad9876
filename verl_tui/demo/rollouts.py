"""The rollouts of the simulated GRPO run, and their dumps in the shape of verl 0.9's V1 trainer."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verl_tui.demo import curves, problems

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.demo.problems import Problem

PROMPTS = 16
"""Prompts of a training batch."""
GROUP = 4
"""Responses to each prompt, verl's `rollout.n`."""
TRAIN_SIZE = 1600
"""Problems in the training set."""
VALIDATION_SIZE = 40
"""Problems in the validation set."""

_FORM = 'Reason step by step and put the final number after "####".'


@dataclass(frozen=True, slots=True)
class Rollout:
    """One response to one prompt."""

    uid: str
    input: str
    output: str
    gts: str
    score: float
    prompt_tokens: int
    response_tokens: int


def training(step: int, seed: int) -> list[Rollout]:
    """Return the rollouts of a training step, groups side by side as V1 sorts them."""
    rng = curves.generator(seed, "rollouts", step)
    first = (step - 1) * PROMPTS
    batch = []
    for place in range(PROMPTS):
        problem = _problem(seed, "train", (first + place) % TRAIN_SIZE)
        # One problem from each sixteenth of the range keeps the batch's score from jumping with its
        # luck.
        difficulty = (place + rng.random()) / PROMPTS
        name = _identity(rng)
        chance = _chance(step, difficulty)
        batch += [
            _respond(
                problem, f"{name}_{number}_0", step, rng, right=rng.random() < chance
            )
            for number in range(GROUP)
        ]
    return sorted(batch, key=lambda rollout: rollout.uid)


def validation(step: int, seed: int) -> list[Rollout]:
    """Return the answers to the validation set; the problems and their difficulty are always the
    same.
    """
    rng = curves.generator(seed, "validation", step)
    answers = []
    for place in range(VALIDATION_SIZE):
        problem = _problem(seed, "validation", place)
        # Greedy decoding rolls no dice: each problem has a luck of its own, a golden section away
        # from the last one's.
        luck = place * 0.618 % 1 + rng.gauss(0, 0.04)
        right = luck < _chance(step, (place + 0.5) / VALIDATION_SIZE)
        answers.append(
            _respond(problem, f"{_identity(rng)}_0_0", step, rng, right=right)
        )
    return answers


def dump(
    path: Path, rollouts: Sequence[Rollout], step: int, *, validated: bool = False
) -> None:
    """Write the dump of a step, one JSON object a line.

    Args:
        path: The file, named after the step.
        rollouts: What to write, in this order.
        step: The step the rollouts belong to.
        validated: True for a validation dump, which repeats the score as `reward`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for rollout in rollouts:
            file.write(
                json.dumps(
                    _entry(rollout, step, validated=validated), ensure_ascii=False
                )
                + "\n"
            )


def _entry(rollout: Rollout, step: int, *, validated: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "input": rollout.input,
        "output": rollout.output,
        "gts": rollout.gts,
        "score": rollout.score,
        "step": step,
    }
    if validated:
        entry["reward"] = rollout.score
    return {**entry, "uid": rollout.uid}


def _problem(seed: int, split: str, index: int) -> Problem:
    return problems.invent(curves.generator(seed, split, index))


def _identity(rng: random.Random) -> str:
    """Return what `uuid4()` would, from the run's own random numbers."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _chance(step: int, difficulty: float) -> float:
    """Return how likely a problem is solved; the gentle slope keeps most groups mixed, and only
    those teach.
    """
    return curves.sigmoid(3 * (curves.grpo_skill(step) - difficulty))


def _respond(
    problem: Problem, uid: str, step: int, rng: random.Random, *, right: bool
) -> Rollout:
    output = problems.solve(
        problem, rng, right=right, care=0.15 + 0.5 * step / curves.GRPO_STEPS
    )
    prompt = f"system\nYou are a helpful assistant.\nuser\n{problem.question} {_FORM}\nassistant\n"
    return Rollout(
        uid=uid,
        input=prompt,
        output=output,
        gts=str(problem.answer),
        score=float(right),
        # Figures and signs are tokens of their own, so a token is a little shorter here than in
        # prose.
        prompt_tokens=len(prompt) // 4 + 12,
        response_tokens=len(output) * 2 // 5 + 3,
    )
