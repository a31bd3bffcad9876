"""The rollouts of a simulated run: word problems with worked answers, all invented here, and their
dumps in the shape of verl 0.9's V1 trainer.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.demo import curves

if TYPE_CHECKING:
    import random

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
        rng = curves.generator(self._seed, "rollouts", step)
        batch = []
        for place in range(PROMPTS):
            index = ((step - 1) * PROMPTS + place) % TRAIN_SIZE
            problem = invent(curves.generator(self._seed, "train", index))
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
            problem = invent(curves.generator(self._seed, "val", place))
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
            unit = rng.choice(_STUTTERS)  # it never comes to its end token
            output = unit * (_LONGEST * 5 // 2 // len(unit))
        else:
            care = 0.15 + 0.5 * step / curves.STEPS
            output = solve(problem, rng, right=right, care=care)
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
