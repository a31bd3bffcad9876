"""The rollouts of a simulated run, and their dumps in the shape of verl 0.9's V1 trainer."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.demo import curves, problems

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from verl_tui.demo.problems import Problem

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
        rng = curves.generator(self._seed, "rollouts", step)
        batch = []
        for place in range(PROMPTS):
            index = ((step - 1) * PROMPTS + place) % TRAIN_SIZE
            problem = problems.invent(curves.generator(self._seed, "train", index))
            # One problem from each sixteenth of the range keeps the batch's score from jumping
            # with its luck.
            chance = curves.chance(step, (place + rng.random()) / PROMPTS)
            name = _identity(rng)
            for number in range(GROUP):
                right = rng.random() < chance
                uid = f"{name}_{number}_0"
                batch.append(self._respond(problem, uid, step, rng, right=right))
        return sorted(batch, key=lambda rollout: rollout.uid)

    def validation(self, step: int) -> list[Rollout]:
        """Return the answers to the validation set, always the same problems."""
        rng = curves.generator(self._seed, "validation", step)
        answers = []
        for place in range(VALIDATION_SIZE):
            problem = problems.invent(curves.generator(self._seed, "val", place))
            # Greedy decoding rolls no dice: each problem has a luck of its own, a golden section
            # away from the last one's.
            luck = place * 0.618 % 1 + rng.gauss(0, 0.04)
            right = luck < curves.chance(step, (place + 0.5) / VALIDATION_SIZE)
            uid = f"{_identity(rng)}_0_0"
            answers.append(self._respond(problem, uid, step, rng, right=right))
        return answers

    def _respond(
        self, problem: Problem, uid: str, step: int, rng: random.Random, *, right: bool
    ) -> Rollout:
        loops = self._collapses and rng.random() < curves.lost(step)
        if loops:
            output = problems.stutter(rng, _LONGEST * 5 // 2)
        else:
            care = 0.15 + 0.5 * step / curves.STEPS
            output = problems.solve(problem, rng, right=right, care=care)
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
