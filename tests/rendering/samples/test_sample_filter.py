"""The filter language, searches that cannot hang, and orders."""

from __future__ import annotations

import time
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.records import SampleFacts
from verl_tui.rendering.samples import query, sample_order
from verl_tui.rendering.samples.query import SampleQuery, parse_query
from verl_tui.rendering.samples.sample_order import Fields, SampleOrder, choices
from verl_tui.rendering.text.search import Search


def fact(index: int = 0, score: float | None = None, **more: Any) -> SampleFacts:
    known = {"group": None, "length": 0, "numbers": {}, "validation": False, **more}
    return SampleFacts(index, score, **known)


# -- searches --------------------------------------------------------------------------------------


def found(expression: str, text: str, **options: bool) -> list[str]:
    return [text[start:end] for start, end in Search(expression, **options).hits(text)]


def test_searches_line_by_line() -> None:
    assert found(r"\d+", "a 12\nb 3") == ["12", "3"]
    assert found("^b.*", "a\nb c\nb d") == ["b c", "b d"]
    assert found("a.b", "a\nb") == []
    assert found("a.b", "a.b axb", literal=True) == ["a.b"]
    assert found("x*", "axxa") == ["xx"]  # empty hits are none


def test_capitals_count_where_there_are_some() -> None:
    assert found("the", "The the") == ["The", "the"]
    assert found("The", "The the") == ["The"]
    assert found(r"\Sx", "AX bx") == ["AX", "bx"]  # the S of an escape is no capital
    assert found("A(", "A( a(", literal=True) == ["A("]


@pytest.mark.parametrize(
    "expression",
    ["(", "[a", "*a", "a{99999999999999999999}", r"\1"],
)
def test_what_is_no_expression_is_said(expression: str) -> None:
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
def test_exponential_expressions_end(expression: str) -> None:
    search = Search(expression)
    start = time.process_time()
    for text in ("a" * 40_000 + "!", "aaaaaaaa,\n" * 2000, "1," * 20_000):
        search.search(text)
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize(
    "expression",
    [
        r"(\d{1,3}\.){3}\d+",
        "foo|bar|baz|a|b|c|d|e|f|g|h",
        r"\\boxed\{.*?\}",
        "[(|)*+]+",
        "(?P<n>a+)b",
        "(?i:x)+",
        "a(?#b+)c*",
    ],
)
def test_usual_expressions_are_understood(expression: str) -> None:
    search = Search(expression)
    assert not search.search("~")


HARD = [
    "a" * 40_000,
    "汉字" * 20_000,
    "the answer is 42. " * 2000,
    "x = 1\n" * 6000,
    " " * 40_000,
    "ab" * 20_000,
]


@pytest.mark.parametrize(
    "expression",
    [
        ".*a.*b",
        ".*.*.*.*b",
        r"(.)\1{20,}",
        "a*a*a*a*a*a*a*a*b",
        r"(a*)\1\1b",
        "(?=a*a*a*b)",
        ".*",
        r"\S+",
    ],
)
def test_no_search_hangs(expression: str) -> None:
    search = Search(expression)
    for text in HARD:
        start = time.process_time()
        for _ in search.hits(text):
            pass
        assert time.process_time() - start < 2.0


def test_what_is_given_up_is_reported() -> None:
    search = Search(".*a.*a.*a.*b")
    assert not search.search("short aaa")
    assert not search.given_up
    assert not search.search("a" * 40_000)
    assert search.given_up
    assert search.search("a" * 40_000 + "\naaab")  # the other lines are searched


@given(
    st.text(alphabet="ab()[]{}|*+?.\\^$0123,:=!<P>i-# \n", max_size=12),
    st.text(alphabet="ab01 \n", max_size=200),
)
def test_any_expression_is_searched_or_refused(expression: str, text: str) -> None:
    try:
        search = Search(expression)
    except ValueError:
        return
    for start, end in search.hits(text):
        assert 0 <= start < end <= len(text)


# -- filters ---------------------------------------------------------------------------------------


def passes(text: str, one: SampleFacts) -> bool:
    return parse_query(text).holds(one)


def test_numbers_are_compared() -> None:
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


def test_what_is_no_number() -> None:
    assert passes("score=nan", fact(score=nan))
    assert not passes("score=nan", fact(score=1.0))
    assert passes("score!=nan", fact(score=1.0))
    assert not passes("score>0", fact(score=nan))
    assert passes("score>1e300", fact(score=inf))
    assert not passes("score<1", fact())


def test_groups() -> None:
    assert passes("group:abc", fact(group="xx-abc-1"))
    assert not passes("group:abc", fact(group="xyz"))
    assert not passes("group:abc", fact())
    assert passes("group:", fact())


def test_texts() -> None:
    def has(text: str, *texts: str) -> bool:
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


def test_what_cannot_be_understood_is_said() -> None:
    for text in ("acc=much", "score>", "(", "/(/", "score>0 [a"):
        with pytest.raises(ValueError, match=r".+"):
            parse_query(text)
    assert parse_query("no=1 score>0 len>0 acc=1").unknown(["acc"]) == ("no",)
    assert not parse_query("  ")
    assert parse_query(" a ") == parse_query("a")
    assert not SampleQuery().unknown([])


@given(st.text(max_size=40), st.none() | st.floats(), st.text(max_size=5))
def test_any_filter_is_understood_or_refused(
    text: str, score: float | None, group: str
) -> None:
    try:
        wanted = parse_query(text)
    except ValueError:
        return
    assert wanted.holds(fact(score=score, group=group)) in (True, False)
    assert wanted.found(["a text", text]) in (True, False)


def test_the_help_tells_the_truth() -> None:
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
        (
            "score",
            [5, 0, 4, 2, 1, 3],
            [2, 0, 4, 5, 1, 3],
        ),  # those without a score last, ties as in the file
        ("length", [0, 3, 1, 4, 2, 5], [2, 5, 1, 4, 0, 3]),
        ("group", [0, 2, 4, 1, 3, 5], [1, 3, 5, 0, 2, 4]),
        ("acc", [1, 2, 3, 4, 5, 0], [5, 4, 3, 2, 1, 0]),
        ("nothing", [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_orders(by: str, up: list[int], down: list[int]) -> None:
    assert SampleOrder(by).sort(FACTS) == up
    assert SampleOrder(by, down=True).sort(FACTS) == down


def test_fields_are_looked_at_once_and_keep_their_order() -> None:
    fields = Fields()
    fields.read(FACTS[:1])
    assert not fields.names
    fields.read([*FACTS, fact(6, numbers={"z": 1.0, "acc": 2.0, "b": 3.0})])
    assert list(fields.names) == ["acc", "z", "b"]
    assert choices(fields.names) == (
        "file",
        "score",
        "length",
        "group",
        "acc",
        "z",
        "b",
    )
    assert choices(["score", "length"]) == ("file", "score", "length", "group")
    assert sample_order.FILE == "file"
