"""How the rows of the dashboard are divided among its panels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.dashboard_rows import (
    FRAME,
    rows_of_panels,
)

SIZES = {
    "220x60": 58,
    "140x45": 43,
    "100x30": 28,
    "80x24": 22,
    "60x20": 18,
    "40x12": 11,
    "30x50": 49,
}
"""Rows that each size leaves to panels."""
STATES: dict[str, dict[str, int]] = {
    "nothing yet": {"health": 1, "gpus": 1, "samples": 1},
    "healthy": {"health": 1, "gpus": 1, "samples": 12},
    "crashed": {"health": 2, "gpus": 1, "samples": 1},
    "eight findings": {"health": 26, "gpus": 1, "samples": 1},
    "a node": {"health": 1, "gpus": 8, "samples": 14},
    "eight nodes": {"health": 9, "gpus": 40, "samples": 70},
    "three runs": {"runs": 4, "health": 2, "gpus": 1, "samples": 1},
    "a strip of runs": {"runs": 1, "health": 6, "gpus": 1, "samples": 9},
    "forty runs": {"runs": 41, "health": 6, "gpus": 2, "samples": 1},
    "all at once": {"runs": 60, "health": 60, "gpus": 60, "samples": 60},
}
NEEDS = st.dictionaries(
    st.sampled_from(["runs", "health", "gpus", "samples"]),
    st.integers(1, 200),
    max_size=4,
)


def test_no_panel_is_a_third_empty_while_another_is_cut() -> None:
    for size, rows in SIZES.items():
        for state, needs in STATES.items():
            divided = rows_of_panels(rows, needs, frames=rows >= 18)
            for name, one in divided.items():
                inner = one.height - FRAME * one.framed
                assert inner >= 1, (size, state)
                assert inner <= needs[name], (
                    "no row is empty: the charts have more to show"
                )


@given(rows=st.integers(1, 120), needs=NEEDS, frames=st.booleans())
def test_the_charts_keep_their_share(
    rows: int, needs: dict[str, int], *, frames: bool
) -> None:
    divided = rows_of_panels(rows, needs, frames=frames)
    taken = sum(one.height for one in divided.values())
    assert taken <= max(rows * 0.6, len(needs))
    assert all(1 <= one.height <= needs[name] + FRAME for name, one in divided.items())
