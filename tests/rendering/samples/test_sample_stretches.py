"""Who says what in a text, and in which way: chat templates, thoughts, tools, code."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.samples.speaker_stretches import parse_both, parse_stretches
from verl_tui.text import safe


def said(text: str, speaker: str = "assistant") -> list[tuple[str, str, str]]:
    """Return speaker, kind and words of all that is no token and not blank."""
    return [
        (stretch.speaker, stretch.kind, text[stretch.start : stretch.end].strip())
        for stretch in parse_stretches(text, speaker).stretches
        if not stretch.token and text[stretch.start : stretch.end].strip()
    ]


ASKED = [("system", "text", "Be kind."), ("user", "text", "2+2?")]
TEMPLATES = {
    "ChatML": "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n"
    "<|im_start|>assistant\n",
    "Phi-4": "<|im_start|>system<|im_sep|>Be kind.<|im_end|><|im_start|>user<|im_sep|>2+2?<|im_end|>"
    "<|im_start|>assistant<|im_sep|>",
    "Llama 3": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\n2+2?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "Llama 2": "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\n2+2? [/INST]",
    "Mistral": "<s>[SYSTEM_PROMPT]Be kind.[/SYSTEM_PROMPT][INST]2+2?[/INST]",
    "Zephyr": "<|system|>\nBe kind.</s>\n<|user|>\n2+2?</s>\n<|assistant|>\n",
    "gpt-oss": "<|start|>system<|message|>Be kind.<|end|><|start|>user<|message|>2+2?<|end|>"
    "<|start|>assistant",
    "verl, special tokens skipped": "system\nBe kind.\nuser\n2+2?\nassistant\n",
    "verl, of Llama 3": "system\n\nBe kind.user\n\n2+2?assistant\n\n",
    "words": "system: Be kind.\n\nuser: 2+2?\n\nassistant: ",
    "R1": "System: Be kind.\nUser: 2+2?\nAssistant: <think>",
}


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_templates(template: str) -> None:
    assert said(template, "user") == ASKED


def test_other_templates() -> None:
    gemma = "<bos><start_of_turn>user\n2+2?<end_of_turn>\n<start_of_turn>model\n"
    deepseek = "<｜begin▁of▁sentence｜>Be kind.<｜User｜>2+2?<｜Assistant｜><think>\n"
    assert said(gemma, "user") == ASKED[1:]
    assert said(deepseek, "user") == [
        ("user", "text", "Be kind."),
        ("user", "text", "2+2?"),
    ]


def test_thoughts_calls_results_and_code() -> None:
    text = (
        '<think>\nhm\n</think>\nSo <tool_call>\n{"name": "add"}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n4\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
        "```python\nprint(4)\n```\ndone <answer> 4 </answer>"
    )
    assert said(text) == [
        ("assistant", "thought", "hm"),
        ("assistant", "text", "So"),
        ("assistant", "call", '{"name": "add"}'),
        ("user", "result", "4"),
        ("assistant", "code", "print(4)"),
        ("assistant", "text", "done"),
        ("assistant", "answer", "4"),
    ]
    assert parse_stretches(text).stretches[-1].turn == 2


def test_searches() -> None:
    text = (
        "<search> who </search>\n<information>Doc 1</information>\n<answer>he</answer>"
    )
    kinds = [kind for _, kind, _ in said(text)]
    assert kinds == ["call", "result", "answer"]
    searcher = "<|begin_of_query|>who<|end_of_query|><|begin_of_documents|>he<|end_of_documents|>"
    assert [kind for _, kind, _ in said(searcher)] == ["call", "result"]


def test_calls_without_tags() -> None:
    text = 'I look.\n{"name": "find", "arguments": {"q": "x"}}\nThen {"a": 1}\n{"name": "no"}'
    assert said(text)[1] == (
        "assistant",
        "call",
        '{"name": "find", "arguments": {"q": "x"}}',
    )
    assert [kind for _, kind, _ in said(text)] == ["text", "call", "text"]
    tall = '{\n  "name": "find",\n  "parameters": {}\n}'
    assert said(tall) == [("assistant", "call", tall)]


def test_a_thought_that_the_prompt_opened() -> None:
    asked, answered = parse_both(
        "<|im_start|>assistant\n<think>\n", "hm, no tag follows"
    )
    assert asked.open == (("think", "thought"),)
    assert answered.stretches[0].kind == "thought"
    assert said("hm\n</think>\n4") == [
        ("assistant", "thought", "hm"),
        ("assistant", "text", "4"),
    ]


def test_instructions_are_no_thoughts_or_answers() -> None:
    text = "Think in <think> </think>, answer in <answer>here</answer>, in \\boxed{}."
    assert {kind for _, kind, _ in said(text, "user")} == {"text"}


def test_nested_and_unclosed_blocks() -> None:
    text = "<think>a <tool_call>b</think>c ```\nno fence"
    assert [kind for _, kind, _ in said(text)] == ["thought", "call", "text"]
    fenced = said("```\na <answer> b\n```\nc")
    assert [kind for _, kind, _ in fenced] == ["code", "code", "text"]


@pytest.mark.parametrize(
    "text",
    ["The user\nuser\nis here", "user: is a word", "My system: good", "tool\n\nbox"],
)
def test_a_word_alone_makes_no_turn_of_an_answer(text: str) -> None:
    found = parse_stretches(f"Well.\n{text}").stretches
    assert {stretch.speaker for stretch in found} == {"assistant"}


REACT = """Thought: I look it up.
Action: search
Action Input: {"q": "capital"}
Observation: Paris
Thought: I know.
Final Answer: Paris"""


def test_the_labels_of_react() -> None:
    assert said(REACT) == [
        ("assistant", "thought", "I look it up."),
        ("assistant", "call", "search"),
        ("assistant", "call", '{"q": "capital"}'),
        ("tool", "result", "Paris"),
        ("assistant", "thought", "I know."),
        ("assistant", "answer", "Paris"),
    ]
    assert [one.turn for one in parse_stretches(REACT).stretches][-1] == 2
    numbered = "**Thought 1:** hm\n**Action 1:** Search[x]\nObservation 1: y\nAction 2: Finish[y]"
    assert [kind for _, kind, _ in said(numbered)] == [
        "thought",
        "call",
        "result",
        "call",
    ]


def test_labels_of_react_in_turns_of_a_template() -> None:
    text = (
        "<|im_start|>user\nUse this:\nThought: …\nAction: …<|im_end|>\n<|im_start|>assistant\n"
        "Thought: hm\nAction: go<|im_end|>\n<|im_start|>user\nObservation: gone<|im_end|>"
    )
    assert [(speaker, kind) for speaker, kind, _ in said(text)] == [
        ("user", "text"),
        ("assistant", "thought"),
        ("assistant", "call"),
        ("user", "text"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Observation: the sum is even.\nFinal Answer: 4",
        "Action: none",
        "Thought: hm",
        "So.\nThought: hm\nFinal Answer: 4",
        "Thoughts: a\nActions: b",
    ],
)
def test_single_labels_are_no_react(text: str) -> None:
    assert {
        stretch.speaker for stretch in parse_stretches(f"Well.\n{text}").stretches
    } == {"assistant"}
    assert {kind for _, kind, _ in said(f"Well.\n{text}")} == {"text"}


def test_who_thinks_and_answers_without_a_tool() -> None:
    kinds = [
        kind for _, kind, _ in said("Thought: 2+2\nObservation: even\nFinal Answer: 4")
    ]
    assert kinds == ["thought", "answer"]


PIECES = st.sampled_from(
    [
        *TEMPLATES.values(),
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "```\n",
        "\n```python\n",
        '\n{"name": "a", "arguments": 1}\n',
        "<answer>",
        "</s>",
        "\nuser\n",
        "Thought: ",
        "\nAction: ",
        "\n**Action Input:** ",
        "\nObservation 1: ",
        "\nFinal Answer:",
        "assistant\n\n",
        "a b",
        "汉",
        "\n",
        "<|",
    ]
)


@given(
    st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=20).map("".join)).map(
        safe
    ),
    st.sampled_from(["user", "assistant"]),
)
def test_the_stretches_joined_are_the_text(text: str, speaker: str) -> None:
    stretches = parse_stretches(text, speaker).stretches
    assert "".join(text[one.start : one.end] for one in stretches) == text
    assert all(one.start < one.end for one in stretches)
    assert [one.turn for one in stretches] == sorted(one.turn for one in stretches)


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "```\n",
        "<|im_start|>user\n",
        "<|begin_of_",
        "user\n",
        '{"name": ',
        '{"name": 1, "args": 1}\n',
        "{\n a\n",
        "<|start|>a",
        "<tool ",
        "assistant\n\n",
        "user: a\n",
        "Action: a\nObservation: b\n",
        "\nThought 1",
        " ",
    ],
)
def test_linear_in_the_text(piece: str) -> None:
    # A text against its quarter read four times: as long where the work is linear, four times as
    # long where it is quadratic. A busy machine slows each measurement, but not all of them.
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    whole = quarters = math.inf
    for _ in range(20):
        whole = min(whole, _work(text, 1))
        quarters = min(quarters, _work(text[:25_000], 4))
        if whole < 2 * quarters:
            return
    pytest.fail(f"{whole:.3f} s at once, {quarters:.3f} s in quarters")


def _work(text: str, times: int) -> float:
    """Return the processor's time for reading a text so many times."""
    start = time.thread_time()
    for _ in range(times):
        parse_stretches(text)
    return time.thread_time() - start
