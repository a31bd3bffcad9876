"""What the line that a filter is typed into says."""

from __future__ import annotations

import pytest

from verl_tui.rendering.filter_words import Matches, filter_state


@pytest.mark.parametrize(
    ("width", "says"),
    [
        (62, "2 of 3 runs, 12 of 93 metrics · enter keeps it · esc clears it"),
        (45, "2 of 3 runs, 12 of 93 metrics · esc clears it"),
        (20, "esc clears it"),
        (5, "esc"),
        (2, ""),
    ],
)
def test_it_says_how_much_matches_and_how_to_leave_as_far_as_there_is_room(
    width: int, says: str
) -> None:
    matches = {"runs": Matches(2, 3), "metrics": Matches(12, 93)}
    assert filter_state("kl", matches, width, ascii_only=False) == says
