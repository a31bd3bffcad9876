"""The filter language, searches that cannot hang, and orders."""

from __future__ import annotations

import time
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.records import SampleFacts
from verl_tui.rendering.samples import query
from verl_tui.rendering.samples.query import (
    SampleOrder,
    SampleQuery,
    number_groups,
    parse_query,
)
from verl_tui.rendering.text.search import Search


def fact(index=0, score=None, **more):
    known = {"group": None, "length": 0, "numbers": {}, "validation": False, **more}
    return SampleFacts(index, score, **known)


# -- searches --------------------------------------------------------------------------------------


def found(expression, text, **options):
    return [text[start:end] for start, end in Search(expression, **options).hits(text)]


@pytest.mark.parametrize(
    "expression", ["(", "[a", "*a", "a{99999999999999999999}", r"\1"]
)
def test_what_is_no_expression_is_said(expression):
    with pytest.raises(ValueError, match="/"):
        Search(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "(a+)+$",
        "(a|aa)+$",
        "(?:a*)*b",
        "(a?){50}",
        "((a{1,2}){4}){4}",
        "(.*,){11}P",
        "a*" * 9 + "b",
        "a?" * 30,
    ],
)
def test_exponential_expressions_end(expression):
    search = Search(expression)
    start = time.process_time()
    for text in ("a" * 40_000 + "!", "aaaaaaaa,\n" * 2000, "1," * 20_000):
        search.search(text)
    assert time.process_time() - start < 2.0


@given(
    st.text(alphabet="ab()[]{}|*+?.\\^$0123,:=!<P>i-# \n", max_size=12),
    st.text(alphabet="ab01 \n", max_size=200),
)
def test_any_expression_is_searched_or_refused(expression, text):
    try:
        search = Search(expression)
    except ValueError:
        return
    for start, end in search.hits(text):
        assert 0 <= start < end <= len(text)


# -- filters ---------------------------------------------------------------------------------------


def passes(text, one):
    return parse_query(text).holds(one)


def test_numbers_are_compared():
    one = fact(score=0.5, length=2000, numbers={"acc": 1.0, "reward/kl": -0.25})
    for text in (
        "score>0.4",
        "score>=.5",
        "score<=0.5",
        "acc=1",
        "acc==1",
        "acc!=0",
        "len>=2000",
        "length<1e4",
        "reward/kl<0",
    ):
        assert passes(text, one), text
    for text in ("score>0.5", "acc=0", "len>2000", "missing=0", "missing!=0"):
        assert not passes(text, one), text
    assert passes("score>0.4 acc=1", one)
    assert not passes("score>0.4 acc=0", one)


def test_texts():
    def has(text, *texts):
        return parse_query(text).found(texts)

    assert has("apple", "an Apple", "")
    assert has("apple pear", "an apple", "a pear")  # each somewhere
    assert not has("apple pear", "an apple")
    assert has("/an apple/", "an apple")
    assert not has('"a.b"', "axb")
    assert has('"a (b"', "say a (b")
    assert has(r"/a\/b/", "a/b")
    assert has('score>1 "score>1"', "that score>1")
    assert has("", "anything")


def test_what_cannot_be_understood_is_said():
    for text in ("acc=much", "score>", "(", "/(/", "score>0 [a"):
        with pytest.raises(ValueError, match=r".+"):
            parse_query(text)
    assert parse_query("no=1 score>0 len>0 acc=1").unknown(["acc"]) == ["no"]
    assert not parse_query("  ")
    assert parse_query(" a ") == parse_query("a")
    assert not SampleQuery().unknown([])


@given(st.text(max_size=40), st.none() | st.floats(), st.text(max_size=5))
def test_any_filter_is_understood_or_refused(text, score, group):
    try:
        wanted = parse_query(text)
    except ValueError:
        return
    assert wanted.holds(fact(score=score, group=group)) in (True, False)
    assert wanted.found(["a text", text]) in (True, False)


def test_the_help_tells_the_truth():
    examples = [line.split("   ")[0] for line in query.HELP if line[0] in 'sgb"']
    assert len(examples) == 4
    for line in examples:
        assert parse_query(line)


# -- orders ----------------------------------------------------------------------------------------

SCORES = [0.5, None, 1.0, nan, 0.5, -inf]
FACTS = [
    fact(
        i,
        score,
        group="ba"[i % 2],
        length=i % 3,
        numbers={"acc": float(i)} if i else {},
    )
    for i, score in enumerate(SCORES)
]


@pytest.mark.parametrize(
    ("by", "up", "down"),
    [
        ("file", [0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]),
        ("score", [5, 0, 4, 2, 1, 3], [2, 0, 4, 5, 1, 3]),  # those without a score last, ties as in the file
        ("length", [0, 3, 1, 4, 2, 5], [2, 5, 1, 4, 0, 3]),
        ("group", [0, 2, 4, 1, 3, 5], [1, 3, 5, 0, 2, 4]),
        ("acc", [1, 2, 3, 4, 5, 0], [5, 4, 3, 2, 1, 0]),
        ("nothing", [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
    ],
)  # fmt: skip
def test_orders(by, up, down):
    assert SampleOrder(by).sort(FACTS, number_groups(FACTS)) == up
    assert SampleOrder(by, down=True).sort(FACTS, number_groups(FACTS)) == down
