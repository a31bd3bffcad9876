"""How the rows of the dashboard are divided among its panels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.dashboard_rows import (
    FRAME,
    PanelNeeds,
    divided,
    has_column,
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


def test_what_charts_leave_that_are_rows_goes_to_the_samples() -> None:
    needs = {"health": 1, "samples": 60}
    usual = rows_of_panels(43, needs)
    assert (
        rows_of_panels(43, {**needs, "charts": 4})["samples"].height
        == 43 - 4 - FRAME - 1
    )
    assert rows_of_panels(43, {**needs, "charts": 200}) == usual
    assert (
        rows_of_panels(43, {"samples": 9, "charts": 4})["samples"].height == 9 + FRAME
    )


@given(st.integers(1, 120), NEEDS)
def test_a_sentence_has_no_frame_and_little_room_none_either(
    rows: int, needs: dict[str, int]
) -> None:
    for name, one in rows_of_panels(rows, needs).items():
        assert one.framed <= (needs[name] > 1 and one.height > 3)


def test_many_runs_have_a_column_where_they_fill_it() -> None:
    assert has_column(27, 138, 43)
    assert not has_column(3, 138, 43)
    assert not has_column(26, 78, 22), "beside the charts there is no room"


def test_a_panel_grows_and_never_shrinks_while_run_and_size_stay() -> None:
    needs = PanelNeeds()
    assert needs.grow("run", {"health": 3, "gpus": 1}) == {"health": 3, "gpus": 1}
    assert needs.grow("run", {"health": 1, "gpus": 2}) == {"health": 3, "gpus": 2}
    assert needs.most("health") == 3
    assert needs.grow("other", {"health": 1}) == {"health": 1}
    assert needs.most("gpus") is None


def test_a_panel_out_of_sight_keeps_what_it_needed_until_that_is_forgotten() -> None:
    needs = PanelNeeds()
    needs.grow("run", {"health": 9})
    assert needs.grow("run", {"gpus": 1}) == {"gpus": 1}
    assert needs.grow("run", {"health": 1}) == {"health": 9}
    needs.forget("health")
    assert needs.grow("run", {"health": 1}) == {"health": 1}


def test_runs_in_a_column_of_their_own_take_no_rows_from_the_others() -> None:
    needs = {"runs": 40, "health": 2}
    beside = divided(needs, 140, 43, frames=True)
    assert beside.column
    assert set(beside.given) == {"health"}
    above = divided(needs, 80, 22, frames=True)
    assert not above.column
    assert set(above.given) == {"runs", "health"}
