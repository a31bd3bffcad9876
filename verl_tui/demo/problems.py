"""Word problems with worked answers for the simulated GRPO run, all invented here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

_NAMES = (
    "Mira",
    "Tobias",
    "Aiko",
    "Samuel",
    "Leila",
    "Joris",
    "Nkechi",
    "Pavel",
    "Inés",
    "Ravi",
    "Hanna",
    "Otto",
)
_OPENINGS = (
    "Let's work through this one piece at a time.",
    "First I collect what is given.",
    "I will go step by step.",
    "We can split the problem into smaller parts.",
)
_CHECKS = (
    (
        "Checking once more: the last calculation gives {answer}, which fits everything the "
        "question says."
    ),
    (
        "To be sure, I read the question again. It asks for one number, and all of the amounts "
        "were used. {answer} it is."
    ),
    "A quick estimate agrees with the size of {answer}, so the steps seem right.",
)
_SLIPS = (
    "That leaves me with {answer}.",
    "So the number we want should be {answer}.",
    "Adding everything up, I get {answer}.",
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A question, the sentences that solve it, and the number they arrive at."""

    question: str
    steps: tuple[str, ...]
    answer: int


def _bakery(rng: random.Random, name: str) -> Problem:
    trays = rng.randint(4, 12)
    rolls = rng.randint(12, 30)
    sold = rng.randint(20, 40)
    price = rng.randint(2, 4)
    baked = trays * rolls
    left = trays * rolls - sold
    return Problem(
        f"{name} bakes {trays} trays of {rolls} rolls each morning. A café takes {sold} of the "
        "rolls, and the rest are "
        f"sold at the market for ${price} each. How many dollars does the market bring in?",
        (
            f"{name} bakes {trays} × {rolls} = {baked} rolls in total.",
            f"After the café has taken its share, {baked} - {sold} = {left} rolls remain.",
            f"At ${price} a roll the market brings in {left} × {price} = {left * price} dollars.",
        ),
        left * price,
    )


def _ferry(rng: random.Random, name: str) -> Problem:
    trips = rng.randint(3, 8)
    cars = rng.randint(14, 36)
    bikes = rng.randint(5, 18)
    days = rng.randint(3, 9)
    once = cars + bikes
    daily = (cars + bikes) * trips
    return Problem(
        f"A ferry crosses the bay {trips} times a day. On each crossing it carries {cars} cars and "
        f"{bikes} bicycles. "
        f"{name} counts all vehicles for {days} days. How many vehicles does {name} count?",
        (
            f"One crossing carries {cars} + {bikes} = {once} vehicles.",
            f"In a day that makes {once} × {trips} = {daily} vehicles.",
            f"Over {days} days the count reaches {daily} × {days} = {daily * days}.",
        ),
        daily * days,
    )


def _orchard(rng: random.Random, name: str) -> Problem:
    rows = rng.randint(5, 14)
    trees = rng.randint(6, 15)
    crates = rng.randint(2, 5)
    each = rng.randint(8, 20)
    broken = rng.randint(3, 19)
    total = rows * trees * crates
    return Problem(
        f"An orchard has {rows} rows with {trees} pear trees in each row. Every tree fills "
        f"{crates} crates, and each "
        f"crate holds {each} kilograms. {name} finds {broken} crates spoiled. How many "
        "kilograms are good?",
        (
            f"There are {rows} × {trees} = {rows * trees} trees.",
            f"They fill {rows * trees} × {crates} = {total} crates.",
            f"Without the spoiled ones, {total} - {broken} = {total - broken} crates are good.",
            f"Their weight is {total - broken} × {each} = {(total - broken) * each} kilograms.",
        ),
        (total - broken) * each,
    )


def _savings(rng: random.Random, name: str) -> Problem:
    weekly = rng.randint(6, 25)
    weeks = rng.randint(6, 20)
    gift = rng.randint(10, 60)
    bike = rng.randint(700, 900)
    saved = weekly * weeks
    return Problem(
        f"{name} wants a bicycle that costs ${bike}. {name} saves ${weekly} a week for {weeks} "
        "weeks and then receives "
        f"${gift} as a present. How many dollars are still missing?",
        (
            f"The weekly savings add up to {weekly} × {weeks} = {saved} dollars.",
            f"Together with the present that is {saved} + {gift} = {saved + gift} dollars.",
            f"The missing amount is {bike} - {saved + gift} = {bike - saved - gift} dollars.",
        ),
        bike - saved - gift,
    )


