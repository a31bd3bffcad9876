"""Who says what in a text, and in which way: chat templates, thoughts, tools, code."""

from __future__ import annotations

import math
import time

import pytest

from verl_tui.rendering.samples.speaker_stretches import parse_both, parse_stretches


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
