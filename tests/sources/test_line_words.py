"""Words are found wherever they stand, whichever part of them is looked for."""

from __future__ import annotations

import pytest

from verl_tui.sources.formats.console import line_parts as console_events
from verl_tui.sources.formats.console import samples as console_blocks
from verl_tui.sources.formats.console import settings as console_settings
from verl_tui.sources.formats.console.line_parts import any_of

WORDS = (
    *console_blocks.WORDS,
    *console_events.STATED,
    *console_events.WORDS,
    *console_settings.WORDS,
)


@pytest.mark.parametrize(
    "line", [b"", b"a step like any other", b"loss 0.25 at 3 it/s", "文字".encode()]
)
def test_other_lines_are_passed_over(line: bytes) -> None:
    assert any_of(WORDS).search(line) is None
