"""How much a text repeats itself."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.repetition import entropy, repetition, tokens

ENGLISH = "First we add the two numbers, which gives twelve. Then we halve the sum and find that the answer is six. "
CHINESE = "首先把两个数相加，得到十二，然后再除以二，所以最后的答案就是六，这与题目的条件完全一致。"


def repeated(text: str) -> float:
    words = tokens(text)
    return repetition(text, words, Counter(pairwise(words)))


def entropy_of(words: list[str]) -> float | None:
    return entropy(Counter(pairwise(words)), len(words) - 1)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        (ENGLISH, 0.0, 0.1),
        (CHINESE, 0.0, 0.1),
        (ENGLISH + CHINESE, 0.0, 0.1),
        ("| 1000000 | ---------- | 0000 |\n" * 2, 0.0, 0.6),
        ("-" * 80 + "=" * 80 + " 100000000", 0.0, 0.0),
        ("", 0.0, 0.0),
        ("yes", 0.0, 0.0),
        ("这个这个问题这个问题这个这个问题", 0.6, 1.0),
        ("这个问题" * 50, 0.9, 1.0),
        ("ありがとう" * 30, 0.9, 1.0),
        ("aaaaa bbbbb ccccc", 0.85, 1.0),
        ("!" * 400, 0.99, 1.0),
        ("Sure. " + "!" * 394, 0.9, 1.0),
        ("! " * 200, 0.95, 1.0),
        ("。" * 60, 0.99, 1.0),
        ("0" * 300, 0.99, 1.0),
        ("\n" * 200, 0.99, 1.0),
        ("-" * 400, 0.99, 1.0),
        ("saysaysay" * 30, 0.9, 1.0),
        ("so it is " + "ab" * 150, 0.9, 1.0),
        ("?!" * 100, 0.9, 1.0),
        ("assistant" * 40, 0.9, 1.0),
        ("Great!!! Really??? Yes... ", 0.0, 0.0),
        ("10 to the 15 is 1000000000000000 and 1/7 is 0.142857142857142857", 0.0, 0.2),
        ("def f():\n    return 1\n\n\n\n" + " " * 40 + "# the end", 0.0, 0.0),
        ("| a | b | c | d | e |\n| --- | --- | --- | --- | --- |\n| 1 | 2 | 3 | 4 | 5 |\n", 0.0, 0.0),
        ("Contents " + "." * 70 + " 3\n" + "-+-+" * 10, 0.0, 0.0),
        ("ACGTTGCAACGTAGCTAGGATCCATGCAGTACGGTACCATGGCAATCGATTGCAGGCTA", 0.0, 0.0),
        ("the the the the the the", 0.7, 1.0),
        (ENGLISH * 20, 0.9, 1.0),
        (CHINESE * 20, 0.9, 1.0),
    ],
)  # fmt: skip
def test_repetition(text, low, high):
    assert low <= repeated(text) <= high


@given(st.text(), st.integers(1, 50))
def test_everything_stays_a_share(text, times):
    text *= times
    assert 0.0 <= repeated(text) <= 1.0
    share = entropy_of(tokens(text))
    assert share is None or -1e-9 <= share <= 1.0 + 1e-9


@pytest.mark.parametrize("count", range(20, 60))
def test_what_is_the_same_throughout_has_no_entropy(count):
    assert entropy_of(["s"] * count) == 0.0
