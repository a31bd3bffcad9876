"""The rules of the guide: each fires on what it is for and on nothing else, at a cost of what is new."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from command_line import placed
from planted import (
    STATUS,
    TUTORIAL,
    batch,
    ids,
    judge,
    planted,
    reason,
    rows,
)

from verl_tui.health.conditions import KINDS, Kind
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.records import Progress
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from verl_tui.health.conditions.column import Judged


AT = [70.0 * step + 7 * 3600 * (step > 80) for step in range(1, 100)]
"""When steps were done, with a pause of seven hours."""


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(
    ("bar", "times", "long"),
    [
        ((), (), "≈ 41 min"),
        ((), AT, "7.7 h"),
        ((*enumerate(AT, 1),), (), "7.7 h"),
        # the bar is drawn after its step's line
        ((*enumerate(AT[:-1], 1),), (), "7.7 h"),
        ((*enumerate(AT[70:], 71),), (), "≈ 7.7 h"),
    ],
)
def test_message_has_numbers_steps_and_how_long_they_took(bar, times, long, watched):
    columns = {
        "ppo/kl_div": [0.03] * 64 + [0.2, 0.21] * 17 + [0.31],
        "timing_s/step": [70.0] * 99,
        **dict.fromkeys(TUTORIAL, [64.0] * 99),
    }
    run = Run("r")
    shown = [Progress(step, elapsed=passed) for step, passed in bar]
    dated = [1.7e9 + at for at in times]
    records = [*shown, rows(columns, times=dated)]
    status = STATUS._replace(format="tutorial JSONL")
    run.apply(batch(*records, status=status, live=watched), now=0.0)
    found = next(one for one in judge(run).findings if one.id == "kl-high")
    said = (
        f"policy KL has stayed above 0.1 for 35 steps ({long}): mean 0.208, last 0.31"
    )
    assert found.message == said
    assert (found.since_step, found.step) == (65, 99)


def test_a_value_dancing_on_its_threshold_is_one_finding():
    # After the breach has begun, every second value lies below the threshold.
    values = [0.03] * 20 + [0.15] * 10 + [0.15, 0.15, 0.09] * 20
    run = Run("r")
    judge_ = Judge(load_guide(), run)
    said = []
    for i in range(len(values)):
        part = {"ppo/kl_div": values[i : i + 1], "rollout/sample_count": [1.0]}
        run.apply(batch(rows(part, [i + 1], i)), now=0.0)
        said.append("kl-high" in ids(judge_.verdict(1.0)))
    assert sum(a != b for a, b in pairwise(said)) == 1
    assert said[-1]


def test_a_rule_that_raises_is_shown_as_failed(monkeypatch):
    run = planted({"ppo/kl_div": [0.3] * 30}, TUTORIAL)

    def broken(*_: object) -> Judged:
        raise RuntimeError("boom")

    monkeypatch.setitem(KINDS, "streak", Kind("streak", broken))
    verdict = judge(run)
    assert "kl-high" in ids(verdict)
    why = placed(reason(verdict, "circuit-breaker-kl"))
    assert why == "failed: RuntimeError in PLACE"


def test_a_run_that_cannot_be_judged_says_so_for_each_rule(monkeypatch):
    def broken(*_: object) -> None:
        raise OverflowError("no such time")

    monkeypatch.setattr("verl_tui.health.judge.rule_context", broken)
    verdict = judge(planted({"ppo/kl_div": [0.3] * 30}, TUTORIAL))
    assert {one.id for one in verdict.not_judged} == {
        rule.id for rule in load_guide().rules
    }
    assert {placed(one.reason) for one in verdict.not_judged} == {
        "failed: OverflowError in PLACE"
    }
