"""Foreign text at the door."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from wcwidth import wcwidth

from verl_tui.text import safe


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("well done 👍🏽", "well done 👍"),
        ("🏽", ""),
        ("🇩🇪 and 🇯🇵", "DE and JP"),
        ("👩\u200d👧", "👩👧"),
        ("☀\ufe0f", "☀"),
    ],
)
def test_signs_whose_width_terminals_disagree_about(text: str, expected: str) -> None:
    assert safe(text) == expected
    # Some terminals add up the widths of all characters, others know what belongs together.
    assert cell_len(safe(text)) == sum(map(wcwidth, safe(text)))
