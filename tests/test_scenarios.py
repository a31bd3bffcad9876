"""Every failure of the guide is found where it is planted and not before, and healthy runs are left
in peace.
"""

from __future__ import annotations

import pytest
from scenarios.failures import FAILURES
from scenarios.healthy import HEALTHY
from scenarios.measure import alarms, measure

from verl_tui.health.guide_settings import load_guide

FIRST = {[one.id for one in FAILURES].index(failure.id) for failure in FAILURES}
"""Where the first failure of each id stands."""
PLANTED = [
    pytest.param(
        failure,
        dialect,
        id=f"{failure.id}-{dialect}-{i}",
        marks=()
        if at == i % len(failure.dialects) and i in FIRST
        else pytest.mark.thorough,
    )
    for i, failure in enumerate(FAILURES)
    for at, dialect in enumerate(failure.dialects)
]
"""Each failure in each dialect: the first of each id in one of them always, the others with
--thorough.
"""


@pytest.mark.parametrize(("failure", "dialect"), PLANTED)
def test_a_planted_failure_is_found(failure, dialect, tmp_path):
    result = measure(failure, dialect, 0, tmp_path / "run")
    assert result.raised is not None
    assert not result.early


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if at % 3 == 0 else pytest.mark.thorough)
        for at, name in enumerate(HEALTHY)
    ],
)
def test_a_healthy_run_gets_no_warning_at_any_time(name, seed, tmp_path):
    assert alarms(name, seed, tmp_path / "run")[1] == []


def test_every_id_is_planted_in_every_dialect_that_it_judges():
    planted = {
        (failure.id, dialect) for failure in FAILURES for dialect in failure.dialects
    }
    for rule in load_guide().rules:
        if rule.condition != "diagnosis":
            judged = [
                dialect
                for dialect in rule.dialects
                if (rule.id, dialect) not in planted
            ]
        else:
            judged = [] if any(id == rule.id for id, _ in planted) else ["any"]
        assert not judged, f"plant {rule.name} in tests/scenarios/failures.py"
