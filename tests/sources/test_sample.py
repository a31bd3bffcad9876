"""What a record says of a sample: conversations, calls of tools, fields of any kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.sources.fields.sample import all_text, read_fact, read_sample

if TYPE_CHECKING:
    from verl_tui.records import Sample

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'},
}
ASKED = {"role": "user", "content": "1+2?"}
SHOWN_CALL = '<tool_call>\n{"name":"add","arguments":{"a":1,"b":2}}\n</tool_call>'


def read(**record: Any) -> Sample:
    sample = read_sample(record)
    assert sample is not None
    fact = read_fact(record, 0)
    assert fact is not None
    assert (fact.score, fact.length) == (sample.score, len(sample.response))
    return sample


def test_a_prompt_of_messages() -> None:
    sample = read(input=[{"role": "system", "content": "Be brief."}, ASKED], output="3")
    assert (sample.prompt, sample.response) == ("system: Be brief.\n\nuser: 1+2?", "3")


def test_a_response_of_messages() -> None:
    assert (
        read(
            prompt=[ASKED], completion=[{"role": "assistant", "content": "3"}]
        ).response
        == "3"
    )
    turns = [{"role": "assistant", "content": "hm"}, {"role": "user", "content": "so?"}]
    assert read(prompt="q", completion=turns).response == "assistant: hm\n\nuser: so?"


def test_calls_of_tools_and_their_answers() -> None:
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
        f"assistant: Let me add.\n{SHOWN_CALL}\n\ntool add: 3\n\nassistant: <think>\neasy\n</think>"
    )


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ({"name": "add", "arguments": {"a": 1}}, '{"name":"add","arguments":{"a":1}}'),
        (
            {"function": {"name": "add", "arguments": "{broken"}},
            '{"name":"add","arguments":"{broken"}',
        ),
        ("add(1)", "add(1)"),
        (None, "null"),
    ],
)
def test_calls_of_any_shape(call: object, shown: str) -> None:
    sample = read(messages=[ASKED, {"role": "assistant", "tool_calls": [call]}])
    assert sample.response == f"<tool_call>\n{shown}\n</tool_call>"


def test_calls_in_text_stay_as_they_are() -> None:
    text = 'I look it up.<tool_call>{"name": "search"}</tool_call><tool_response>found</tool_response>'
    assert read(input="q", output=text).response == text


def test_content_in_parts() -> None:
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


def test_other_names_of_speakers() -> None:
    turns = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}]
    sample = read(conversations=turns)
    assert (sample.prompt, sample.response) == ("human: hi", "yo")


def test_a_conversation_without_an_answer() -> None:
    assert read(messages=[ASKED]).response == ""


def test_a_list_without_speakers_is_no_conversation() -> None:
    assert read_sample({"messages": [{"level": "info"}]}) is None
    assert read(input=[{"a": 1}], output="x").prompt == '[{"a":1}]'


def test_all_further_fields() -> None:
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
def test_a_score_in_parts(reward: object, score: float | None) -> None:
    assert read(input_prompt="q", output_response="a", reward=reward).score == score


def test_facts() -> None:
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


def test_everything_shown_is_searched() -> None:
    record = {
        "messages": [ASKED, {"role": "assistant", "tool_calls": [CALL]}],
        "note": {"a": "b"},
        "uid": "u",
        "n": 1,
    }
    assert list(all_text(record)) == ["user: 1+2?", SHOWN_CALL, '{"a":"b"}', "u"]
    assert list(all_text({"a": "no sample"})) == ["no sample"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=12,
)
TURN = st.dictionaries(
    st.sampled_from(["role", "from", "content", "value", "tool_calls", "name"]),
    JSON,
    max_size=5,
)
NAMES = [
    "input",
    "output",
    "messages",
    "score",
    "acc",
    "gts",
    "answer",
    "uid",
    "step",
    "extra",
]


@given(
    st.dictionaries(
        st.sampled_from(NAMES), JSON | st.lists(TURN, max_size=3), max_size=8
    )
)
def test_any_record_is_survived(record: dict[str, Any]) -> None:
    sample, fact = read_sample(record), read_fact(record, 0)
    assert (sample is None) == (fact is None)
    for text in all_text(record):
        assert isinstance(text, str)
    if sample is not None and fact is not None:
        assert repr(sample.score) == repr(fact.score)
        json.dumps([sample.prompt, sample.response, *map(str, sample.extras.values())])
