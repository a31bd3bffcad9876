"""What is marked in a text, and that marks never overlap."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.samples import marks
from verl_tui.rendering.samples.marks import MarkedSpan, over, pieces, repeated, special
from verl_tui.rendering.text.search import Search
from verl_tui.text import safe


def said(text: str, spans: list[MarkedSpan]) -> list[str]:
    return [text[start:end] for start, end, _ in spans]


def test_special_tokens_and_tags() -> None:
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
    assert [text[a:b] for a, b, role in found if role == marks.TAG] == [
        "<think>",
        "</think>",
        "<tool_call>",
    ]


def test_a_loop_is_marked_from_its_second_round_on() -> None:
    text = "So it is. the answer is 42, the answer is 42, the answer is 42, the answer is 42. Done here now."
    ((start, end, role),) = repeated(text)
    assert role == marks.REPEATED
    assert text[start:end] == "the answer is 42, the answer is 42, the answer is 42"
    assert text[:start].endswith("the answer is 42, ")


def test_a_long_passage_counts_when_it_comes_a_second_time() -> None:
    passage = (
        "one two three four five six seven eight nine ten eleven twelve thirteen. "
    )
    assert said(passage * 2, repeated(passage * 2)) == [passage[:-2]]
    # said again later is no loop
    assert repeated(passage + "Something else. " + passage) == []


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("ha ha ha ha ha ha ha ha ha", "ha ha ha ha ha ha ha ha"),
        ("no aaaaaaaaaa", "aaaaaaaaaa"),
        ("well!!!!!!!!!!!!!!!!", "!!!!!!!!!!!!!!!!"),
        ("he saysaysaysaysaysaysaysaysaysay it", "saysaysaysaysaysaysaysaysaysay"),
        ("0 is " + "0" * 40, "0" * 40),
        ("对不起对不起对不起对不起", "对不起对不起对不起"),
    ],
)
def test_other_loops(text: str, again: str) -> None:
    assert said(text, repeated(text)) == [again]


@pytest.mark.parametrize(
    "text",
    [
        "There are 10 apples. There are 12 pears. There are 10 + 12 = 22 in all.",
        "----------------------------------------",
        "=" * 40,
        "1000000000000000",
        "x + 1 = 2, so x = 1",
        "",
    ],
)
def test_what_is_said_once_is_not_marked(text: str) -> None:
    assert repeated(text) == []


def test_a_loop_within_a_passage_does_not_hide_the_loop_of_passages() -> None:
    passage = "a b c x a b c y "
    assert said(passage * 4, repeated(passage * 4)) == [(passage * 3).strip()]


@pytest.mark.parametrize(
    "text",
    [
        "ab " * 60_000,
        "ab" * 60_000,
        "abcd efgh" * 9 + "abcdabd " * 20_000,
        "汉" * 100_000,
        "a b c d e f g h i j k l m n " * 8000,
        "".join(f"{i} " for i in range(40_000)),
    ],
    ids=range(6),
)
def test_linear_in_the_text(text: str) -> None:
    start = time.process_time()
    repeated(text)
    special(text)
    assert time.process_time() - start < 2.0


SPANS = st.lists(st.integers(0, 40), max_size=12).map(
    lambda ends: [
        (a, b, "x")
        for a, b in zip(sorted(set(ends))[::2], sorted(set(ends))[1::2], strict=False)
    ]
)


@given(SPANS, SPANS)
def test_marks_over_marks(lower: list[MarkedSpan], upper: list[MarkedSpan]) -> None:
    upper = [(a, b, "y") for a, b, _ in upper]
    result = over(lower, upper)
    assert all(a < b for a, b, _ in result)
    assert all(one[1] <= other[0] for one, other in pairwise(result))

    def at(spans: list[MarkedSpan]) -> dict[int, str]:
        return {i: role for a, b, role in spans for i in range(a, b)}

    assert at(result) == {**at(lower), **at(upper)}


@given(
    st.text(alphabet="ab <|>/s\n汉", max_size=60).map(safe),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_pieces_are_the_text(text: str, start: int, end: int) -> None:
    start, end = sorted((min(start, len(text)), min(end, len(text))))
    spans = over(
        over(repeated(text), special(text)),
        marks.hits(text, [Search("a+"), Search("b", literal=True)]),
    )
    row = pieces(text, start, end, spans, "plain")
    assert "".join(words for words, _ in row) == text[start:end]
    roles = {i: role for a, b, role in spans for i in range(a, b)}
    at = start
    for words, role in row:
        assert words
        assert {roles.get(i, "plain") for i in range(at, at + len(words))} == {role}
        at += len(words)


def test_hits_of_several_searches_over_one_another_are_one() -> None:
    assert marks.hits("abcd", [Search("abc"), Search("bcd"), Search("d")]) == [
        (0, 4, marks.HIT)
    ]
