"""The filter language of the metrics screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.metrics.listing import MetricFilter, parse_filter

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
def test_what_it_finds(text, keys):
    assert found(text) == keys


@pytest.mark.parametrize("text", ["/(/", "kl /[/", "!/*/"])
def test_says_what_is_wrong_with_an_expression(text):
    with pytest.raises(ValueError, match="/"):
        parse_filter(text)


@given(st.text(alphabet="ab/|! ()*[\\^.", max_size=20))
def test_any_text_is_a_filter_or_a_message(text):
    try:
        wanted = parse_filter(text)
    except ValueError:
        return  # what its message says is tested above
    assert isinstance(wanted, MetricFilter)
    assert wanted.holds("a/b") in (True, False)
