"""No rule speaks of healthy runs, and each says beside it of how many it did not."""

from __future__ import annotations

import pytest
from null_rates import FEWEST, MOST, measure
from scenarios.healthy import HEALTHY

from verl_tui.exporters.guide import describe
from verl_tui.health.guide_settings import load_guide

RULES = load_guide().rules
BY_FAULTS = {"crash", "disk-filling", "ended-early", "resume-lost", "nothing-learns"}
BY_FAULTS |= {"entropy-collapse/early", "ref-kl-above-band/far", "no-signal/solved"}
"""Rules that little but a fault, or its lines, feeds."""


@pytest.mark.parametrize("first", [1, pytest.param(3, marks=pytest.mark.thorough)])
def test_no_rule_speaks_of_the_kinds_that_the_scenarios_leave_out(first):
    """Those judge every other kind at any time."""
    spoke, judged = measure(1, first=3000, kinds=[*HEALTHY][first::4])
    assert not spoke
    assert len(judged) > len(RULES) / 2


def test_the_rate_stands_beside_each_rule():
    said = [line for line in describe(load_guide()) if "without a fault: " in line]
    assert len(said) >= len(RULES) - len(BY_FAULTS)
    for line in said:
        raised, judged = map(int, line.rpartition(": ")[2].split(" of "))
        assert judged >= FEWEST, "run tests/health/null_rates.py --write"
        assert raised <= MOST * judged, line
    changed = load_guide({"rules": {"kl-high": {"threshold": 0.05}}}).rule("kl-high")
    assert changed is not None
    assert changed.null_rate == "", "it was measured with another threshold"
