"""Lines of a console without information are recognised by their words, whatever numbers they have."""

from __future__ import annotations

import pytest
from test_line_words import WORDS

from verl_tui.sources.formats.console.silent_lines import Noise

SILENT = b"\x1b[36m(WorkerDict pid=20311)\x1b[0m INFO 11-23 10:00:07 [pool.py:378] reset the cache"


def test_what_no_reader_looks_for_says_nothing() -> None:
    noise = Noise()
    assert noise.date(SILENT) is False
    assert noise.date(SILENT.replace(b"7", b"8")) is False
    assert noise.date(b"2026-11-23 10:00:07 " + SILENT)


@pytest.mark.parametrize("word", [*WORDS, "step:", "[prompt]", "╭", "a\rb"])
def test_a_word_that_a_reader_looks_for_is_no_noise(word: str) -> None:
    noise = Noise()
    assert noise.date(SILENT) is False
    assert noise.date(SILENT + word.encode()) is None
    coloured = b"\x1b[31m".join(word[at : at + 1].encode() for at in range(99))
    assert noise.date(SILENT + coloured) is None


def test_long_lines_are_read() -> None:
    assert Noise().date(b"x" * 1000) is None
