"""Which KL is shown of a run where there is room for one."""

from __future__ import annotations

import pytest

from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.runs.run import Run
from verl_tui.runs.views.provenance import shown_kl

POLICY, REFERENCE = "actor/ppo_kl", "actor/kl_loss"
RISING = [0.1 * step for step in range(10)]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({POLICY: RISING, REFERENCE: RISING}, "policy_kl"),
        ({POLICY: [0.0] * 10, REFERENCE: RISING}, "reference_kl"),
        ({POLICY: [0.0] * 10, REFERENCE: [0.5] * 10}, "policy_kl"),
        ({POLICY: [0.0] * 10}, "policy_kl"),
        ({REFERENCE: RISING}, "reference_kl"),
    ],
)
def test_a_kl_that_is_always_the_same_is_not_shown_where_another_moves(
    columns: dict[str, list[float]], expected: str
) -> None:
    run = Run("r")
    rows = MetricRows(tuple(columns), range(10), tuple(columns.values()), range(10))
    run.apply(Batch("r", SourceStatus("x", "f"), (rows,)), 0.0)
    assert shown_kl(run) == expected
