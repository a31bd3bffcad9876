"""The tutorials' circuit breakers, word by word; they latch."""

from __future__ import annotations

import pytest
from planted import TUTORIAL, batch, ids, judge, planted, rows

from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.records import Restart
from verl_tui.runs.run import Run

KL, REWARD = "circuit-breaker-kl", "circuit-breaker-reward"


@pytest.mark.parametrize(
    ("id", "values", "trips"),
    [
        (KL, [0.1, 0.21, 0.21, 0.21, 0.21, 0.21], True),
        (KL, [0.1, 0.21, 0.21, 0.21, 0.21], False),
        (KL, [0.3, 0.3, 0.3, 0.3, 0.2, 0.3, 0.3, 0.3, 0.3], False),  # counts anew
        (KL, [0.3, 0.3, 0.3, 0.3, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3], True),
        (REWARD, [10, 7.9, 6.2, 4.9, 3.9, 3.1], True),
        (REWARD, [10, 7.9, 6.2, 4.9, 3.9], False),
        # The fall to −1 counts as the fourth; after it, the last is not positive.
        (REWARD, [10, 7, 5, 3, -1, -2, -4, -8, -16], False),
        (REWARD, [0, -1, -2, -3, -4, -5, -6], False),
        (REWARD, [10, 7, 5, 3, 2, -1], True),
    ],
)
def test_five_in_a_row_trip(id, values, trips):
    key = "ppo/kl_div" if id == KL else "rollout/reward_mean"
    assert (id in ids(judge(planted({key: values}, TUTORIAL)))) is trips


def test_records_that_lack_the_metric_do_not_count():
    run = Run("r")
    for step in range(1, 11):
        held = {"ppo/kl_div": [0.3]} if step % 2 else {"ppo/policy_loss": [-0.2]}
        run.apply(
            batch(rows({**held, "rollout/sample_count": [1.0]}, [step], step)), now=0.0
        )
    assert KL in ids(judge(run))


def test_tripped_stays_tripped():
    run = planted({"ppo/kl_div": [0.03] * 5 + [0.3] * 5 + [0.03] * 200}, TUTORIAL)
    found = next(one for one in judge(run).findings if one.id == KL)
    assert "tripped at step 10" in found.message
    assert (found.since_step, found.step) == (6, 210)


@pytest.mark.parametrize("again", [8, 11])
def test_a_restart_begins_a_new_segment(again):
    run = planted({"ppo/kl_div": [0.03] * 5 + [0.3] * 5}, TUTORIAL)
    judge_ = Judge(load_guide(), run)
    assert KL in ids(judge_.verdict(1.0))
    run.apply(batch(Restart("file truncated")), now=0.0)
    run.apply(
        batch(
            rows(
                {"ppo/kl_div": [0.03] * 2, "rollout/sample_count": [1.0] * 2},
                [again, again + 1],
            )
        ),
        now=0.0,
    )
    verdict = judge_.verdict(2.0)
    assert KL not in ids(verdict)
    assert "restart" in ids(verdict)
    assert verdict == judge(run, now=2.0)


def test_the_abandoned_end_of_an_old_segment_is_not_judged():
    run = planted({"ppo/kl_div": [0.03] * 40 + [0.15] * 40}, TUTORIAL)
    assert "kl-high" in ids(judge(run))
    run.apply(batch(Restart("file truncated")), now=0.0)
    run.apply(
        batch(rows({"ppo/kl_div": [0.03], "rollout/sample_count": [1.0]}, [41])),
        now=0.0,
    )
    assert "kl-high" not in ids(judge(run))
