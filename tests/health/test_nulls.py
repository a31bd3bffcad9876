"""No rule speaks of runs without a fault, and each says beside it how often it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from null_rates import MOST, drawn, measure

from verl_tui.exporters.guide.as_text import describe
from verl_tui.health.guide_settings import load_guide

if TYPE_CHECKING:
    import pytest

RULES = load_guide().rules
BY_LINES = {"disk-filling", "ended-early", "resume-lost"}
"""Rules that lines of a log feed, not its figures alone."""
CAREFUL = 2 * MOST
"""What the small draw here may show, in which a single run is much."""


def test_no_rule_speaks_of_runs_without_a_fault(request: pytest.FixtureRequest) -> None:
    # Two runs of each kind in each dialect, ten when thorough.
    rates = measure(
        drawn(10 if request.config.getoption("thorough") else 2, first=3000)
    )
    for rule in RULES:
        raised, judged = rates.rate(rule.name)
        assert raised <= max(1, CAREFUL * judged), rule.name
    # Every rule is fed in every dialect that it judges.
    for rule in RULES:
        dialects = [
            dialect for dialect in rule.dialects if rates.judged[rule.name, dialect]
        ]
        if rule.condition == "diagnosis":
            assert dialects or rule.name in BY_LINES, rule.name
        elif not rule.unless:
            assert dialects == [*rule.dialects], rule.name
        else:
            assert dialects, rule.name


def test_the_rate_stands_beside_each_rule() -> None:
    for rule in RULES:
        raised, judged = (
            int(word.replace(",", "")) for word in rule.null_rate.split(" of ")
        )
        assert judged >= 20, "run tests/health/null_rates.py --write"
        assert raised <= MOST * judged, rule.name


def test_the_guide_tells_the_rates() -> None:
    said = list(describe(load_guide()))
    assert sum(
        line.startswith("    found on runs without a fault: ") for line in said
    ) == len(RULES)
    changed = load_guide({"rules": {"kl-high": {"threshold": 0.05}}})
    assert changed.rule("kl-high").null_rate == "", (
        "it was measured with another threshold"
    )
