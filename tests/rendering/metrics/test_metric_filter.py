"""The filter language of the metrics screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.metrics.filter import HELP, MetricFilter, parse_filter

KEYS = (
    "actor/kl_loss",
    "actor/entropy",
    "critic/kl",
    "critic/score/max",
    "critic/score/mean",
    "timing_s/gen",
    "Loss",
)


def found(text: str) -> list[str]:
    wanted = parse_filter(text)
    return [key for key in KEYS if wanted.holds(key)]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", list(KEYS)),
        ("   ", list(KEYS)),
        ("kl", ["actor/kl_loss", "critic/kl"]),
        ("actor kl", ["actor/kl_loss"]),
        ("critic kl|max", ["critic/kl", "critic/score/max"]),
        ("kl | gen", ["actor/kl_loss", "critic/kl", "timing_s/gen"]),
        ("kl |gen !actor", ["critic/kl", "timing_s/gen"]),
        ("!critic !actor", ["timing_s/gen", "Loss"]),
        ("critic !max|mean", ["critic/kl", "critic/score/mean"]),
        ("/^critic/", ["critic/kl", "critic/score/max", "critic/score/mean"]),
        ("/score/m.*n$/", ["critic/score/mean"]),
        (r"/score\/max/", ["critic/score/max"]),
        ("!/^critic|^actor/", ["timing_s/gen", "Loss"]),
        ("/max$|gen/", ["critic/score/max", "timing_s/gen"]),
        ("/max$/|/gen$/", ["critic/score/max", "timing_s/gen"]),
        ("/^crit", ["critic/kl", "critic/score/max", "critic/score/mean"]),
        ("loss", ["actor/kl_loss", "Loss"]),
        ("Loss", ["Loss"]),
        ("score/max", ["critic/score/max"]),
        ("a.*r", []),
        ("nothing", []),
    ],
)
def test_what_it_finds(text: str, keys: list[str]) -> None:
    assert found(text) == keys


@pytest.mark.parametrize(
    "text",
    [
        "|",
        "| |",
        "!",
        "!!",
        "kl |",
        "| kl",
        "kl !",
        "kl | !",
        "kl||",
        "kl  ",
        "kl /",
        "kl /(",
        "kl !/[",
    ],
)
def test_what_is_not_finished_yet_asks_for_nothing(text: str) -> None:
    assert found(text) == (found("kl") if "kl" in text else list(KEYS))


def test_labels_count_too() -> None:
    assert parse_filter("reward").holds("critic/score/mean", "reward")
    assert not parse_filter("!reward").holds("critic/score/mean", "reward")
    assert parse_filter("/^reward$/").holds("critic/score/mean", "reward")


@pytest.mark.parametrize("text", ["/(/", "kl /[/", "!/*/"])
def test_says_what_is_wrong_with_an_expression(text: str) -> None:
    with pytest.raises(ValueError, match="/"):
        parse_filter(text)


@given(st.text(alphabet="ab/|! ()*[\\^.", max_size=20))
def test_any_text_is_a_filter_or_a_message(text: str) -> None:
    try:
        wanted = parse_filter(text)
    except ValueError:
        return  # what its message says is tested above
    assert isinstance(wanted, MetricFilter)
    assert wanted.holds("a/b") in (True, False)


@given(
    st.lists(
        st.sampled_from(["kl", "actor", "score", "gen", "max"]), min_size=1, max_size=4
    )
)
def test_words_narrow_and_bars_widen(words: list[str]) -> None:
    alone = [set(found(word)) for word in words]
    assert set(found(" ".join(words))) == set.intersection(*alone)
    assert set(found("|".join(words))) == set.union(*alone)


def test_the_help_tells_what_holds() -> None:
    examples = [line.split("  ")[0] for line in HELP[1:-1]]
    assert examples == ["actor kl", "critic kl|loss", "!max", "/^val.*acc/"]
    for example in examples:
        parse_filter(example)
