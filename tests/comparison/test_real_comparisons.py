"""Runs of real trainers, compared."""

from __future__ import annotations

import pytest
from log_reading import MADE

from verl_tui.comparison.compare import Comparison, compare
from verl_tui.comparison.outcomes import KINDS, incomparable
from verl_tui.comparison.settings import differing_settings
from verl_tui.config import Config
from verl_tui.monitor import load

NOW = 1_800_000_000.0
pytestmark = pytest.mark.skipif(
    not MADE.is_dir(), reason=f"no runs of real trainers in {MADE}"
)


def made(*names: str) -> Comparison:
    monitor = load([str(MADE / name) for name in names], Config(), NOW)
    return compare(list(monitor.runs.values()), monitor.verdicts, monitor.guide, NOW)


def test_runs_of_verl_of_one_recipe_are_together_and_those_of_another_are_not():
    found = made(
        "verl061_healthy", "verl061_collapse", "verl061_raise", "verl061_sigterm"
    )
    assert sorted(len(group.members) for group in found.groups) == [1, 1, 2]
    (pair,) = (group for group in found.groups if len(group.members) == 2)
    assert {one.run.step for one in pair.members} == {11}
    # Only some logs show that scores are bounded; none shows that its own are not.
    assert not incomparable(KINDS["final_reward"], found.runs)
    labels = [one.label for one in differing_settings([one.run for one in found.runs])]
    assert "learning rate" in labels
    healthy = next(one for one in found.runs if one.run.name.endswith("healthy)"))
    assert healthy.figures["best_reward"].step == 40


def test_two_trainers_have_no_metric_that_only_one_of_them_logs():
    found = made("verl061_healthy", "t019_log1")
    assert not incomparable(KINDS["final_reward"], found.runs)
    assert {one.figure for one in found.differences} <= {
        *("final_reward", "highest_reference_kl", "response_length", "step_time")
    }
    assert any("several metrics" in note for note in found.notes)
