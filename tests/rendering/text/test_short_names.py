"""Names in little room: rows of one sweep differ."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from verl_tui.rendering.text.short_names import (
    SharedEnds,
    shared,
    short_name,
    short_names,
)

SWEEP = [f"exp{number:03}_grpo_gsm8k_lr1e-6" for number in range(200)]


def test_what_all_names_share() -> None:
    assert shared(SWEEP) == SharedEnds(len("exp"), len("_grpo_gsm8k_lr1e-6"))
    assert shared(["run_1", "run_11"]) == SharedEnds(5, 0), "nothing is counted twice"
    assert shared(["a", "b"]) == shared(["alone"]) == shared([]) == SharedEnds()


@pytest.mark.parametrize("cells", [6, 8, 10, 13, 17, 23])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_names_of_a_sweep_differ_however_little_room_there_is(
    cells: int, ascii_only: bool
) -> None:
    found = [
        short_name(name, cells, shared(SWEEP), ascii_only=ascii_only) for name in SWEEP
    ]
    assert len(set(found)) == len(SWEEP)
    assert all(cell_len(name) <= cells for name in found)
    assert all(("~" if ascii_only else "…") in name for name in found)


def test_both_ends_are_kept_while_there_is_room() -> None:
    assert short_name(SWEEP[7], 18, shared(SWEEP)) == "exp007_grpo_…r1e-6"
    assert short_name(SWEEP[7], 24, shared(SWEEP)) == SWEEP[7]


@pytest.mark.parametrize("cells", range(12))
def test_any_names_in_any_room(cells: int) -> None:
    names = ["数学强化学习" * 3 + "a", "数学强化学习" * 3 + "b", "数学\n👍🏽"]
    for name in names:
        assert cell_len(short_name(name, cells, shared(names))) <= cells


def test_names_that_share_more_with_each_other_than_with_all_still_differ() -> None:
    names = (
        "nq-search-r1-grpo-qwen2.5-3b-instruct-em",
        "nq-search-r1-ppo-qwen2.5-3b-instruct-em",
        "gsm8k",
    )
    found = short_names(names, 21)
    assert len(set(found.values())) == 3
    assert all(cell_len(name) <= 21 for name in found.values())
    assert "gr" in found[names[0]]
