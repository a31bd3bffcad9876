"""What the line that a filter is typed into says."""

from __future__ import annotations

import pytest

from verl_tui.rendering.filter_words import Matches, filter_label, filter_state


def test_the_label_names_what_is_filtered() -> None:
    assert filter_label(("runs",)) == "filter runs: "
    assert filter_label(("runs", "metrics")) == "filter runs and metrics: "


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


def test_a_filter_that_matches_nothing_says_so() -> None:
    nothing = {"runs": Matches(0, 3), "metrics": Matches(0, 93)}
    assert filter_state("zzz", nothing, 80, ascii_only=True) == (
        "nothing matches - enter keeps it - esc clears it"
    )
    some = {"runs": Matches(0, 3), "metrics": Matches(1, 93)}
    assert (
        filter_state("kl", some, 31, ascii_only=False)
        == "1 of 93 metrics · esc clears it"
    )


def test_before_anything_is_typed_it_only_says_how_to_leave() -> None:
    assert (
        filter_state(" ", {"runs": Matches(3, 3)}, 80, ascii_only=False) == "esc leaves"
    )
