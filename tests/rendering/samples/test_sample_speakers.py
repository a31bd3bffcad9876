"""Who says what in a text, and in which way: chat templates, thoughts, tools, code."""

from __future__ import annotations

import math
import time

import pytest

from verl_tui.records import Sample
from verl_tui.rendering.samples.document import Document
from verl_tui.rendering.samples.speakers import parse, parse_both, turn_words
from verl_tui.rendering.text.piece import text_of


def said(text, speaker="assistant"):
    """Return speaker, kind and words of all that is no token and not blank."""
    return [
        (chunk.speaker, chunk.kind, text[chunk.start : chunk.end].strip())
        for chunk in parse(text, speaker)
        if not chunk.token and text[chunk.start : chunk.end].strip()
    ]


ASKED = [("system", "text", "Be kind."), ("user", "text", "2+2?")]
TEMPLATES = {
    "ChatML": "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n" "<|im_start|>assistant\n",
    "Phi-4": "<|im_start|>system<|im_sep|>Be kind.<|im_end|><|im_start|>user<|im_sep|>2+2?<|im_end|>"
    "<|im_start|>assistant<|im_sep|>",
    "Llama 3": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\n2+2?<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "Llama 2": "<s>[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\n2+2? [/INST]",
    "Mistral": "<s>[SYSTEM_PROMPT]Be kind.[/SYSTEM_PROMPT][INST]2+2?[/INST]",
    "Zephyr": "<|system|>\nBe kind.</s>\n<|user|>\n2+2?</s>\n<|assistant|>\n",
    "gpt-oss": "<|start|>system<|message|>Be kind.<|end|><|start|>user<|message|>2+2?<|end|>" "<|start|>assistant",
    "verl, special tokens skipped": "system\nBe kind.\nuser\n2+2?\nassistant\n",
    "verl, of Llama 3": "system\n\nBe kind.user\n\n2+2?assistant\n\n",
    "words": "system: Be kind.\n\nuser: 2+2?\n\nassistant: ",
    "R1": "System: Be kind.\nUser: 2+2?\nAssistant: <think>",
}  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_templates(template):
    assert said(template, "user") == ASKED


def test_a_thought_that_the_prompt_opened():
    _, answered = parse_both("<|im_start|>assistant\n<think>\n", "hm, no tag follows")
    assert answered[0].kind == "thought"
    assert said("hm\n</think>\n4") == [
        ("assistant", "thought", "hm"),
        ("assistant", "text", "4"),
    ]


@pytest.mark.parametrize(
    "text",
    ["The user\nuser\nis here", "user: is a word", "My system: good", "tool\n\nbox"],
)
def test_a_word_alone_makes_no_turn_of_an_answer(text):
    assert {chunk.speaker for chunk in parse(f"Well.\n{text}")} == {"assistant"}


QWEN = "system\nBe kind.\nuser\n2+2?\nassistant\n3\nuser\nNo.\nassistant\n"
CHATML = (
    "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n"
    "<|im_start|>assistant\n3<|im_end|>\n<|im_start|>user\nNo.<|im_end|>\n<|im_start|>assistant\n"
)


@pytest.mark.parametrize("prompt", [QWEN, CHATML])
def test_the_panel_names_each_speaker_once(prompt):
    document = Document(Sample(1, prompt, "4"), 80, 30, unfolds="u")
    document.grow(99)
    rows = [text_of(document.row(at)) for at in range(len(document))]
    assert sum(row.count("user") for row in rows) == 2
    assert sum(row.count("assistant") for row in rows) == 1, (
        "the last one says nothing yet"
    )
    assert any(row.startswith("     user │ 2+2?") for row in rows)


TURNS = "assistant: look\n\nuser: you see\n\nassistant: go\n\nuser: done"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("turn_scores", "[0.1,1.0]", [", score 0.1", ", score 1"]),
        ("tool_rewards", "[0,0.5]", [", reward 0", ", reward 0.5"]),
        ("turn_scores", "[0.1]", ["", ""]),
        ("turn_scores", '["a","b"]', ["", ""]),
        ("turn_scores", "[0.1,", ["", ""]),
        ("acc", 1.0, ["", ""]),
    ],
)
def test_turns_and_whose_scores_a_list_holds(field, value, expected):
    words = turn_words(parse(TURNS), {field: value})
    assert words == {0: f"turn 1 of 2{expected[0]}", 2: f"turn 2 of 2{expected[1]}"}
    assert turn_words(parse("a single turn"), {field: value}) == {}


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "</think>",
        "```\n",
        "<|im_start|>user\n",
        "<|begin_of_",
        "user\n",
        "<|start|>a",
        "<tool ",
        "assistant\n\n",
        "user: a\n",
        " ",
    ],
)
def test_linear_in_the_text(piece):
    # A text against its quarter read four times: as long where the work is linear, four times as
    # long where it is quadratic. A busy machine slows each measurement, but not all of them.
    text = (piece * (40_000 // len(piece) + 1))[:40_000]
    whole = quarters = math.inf
    for _ in range(20):
        whole = min(whole, _work(text, 1))
        quarters = min(quarters, _work(text[:10_000], 4))
        if whole < 2 * quarters:
            return
    pytest.fail(f"{whole:.3f} s at once, {quarters:.3f} s in quarters")


def _work(text, times):
    """Return the processor's time for reading a text so many times."""
    start = time.thread_time()
    for _ in range(times):
        parse(text)
    return time.thread_time() - start
