"""Word problems with worked answers for the simulated runs, all invented here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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


def stutter(rng: random.Random, characters: int) -> str:
    """Return a response that never comes to its end token."""
    unit = rng.choice(_STUTTERS)
    return unit * (characters // len(unit))
