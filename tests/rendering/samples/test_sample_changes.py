"""An early and a late answer side by side."""

from __future__ import annotations

import time

import pytest

from verl_tui.rendering.samples.answers import changed_words


def test_words_that_changed():
    first, second = "I think it may be 48 + 26.", "I know it is 48 + 24."
    gone, come = changed_words(first, second)
    assert [first[a:b] for a, b in gone] == ["think", "may be", "26"]
    assert [second[a:b] for a, b in come] == ["know", "is", "24"]
    assert changed_words("same", "same") == ([], [])


@pytest.mark.parametrize("word", ["a ", "a b c d ", "x y ", "! "])
def test_loops_take_bounded_time(word):
    start = time.process_time()
    changed_words((word * 8000)[:8000], (word * 8000)[:7998])
    assert time.process_time() - start < 10.0
