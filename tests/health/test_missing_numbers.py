"""Numbers that turned None: in consoles and trainer states they are NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from planted import OTHER, VERL, judge, planted

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

NAN = math.nan
COUNT = 60


def broken(run: Run) -> tuple[int | None, str] | None:
    found = [one for one in judge(run).findings if one.id == "not-finite"]
    return (found[0].since_step, found[0].message) if found else None


@pytest.mark.parametrize("beside", [VERL, OTHER], ids=["verl", "other"])
def test_a_metric_that_has_a_number_only_now_and_then_is_no_fault(
    beside: dict[str, float],
) -> None:
    now_and_then = [0.5 if i % 10 == 3 else NAN for i in range(COUNT)]
    assert (
        broken(
            planted(
                {"critic/score/mean": [0.5] * COUNT, "tool/score": now_and_then}, beside
            )
        )
        is None
    )


def test_a_reward_that_begins_with_none_is_a_fault_when_it_is_none_again() -> None:
    found = broken(planted({"reward": [NAN, *[0.5] * 49, NAN, *[0.5] * 9]}, OTHER))
    assert found is not None
    assert found[0] == 51
