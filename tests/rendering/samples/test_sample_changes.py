"""An early and a late answer side by side."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.rendering.samples.changed_words import Side, change_rows, changed_words
from verl_tui.text import safe


def side(text: str) -> Side:
    return Side([("step 1  ", "strong"), ("✓ 1", "good")], text)


def test_words_that_changed() -> None:
    first, second = "I think it may be 48 + 26.", "I know it is 48 + 24."
    gone, come = changed_words(first, second)
    assert [first[a:b] for a, b in gone] == ["think", "may be", "26"]
    assert [second[a:b] for a, b in come] == ["know", "is", "24"]
    assert changed_words("same", "same") == ([], [])


def test_side_by_side_and_one_after_the_other() -> None:
    rows = change_rows(side("so it is"), side("so it was\nfor long"), 61)
    assert ["".join(text for text, _ in row) for row in rows] == [
        f"{'step 1  ✓ 1':29} │ step 1  ✓ 1",
        f"{'so it is':29} │ so it was",
        f"{'':29} │ for long",
    ]
    assert ("is", "differs") in rows[1]
    rows = change_rows(side("so it is"), side(""), 40, ascii_only=True)
    assert ["".join(text for text, _ in row) for row in rows][1:] == [
        *("so it is", "", "step 1  ✓ 1", "(empty)"),
    ]


TEXTS = st.text(alphabet="ab c\n.汉<think>", max_size=80).map(safe)


@given(TEXTS, TEXTS, st.integers(1, 120), st.booleans())
def test_everything_fits(first: str, second: str, width: int, ascii_only: bool) -> None:
    for row in change_rows(side(first), side(second), width, ascii_only=ascii_only):
        assert cell_len("".join(text for text, _ in row)) <= max(width, 2)


@pytest.mark.parametrize("word", ["a ", "a b c d ", "x y ", "! "])
def test_loops_take_bounded_time(word: str) -> None:
    start = time.process_time()
    changed_words((word * 8000)[:8000], (word * 8000)[:7998])
    assert time.process_time() - start < 10.0
