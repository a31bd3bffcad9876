"""Turns of the model in a response, and their scores where the log has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from verl_tui.rendering.samples.template import ASSISTANT
from verl_tui.rendering.text.numbers import compact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from verl_tui.rendering.samples.speaker_stretches import Stretch

_SCORES = (
    "turn_scores",
    "turn_rewards",
    "step_rewards",
    "step_scores",
    "process_rewards",
    "tool_rewards",
)
"""Fields with a number a turn; verl's agent loop has `turn_scores` and `tool_rewards`."""


def model_turns(stretches: Sequence[Stretch]) -> list[int]:
    """Return the numbers of the turns in which the model says something, in order."""
    return list(
        dict.fromkeys(
            stretch.turn
            for stretch in stretches
            if stretch.speaker == ASSISTANT and not stretch.token
        )
    )


def turn_words(
    stretches: Sequence[Stretch], extras: Mapping[str, Any]
) -> dict[int, str]:
    """Return a line above each of the model's turns; none of a single turn.

    Scores are named only if there are as many as turns: otherwise it is unknown which belongs to
    which.
    """
    turns = model_turns(stretches)
    if len(turns) < 2:
        return {}
    name, scores = _scores(extras, len(turns))
    words = {}
    for at, turn in enumerate(turns):
        score = f", {name} {compact(scores[at])}" if name else ""
        words[turn] = f"turn {at + 1} of {len(turns)}{score}"
    return words


def _scores(extras: Mapping[str, Any], count: int) -> tuple[str, Sequence[float]]:
    for name in _SCORES:
        numbers = _numbers(extras.get(name))
        if len(numbers) == count:
            return ("score" if "score" in name else "reward"), numbers
    return "", ()


def _numbers(value: object) -> Sequence[float]:
    """Return the numbers of a list, which extras hold as JSON text."""
    if not isinstance(value, str) or not value.startswith("["):
        return ()
    try:
        numbers: list[float] = orjson.loads(value)
    except ValueError:
        return ()
    if not all(isinstance(number, (int, float)) for number in numbers):
        return ()
    return numbers
