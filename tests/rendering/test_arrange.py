"""How the room of the dashboard is divided among its panels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.rendering.arrange import FRAME, LOW, Need, arrange

SHARES = {"runs": 0.4, "charts": 1.0, "health": 0.34, "gpus": 0.28, "samples": 0.25}
LEAST = {"runs": 60, "gpus": 120}
STATES: dict[str, dict[str, int]] = {
    "nothing yet": {"health": 1, "gpus": 1, "samples": 1},
    "healthy": {"health": 1, "gpus": 1, "samples": 12},
    "crashed": {"health": 2, "gpus": 1, "samples": 1},
    "eight findings": {"health": 26, "gpus": 1, "samples": 1},
    "a node": {"health": 1, "gpus": 8, "samples": 14},
    "eight nodes": {"health": 9, "gpus": 40, "samples": 70},
    "three runs": {"runs": 4, "health": 2, "gpus": 1, "samples": 1},
    "forty runs": {"runs": 41, "health": 6, "gpus": 2, "samples": 1},
    "all at once": {"runs": 60, "health": 60, "gpus": 60, "samples": 60},
}
NEEDS = st.fixed_dictionaries(
    {name: st.integers(0, 200) for name in SHARES if name != "charts"}
)
SIZES = (
    (220, 60),
    (140, 45),
    (100, 30),
    (80, 24),
    (60, 20),
    (40, 12),
    (30, 50),
    (80, 6),
    (20, 1),
)


def needs_of(rows: dict[str, int]) -> dict[str, Need]:
    return {
        name: Need(rows.get(name, 0), share, LEAST.get(name, 0))
        for name, share in SHARES.items()
    }


def test_no_panel_is_a_third_empty_while_another_is_cut():
    for size in SIZES:
        for state, rows in STATES.items():
            for name, room in arrange(needs_of(rows), *size).items():
                beside = room.width < size[0]  # another one decides how tall both are
                if name in rows and not beside:
                    inner = room.height - FRAME * room.framed
                    assert 1 <= inner <= rows[name], (size, state, name)


def test_gpus_and_samples_stand_beside_each_other_on_a_wide_screen():
    rooms = arrange(needs_of(STATES["a node"]), 161, 60)
    gpus, samples = rooms["gpus"], rooms["samples"]
    assert (gpus.x, gpus.width, samples.x, samples.width) == (0, 80, 80, 81)
    assert (gpus.y, gpus.height) == (samples.y, samples.height)
    assert arrange(needs_of(STATES["a node"]), 159, 60)["samples"].x == 0
    assert arrange(needs_of(STATES["healthy"]), 161, 60)["samples"].x == 0


@given(
    rows=NEEDS,
    width=st.integers(1, 240),
    height=st.integers(1, 120),
    zoomed=st.sampled_from(["", *SHARES]),
    foot=st.sampled_from(["keys", "filter-bar"]),
)
def test_parts_fill_the_screen_and_the_charts_keep_their_share(
    rows, width, height, zoomed, foot
):
    rooms = arrange(needs_of(rows), width, height, names=30, zoomed=zoomed, foot=foot)
    covered = [
        (x, y)
        for room in rooms.values()
        for x in range(room.x, room.x + room.width)
        for y in range(room.y, room.y + room.height)
    ]
    assert len(covered) == len(set(covered)), "nothing overlaps"
    assert set(covered) == {(x, y) for x in range(width) for y in range(height)}
    if height >= LOW and not zoomed:
        assert rooms["charts"].height >= height * 0.4 - 6
