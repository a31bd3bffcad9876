"""Words are found wherever they stand, whichever part of them is looked for."""

from __future__ import annotations

import pytest

from verl_tui.sources.formats.console import dicts as console_dicts
from verl_tui.sources.formats.console import events as console_events
from verl_tui.sources.formats.console import sample_blocks as console_blocks
from verl_tui.sources.formats.console import settings_reader as console_settings
from verl_tui.sources.formats.console.word_search import any_of

WORDS = (
    *console_blocks.WORDS,
    *console_dicts.WORDS,
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


def test_short_words_are_looked_for_as_a_whole() -> None:
    assert any_of(["SIG"]).search(b"a SIG") is not None
    assert any_of(["SIG"]).search(b"GIS") is None
