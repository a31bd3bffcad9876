"""Turns of the model, and whose scores a list of numbers holds."""

from __future__ import annotations

import pytest

from verl_tui.rendering.samples.model_turns import turn_words
from verl_tui.rendering.samples.speaker_stretches import parse_stretches

TEXT = "assistant: look\n\nuser: you see\n\nassistant: go\n\nuser: done"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (
            "turn_scores",
            "[0.1,1.0]",
            ["turn 1 of 2, score 0.1", "turn 2 of 2, score 1"],
        ),
        (
            "tool_rewards",
            "[0,0.5]",
            ["turn 1 of 2, reward 0", "turn 2 of 2, reward 0.5"],
        ),
        ("turn_scores", "[0.1]", ["turn 1 of 2", "turn 2 of 2"]),
        ("turn_scores", '["a","b"]', ["turn 1 of 2", "turn 2 of 2"]),
        ("turn_scores", "[0.1,", ["turn 1 of 2", "turn 2 of 2"]),
        ("acc", 1.0, ["turn 1 of 2", "turn 2 of 2"]),
    ],
)
def test_turns(field: str, value: object, expected: list[str]) -> None:
    words = turn_words(parse_stretches(TEXT).stretches, {field: value})
    assert words == dict(zip((0, 2), expected, strict=True))


def test_a_single_turn_has_no_number() -> None:
    assert turn_words(parse_stretches("just this").stretches, {}) == {}
