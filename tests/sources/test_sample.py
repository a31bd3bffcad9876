"""What a record says of a sample: conversations, calls of tools, fields of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from verl_tui.sources.fields.sample import read_fact, read_sample

if TYPE_CHECKING:
    from verl_tui.records import Sample

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'},
}
ASKED = {"role": "user", "content": "1+2?"}
SHOWN_CALL = (
    '<tool_call>\n{"name":"add","arguments":"{\\"a\\": 1, \\"b\\": 2}"}\n</tool_call>'
)


def read(**record: Any) -> Sample:
    sample = read_sample(record)
    assert sample is not None
    fact = read_fact(record, 0)
    assert fact is not None
    assert (fact.score, fact.length) == (sample.score, len(sample.response))
    return sample


def test_a_response_of_messages():
    assert (
        read(
            prompt=[ASKED], completion=[{"role": "assistant", "content": "3"}]
        ).response
        == "3"
    )
    turns = [{"role": "assistant", "content": "hm"}, {"role": "user", "content": "so?"}]
    assert read(prompt="q", completion=turns).response == "assistant: hm\n\nuser: so?"


def test_calls_of_tools_and_their_answers():
    turns = [
        ASKED,
        {"role": "assistant", "content": "Let me add.", "tool_calls": [CALL]},
        {"role": "tool", "name": "add", "tool_call_id": "c1", "content": "3"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "easy",
            "tool_calls": [],
        },
    ]
    sample = read(messages=turns, score=1)
    assert sample.prompt == "user: 1+2?"
    assert sample.response == (
        f"assistant: Let me add.\n{SHOWN_CALL}\n\ntool: 3\n\nassistant: <think>\neasy\n</think>"
    )


def test_content_in_parts():
    parts = [
        {"type": "text", "text": "What is"},
        {"type": "image_url", "image_url": {"url": "x"}},
        "this?",
        {},
    ]
    assert (
        read(input=[{"role": "user", "content": parts}], output="a").prompt
        == "user: What is\n[image_url]\nthis?\n[?]"
    )


def test_all_further_fields():
    sample = read(
        input="q", output="a", gts={"answer": 1}, score=0.5, acc=True, turns=3, pred="72", none=None,
        reward_extra={"format": 0.1, "deep": {"x": [1]}}, tools=["add"], step=7, uid="p_0_1",
    )  # fmt: skip
    assert sample.ground_truth == '{"answer":1}'
    assert sample.group == "p"
    assert sample.extras == {
        "acc": True, "turns": 3, "pred": "72", "reward_extra": '{"format":0.1,"deep":{"x":[1]}}', "tools": '["add"]',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reward", "score"),
    [
        ([0, 0, 1], 1.0),
        ([[0.5], [0.25, None]], 0.75),
        ([True, False], None),
        ([], None),
        (["1"], None),
    ],
)
def test_a_score_in_parts(reward, score):
    assert read(input_prompt="q", output_response="a", reward=reward).score == score


def test_facts():
    fact = read_fact(
        {"input": "q", "output": "abc", "score": 1, "acc": True, "n": 2, "pred": "x"},
        4,
        validation=True,
    )
    assert fact is not None
    assert (fact.index, fact.score, fact.length, fact.validation) == (4, 1.0, 3, True)
    assert fact.numbers == {"acc": 1.0, "n": 2.0}
    other = read_fact({"input": "q", "output": "other"}, 5)
    assert other is not None
    assert fact.group == other.group is not None
    nobody = read_fact({"output": "abc", "n": 10**400}, 0)
    assert nobody is not None
    assert (nobody.group, nobody.numbers) == (None, {})
    assert read_fact({"a": 1}, 0) is None
