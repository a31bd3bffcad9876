"""Rows never exceed their width, and no text is lost on the way."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.rendering.text.piece import cut, fit, text_of, wrap
from verl_tui.text import safe

TEXTS = (
    st.text()
    | st.text(st.sampled_from("ab  \n好，🙂e\u0301🇩👩\u200d\ufe0f\u202e[]/"))
    | st.text("ab ", max_size=60)
)
FAMILY = "👨\u200d👩\u200d👧\u200d👦 family"


def rows(text, width):
    return list(wrap(text, width))


def test_wide_characters():
    assert rows("你好世界", 5) == ["你好", "世界"]
    assert rows("我 用用用用用用", 6) == ["我 用", "用用用", "用用"]
    assert rows("ab你好", 3) == ["ab", "你", "好"]
    assert rows("word你好", 5) == ["word", "你好"]


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("dead groups 100%", 16, "dead groups 100%"),
        ("dead groups 100%", 14, "dead groups …"),
        ("score 0.41 ± 0.49", 16, "score 0.41 ± …"),
        ("score -1.2e-05 now", 12, "score …"),
        ("step 123/200, more", 12, "step …"),
        ("100% busy", 4, "…"),
        ("run verl061_b", 11, "run verl06…"),
        ("20250612_run", 6, "20250…"),
    ],
)
def test_no_number_is_cut(text, width, short):
    assert fit(text, width) == short
    assert text_of(cut([("", ""), (text, "b")], width)) == short


def test_marks_without_end_do_not_make_a_row_without_end():
    assert max(map(len, wrap("a" + "\u0301" * 5000, 10))) <= 80


@given(TEXTS, st.integers(1, 200))
@example(FAMILY, 1)
@example("☀\ufe0f" * 20, 7)
@example("[/INST] [red]x[/red]", 5)
def test_rows_fit_even_where_nobody_made_the_text_safe(text, width):
    assert all(cell_len(row) <= width for row in wrap(text, width))


@given(TEXTS.map(safe), st.integers(2, 200))
@example(safe(FAMILY), 2)
@example("⺀ \n0", 2)
def test_nothing_is_lost(text, width):
    at = 0
    for number, row in enumerate(wrap(text, width)):
        if number and text[at : at + 1] in {" ", "\n"}:
            # the space of a break may be the last of its line
            at += 1 + (text[at : at + 2] == " \n")
        assert "\n" not in row
        assert text.startswith(row, at)
        at += len(row)
    assert text[at:] in {"", " "}  # a space at a break, with nothing after it


@pytest.mark.parametrize(
    "unit", ["word and more ", "x", "你好世界", "naïve 你好 🙂 ", "a\n", "é", "Ж🙂"]
)
@pytest.mark.parametrize("width", [20, 80, 198])
def test_long_text_is_fast(unit, width):
    text = (unit * 40_000)[:40_000]
    best = 1.0
    for _ in range(20):
        start = process_time()
        count = sum(1 for _ in wrap(text, width))
        best = min(best, process_time() - start)
        if best < 0.1:
            break
    assert count > 40_000 // (2 * width)
    assert best < 0.1  # 20 ms on a machine that does nothing else
