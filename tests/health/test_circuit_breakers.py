"""The tutorials' circuit breakers, word by word; they latch."""

from __future__ import annotations

import pytest
from planted import TUTORIAL, batch, ids, judge, planted, rows

from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.records import Restart
from verl_tui.runs.run import Run

KL, REWARD = "circuit-breaker-kl", "circuit-breaker-reward"


def kl(*values: float) -> bool:
    return KL in ids(judge(planted({"ppo/kl_div": values}, TUTORIAL)))


def reward(*values: float) -> bool:
    return REWARD in ids(judge(planted({"rollout/reward_mean": values}, TUTORIAL)))


def test_kl_trips_on_exactly_five_in_a_row() -> None:
    assert kl(0.1, 0.21, 0.21, 0.21, 0.21, 0.21)
    assert not kl(0.1, 0.21, 0.21, 0.21, 0.21)


def test_kl_interrupted_starts_counting_anew() -> None:
    assert not kl(0.3, 0.3, 0.3, 0.3, 0.2, 0.3, 0.3, 0.3, 0.3)
    assert kl(0.3, 0.3, 0.3, 0.3, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3)


def test_reward_trips_on_exactly_five_drops() -> None:
    assert reward(10, 7.9, 6.2, 4.9, 3.9, 3.1)
    assert not reward(10, 7.9, 6.2, 4.9, 3.9)


def test_reward_does_not_count_where_last_is_not_positive() -> None:
    # The fall to −1 counts as the fourth; after it, last ≤ 0.
    assert not reward(10, 7, 5, 3, -1, -2, -4, -8, -16)
    assert not reward(0, -1, -2, -3, -4, -5, -6)
    assert reward(10, 7, 5, 3, 2, -1)


def test_records_that_lack_the_metric_do_not_count() -> None:
    run = Run("r")
    for step in range(1, 11):
        held = {"ppo/kl_div": [0.3]} if step % 2 else {"ppo/policy_loss": [-0.2]}
        run.apply(
            batch(rows({**held, "rollout/sample_count": [1.0]}, [step], step)), now=0.0
        )
    assert KL in ids(judge(run))


def test_tripped_stays_tripped() -> None:
    run = planted({"ppo/kl_div": [0.03] * 5 + [0.3] * 5 + [0.03] * 200}, TUTORIAL)
    found = next(one for one in judge(run).findings if one.id == KL)
    assert "tripped at step 10" in found.message
    assert (found.since_step, found.step) == (6, 210)


@pytest.mark.parametrize("again", [8, 11])
def test_a_restart_begins_a_new_segment(again: int) -> None:
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


def test_the_abandoned_end_of_an_old_segment_is_not_judged() -> None:
    run = planted({"ppo/kl_div": [0.03] * 40 + [0.15] * 40}, TUTORIAL)
    assert "kl-high" in ids(judge(run))
    run.apply(batch(Restart("file truncated")), now=0.0)
    run.apply(
        batch(rows({"ppo/kl_div": [0.03], "rollout/sample_count": [1.0]}, [41])),
        now=0.0,
    )
    assert "kl-high" not in ids(judge(run))