def _library(rng: random.Random, name: str) -> Problem:
    shelves = rng.randint(6, 20)
    half = rng.randint(12, 25)
    lent = rng.randint(15, 60)
    books = 2 * half
    return Problem(
        f"A village library has {shelves} shelves with {books} books each. Half of all the books "
        "are novels. On Monday "
        f"readers borrow {lent} novels from {name}'s desk. How many novels stay in the library?",
        (
            f"The library owns {shelves} × {books} = {shelves * books} books.",
            f"Half of them, {shelves * books} / 2 = {shelves * half}, are novels.",
            f"After Monday {shelves * half} - {lent} = {shelves * half - lent} novels stay.",
        ),
        shelves * half - lent,
    )


def _tiles(rng: random.Random, name: str) -> Problem:
    long = rng.randint(8, 18)
    wide = rng.randint(5, 12)
    boxes = rng.randint(4, 9)
    spare = rng.randint(2, 9)
    need = long * wide
    return Problem(
        f"{name} lays square tiles on a floor that is {long} tiles long and {wide} tiles wide, and "
        f"wants {spare} tiles "
        f"to spare. There are {boxes} tiles in the shed already. How many tiles must {name} buy?",
        (
            f"The floor itself needs {long} × {wide} = {need} tiles.",
            f"With the spare ones that is {need} + {spare} = {need + spare} tiles.",
            (
                f"Since {boxes} are in the shed, {need + spare} - {boxes} = {need + spare - boxes} "
                "must be bought."
            ),
        ),
        need + spare - boxes,
    )


def _choir(rng: random.Random, name: str) -> Problem:
    altos = rng.randint(6, 18)
    more = rng.randint(2, 9)
    guests = rng.randint(3, 12)
    basses = 2 * altos
    sopranos = altos + more
    members = altos + basses + sopranos
    return Problem(
        f"In {name}'s choir there are {altos} altos, twice as many basses, and {more} more "
        "sopranos than altos. At the "
        f"summer concert {guests} guests sing along. How many people sing?",
        (
            f"There are 2 × {altos} = {basses} basses.",
            f"There are {altos} + {more} = {sopranos} sopranos.",
            f"The choir has {altos} + {basses} + {sopranos} = {members} members.",
            f"With the guests, {members} + {guests} = {members + guests} people sing.",
        ),
        members + guests,
    )


def _hike(rng: random.Random, name: str) -> Problem:
    speed = rng.randint(4, 6)
    hours = rng.randint(3, 5)
    slow = rng.randint(2, 3)
    rest = rng.randint(2, 4)
    first = speed * hours
    second = slow * rest
    return Problem(
        f"{name} walks {hours} hours at {speed} kilometres an hour, and then climbs for {rest} "
        f"hours at {slow} "
        f"kilometres an hour. On the next day {name} walks the same way back. How many "
        "kilometres are that in all?",
        (
            f"The flat part is {hours} × {speed} = {first} kilometres long.",
            f"The climb adds {rest} × {slow} = {second} kilometres.",
            f"One way is {first} + {second} = {first + second} kilometres.",
            f"There and back that makes 2 × {first + second} = {2 * (first + second)} kilometres.",
        ),
        2 * (first + second),
    )


_TEMPLATES: Sequence[Callable[[random.Random, str], Problem]] = (
    _bakery,
    _ferry,
    _orchard,
    _savings,
    _library,
    _tiles,
    _choir,
    _hike,
)


def invent(rng: random.Random) -> Problem:
    """Return a problem from one of the templates with names and numbers of its own."""
    return rng.choice(_TEMPLATES)(rng, rng.choice(_NAMES))


def solve(problem: Problem, rng: random.Random, *, right: bool, care: float) -> str:
    """Return a response as the policy would write it.

    Args:
        problem: What is asked.
        rng: Chooses words and mistakes.
        right: Whether the response earns the point.
        care: How far training has come, 0 to 1; later policies check their work and keep to the
            format.
    """
    lines = [rng.choice(_OPENINGS)]
    if right:
        lines += problem.steps
        if rng.random() < care:
            lines.append(rng.choice(_CHECKS).format(answer=problem.answer))
        return "\n".join([*lines, f"#### {problem.answer}"])
    if rng.random() > 0.35 + care:
        # The right number in the wrong form: the reward function finds no marker and gives nothing.
        return "\n".join([*lines, *problem.steps, f"The answer is {problem.answer}."])
    known = rng.randint(1, len(problem.steps) - 1)
    slip = problem.answer + rng.choice((-1, 1)) * rng.randint(
        1, max(2, problem.answer // 6)
    )
    return "\n".join(
        [
            *lines,
            *problem.steps[:known],
            rng.choice(_SLIPS).format(answer=slip),
            f"#### {slip}",
        ]
    )
