"""What is marked in a text, and that marks never overlap."""

from __future__ import annotations

import time

import pytest

from verl_tui.rendering.samples.speakers import REPEATED, TAG, repeated, special


def said(text, spans):
    return [text[start:end] for start, end, _ in spans]


def test_special_tokens_and_tags():
    text = "<|im_start|>user <s>[INST] x [/INST]</s><think>y</think><pad><｜end▁of▁sentence｜><tool_call><b>a < b > c"
    found = special(text)
    assert said(text, found) == [
        *(
            "<|im_start|>user",
            "<s>",
            "[INST]",
            "[/INST]",
            "</s>",
            "<think>",
            "</think>",
            "<pad>",
            "<｜end▁of▁sentence｜>",
        ),
        "<tool_call>",
    ]
    assert [text[a:b] for a, b, role in found if role == TAG] == [
        "<think>",
        "</think>",
        "<tool_call>",
    ]


def test_a_loop_is_marked_from_its_second_round_on():
    text = "So it is. the answer is 42, the answer is 42, the answer is 42, the answer is 42. Done here now."
    ((start, end, role),) = repeated(text)
    assert role == REPEATED
    assert text[start:end] == "the answer is 42, the answer is 42, the answer is 42"
    assert text[:start].endswith("the answer is 42, ")


def test_a_long_passage_counts_when_it_comes_a_second_time():
    passage = (
        "one two three four five six seven eight nine ten eleven twelve thirteen. "
    )
    assert said(passage * 2, repeated(passage * 2)) == [passage[:-2]]
    later = passage + "Something else. " + passage
    assert said(later, repeated(later)) == [passage[:-2]]
    assert repeated("one two three four. Else. " * 2) == []


@pytest.mark.parametrize(
    "text",
    [
        "ab " * 30_000,
        "ab" * 30_000,
        "abcd efgh" * 9 + "abcdabd " * 10_000,
        "汉" * 50_000,
        "a b c d e f g h i j k l m n " * 4000,
        "".join(f"{i} " for i in range(20_000)),
    ],
    ids=range(6),
)
def test_linear_in_the_text(text):
    start = time.process_time()
    repeated(text)
    special(text)
    assert time.process_time() - start < 1.0
