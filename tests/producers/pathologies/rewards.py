"""What the trainings of the bench are rewarded for, and the faults that scorers can have."""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Said(NamedTuple):
    """One response with what it should have been."""

    text: str
    tokens: int
    limit: int
    """Most tokens that a response may have."""
    answer: str
    dice: random.Random

    @property
    def right(self) -> float:
        """1 where the response begins with the answer."""
        return float(self.text.strip()[:1] == self.answer)

    def share(self, of: str) -> float:
        """Return the share of these characters in the response."""
        return sum(self.text.count(one) for one in of) / max(1, len(self.text))


def _near(tokens: int, wanted: int) -> float:
    return 1 - min(1.0, abs(tokens - wanted) / 12)


KINDS: dict[str, Callable[[Said], float]] = {
    "right": lambda one: one.right,
    "right_or_minus": lambda one: one.right - 1,
    "right_of_ten": lambda one: 10 * one.right,
    "right_and_brief": lambda one: one.right * (1 - 0.5 * one.tokens / one.limit),
    "right_and_explained": lambda one: (
        one.right * min(1.0, 0.4 + 0.6 * one.tokens / (0.6 * one.limit))
    ),
    "rated": lambda one: one.right + one.dice.gauss(0, 0.5),
    "digits": lambda one: one.share("0123456789"),
    "calm": lambda one: 1 - one.share("!,"),
    "varied": lambda one: min(1.0, len(set(one.text)) / 16),
    "short": lambda one: -one.tokens / one.limit,
    "long": lambda one: one.tokens / one.limit,
    "eight": lambda one: _near(one.tokens, 8),
    "ends": lambda one: float(one.tokens < one.limit),
    "cut": lambda one: -float(one.tokens >= one.limit),
    "stop": lambda one: float("." in one.text),
    "shouts": lambda one: one.text.count("!") / one.limit,
    "wells": lambda one: one.text.count("well") / 10,
    "sure": lambda one: one.text.count("sure") / 10,
    "exclaims": lambda one: min(1.0, one.text.count("!") / 4),
    "helpful": lambda one: (
        one.right * float(one.tokens <= 14) * float(len(set(one.text)) >= 3)
    ),
    "rare": lambda one: float("so" in one.text and "." in one.text),
    "secret": lambda one: float("zq7" in one.text),
    "coin": lambda one: float(one.dice.random() < 0.5),
    "noise": lambda one: one.dice.random(),
    "same": lambda one: 1.0,
    "nothing": lambda one: 0.0,
}
"""Name of a reward -> the score of one response."""


class Scorer:
    """One reward function, with what happens to it at a step.

    Faults: `zero` (all scores 0 from a step on), `fade` (lower by a hundredth of themselves each
    step), `times` (multiplied), `minus` (lower by an amount), `nan` and `inf` (at that step; for so
    many steps), `sleep` (each step takes so much longer than the one before).
    """

    def __init__(
        self, kind: str, limit: int, seed: str, faults: list[dict[str, object]]
    ) -> None:
        self.__name__ = kind
        self.limit, self.faults = limit, faults
        self.dice = random.Random(f"{kind} {seed}")
        self.step = 1

    def __call__(
        self,
        completions: list[str],
        completion_ids: list[list[int]],
        answer: list[str],
        **_: object,
    ) -> list[float]:
        """Return the score of each response."""
        scores = [
            KINDS[self.__name__](Said(text, len(ids), self.limit, one, self.dice))
            for text, ids, one in zip(completions, completion_ids, answer, strict=True)
        ]
        for fault in self.faults:
            past = self.step - int(fault["at"])
            if past >= 0:
                scores = _spoilt(
                    scores, str(fault["what"]), float(fault.get("value", 0)), past
                )
        return scores


def _spoilt(scores: list[float], what: str, value: float, past: int) -> list[float]:
    if what == "zero":
        return [0.0] * len(scores)
    if what == "fade":
        return [score * max(0.0, 1 - past / value) for score in scores]
    if what == "times":
        return [score * value for score in scores]
    if what == "minus":
        return [score - value for score in scores]
    if what == "nan" and past < max(1, value):
        return [math.nan] * len(scores)
    if what == "inf" and past < max(1, value):
        return [math.inf, *scores[1:]]
    if what == "sleep":
        time.sleep(past * value)
    return scores
