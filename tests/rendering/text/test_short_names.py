"""Names in little room: rows of one sweep differ."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from verl_tui.rendering.text.piece import short_names

SWEEP = [f"exp{number:03}_grpo_gsm8k_lr1e-6" for number in range(200)]


@pytest.mark.parametrize("cells", [6, 8, 10, 13, 17, 23])
def test_names_of_a_sweep_differ_however_little_room_there_is(cells):
    found = short_names(tuple(SWEEP), cells).values()
    assert len(set(found)) == len(SWEEP)
    assert all(cell_len(name) <= cells for name in found)
    assert all("…" in name for name in found)


def test_words_of_a_name_that_is_cut_stay_apart():
    names = (
        "validation starts (samples)",
        "validation reward (samples)",
        "starts (samples)",
    )
    found = ["va…n starts…", "va…n reward…", "starts (sa…les)"]
    assert [*short_names(names, 15).values()] == found


@pytest.mark.parametrize("cells", range(12))
def test_any_names_in_any_room(cells):
    names = ("数学强化学习" * 3 + "a", "数学强化学习" * 3 + "b", "数学\n👍🏽")
    for short in short_names(names, cells).values():
        assert cell_len(short) <= cells
