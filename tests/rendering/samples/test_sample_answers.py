r"""Answers in a response, and what is the same as the ground truth."""

from __future__ import annotations

import time

import pytest

from verl_tui.records import Sample
from verl_tui.rendering.samples.answers import (
    compare_answers,
    final_answer,
    find_answers,
    truth_text,
)
from verl_tui.rendering.samples.speakers import parse
from verl_tui.text import safe


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"so \boxed{41}, no: $\boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
        ("It is 18.\n#### 18", "18"),
        ("The answer is $####18$.", "18"),
        ("#### Step 1: add\n#### yes\n", "yes"),
        ("<think>\\boxed{1}</think> <answer> 2 </answer>", "2"),
        (r"<think>\boxed{1}</think> never said", "1"),
        (r"<answer>it is \boxed{3}</answer>", "3"),
        ("**Final answer:** 1,000", "1,000"),
        ("Answer: B", "B"),
        ("#### 18 #### #### 17 #### #### ", "17"),
        ("#### Step 1: add\nmore", None),
        (r"open \boxed{41", None),
        ("nothing", None),
        ("```\n#### 7\n```", None),
    ],
)
def test_answers(text, expected):
    assert final_answer(text, parse(text)) == (expected or "")


@pytest.mark.parametrize(
    ("given_answer", "truth", "expected"),
    [
        ("42", "42", "agrees"),
        ("1,000", "1000", "agrees as a number (heuristic)"),
        ("1000.0", "1,000", "agrees as a number (heuristic)"),
        ("$18", "18", "agrees but for the writing (heuristic)"),
        ("1e3", "1000", "agrees as a number (heuristic)"),
        (r"\frac{1}{2}", "0.5", "agrees as a number (heuristic)"),
        (r"\dfrac12", "1/2", "agrees as a number (heuristic)"),
        ("-0.5", "-1/2", "agrees as a number (heuristic)"),
        (r"\text{Paris}.", "paris", "agrees but for the writing (heuristic)"),
        (r"x + 1", "$x+1$", "agrees but for the writing (heuristic)"),
        ("41", "42", "differs"),
        ("50%", "50", "differs"),
        ("1,00", "100", "differs"),
        ("1/0", "1/0", "agrees"),
        ("18 dollars", "18", "differs"),
        ("he", '{"target": ["she", "he"]}', "agrees"),
        ("18", "They sum to 18.\n#### 18", "agrees"),
        ("3", r"We find $\boxed{3}$.", "agrees"),
        ("18", "18.0", "agrees as a number (heuristic)"),
    ],
)
def test_comparisons(given_answer, truth, expected):
    assert compare_answers(given_answer, truth)[1] == expected


def test_the_extracted_answer_goes_first():
    sample = Sample(1, "p", r"\boxed{42}", ground_truth="42", extras={"pred": "4"})
    text, marks = truth_text(sample, parse(sample.response))
    assert text == "42 · pred 4 differs"
    assert [text[a:b] for a, b, role in marks if role == "differs"] == ["42", "4"]
    own = truth_text(sample._replace(extras={}), parse(sample.response))
    assert own[0] == "42 · the answer agrees"


@pytest.mark.parametrize(
    "piece", [r"\boxed{", "}", "{", r"\boxed{1}", "#### 1\n", "answer: ", "#"]
)
def test_linear_in_the_text(piece):
    text = safe((piece * 125_000)[:125_000])
    chunks = parse(text)
    start = time.process_time()
    find_answers(text, chunks)
    # below 0.5 s where it is linear, above 2.5 s where not
    assert time.process_time() - start < 1.5
