"""Words are found wherever they stand, whichever part of them is looked for."""

from __future__ import annotations

import pytest

from verl_tui.sources.formats.console import events as console_events
from verl_tui.sources.formats.console import samples as console_blocks
from verl_tui.sources.formats.console import settings as console_settings
from verl_tui.sources.formats.console import stated
from verl_tui.sources.formats.console.word_search import any_of

WORDS = (
    *console_blocks.WORDS,
    *stated.WORDS,
    *console_events.WORDS,
    *console_settings.WORDS,
)


def test_each_word_is_found() -> None:
    for word in WORDS:
        assert any_of(WORDS).search(f"before {word} behind".encode())


@pytest.mark.parametrize(
    "line", [b"", b"a step like any other", b"loss 0.25 at 3 it/s", "文字".encode()]
)
def test_other_lines_are_passed_over(line: bytes) -> None:
    assert any_of(WORDS).search(line) is None


@pytest.mark.parametrize(
    "word", ["SIG", "not finite", "shutting down", "epoch ", "epo╭ch"]
)
def test_only_whole_words_are_found(word: str) -> None:
    found = any_of([word, "else"])
    assert found.search(f"a {word}".encode()) is not None
    assert found.search(word[1:].encode()) is None
    assert found.search(word[:-1].encode()) is None
