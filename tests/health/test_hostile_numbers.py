"""Rules on numbers at the ends of what there is, and on none: no rule fails."""

from __future__ import annotations

import math
from random import Random

import pytest
from planted import OTHER, TUTORIAL, VERL, batch, judge, planted, reason, rows

from verl_tui.health.finding import TOO_LARGE, failed
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.indicators import INDICATORS, spellings
from verl_tui.runs.run import Run

NONE = math.nan
ENDS = (
    1e308, -1e308, 1.79e308, 1e200, -1e200, 1e155, -1e154, 1e-308, 5e-324, 0.0, -0.0, 1.0, -1.0,
    1e18, math.inf, -math.inf, NONE,
)  # fmt: skip
KEYS = sorted(name for id in INDICATORS for name in spellings(id)[:3])
GUIDE = load_guide()
REWARD = {"critic/score/mean": [0.5] * 120}


def series(random: Random, count: int) -> list[float]:
    """Return values of one of several kinds."""
    usual = [random.random() for _ in range(count)]
    kind = random.randrange(5)
    end = random.choice(ENDS)
    at = random.randrange(count)
    if kind == 0:
        return [random.choice(ENDS) for _ in range(count)]
    if kind == 1:
        return [end * value for value in usual]
    if kind == 2:
        return [*usual[:at], *[end] * (count - at)]
    if kind == 3:
        return [*[end] * at, *usual[at:]]
    return usual


@pytest.mark.parametrize("first", [0, pytest.param(100, marks=pytest.mark.thorough)])
def test_no_rule_fails_on_numbers_at_the_ends_of_what_there_is(first):
    for seed in range(first, first + (15 if first == 0 else 1000)):
        random = Random(seed)
        count = random.choice((3, 30, 80, 200))
        columns = {key: series(random, count) for key in random.sample(KEYS, 40)}
        columns |= {
            key: [value] * count
            for key, value in random.choice((VERL, TUTORIAL, OTHER)).items()
        }
        run, cut = Run("r"), random.randrange(1, count)
        judging = Judge(GUIDE, run)
        for begin, end in ((0, cut), (cut, count)):
            part = {key: values[begin:end] for key, values in columns.items()}
            run.apply(batch(rows(part, range(begin + 1, end + 1), begin)), now=0.0)
            verdict = judging.verdict(1.0)
            wrong = [one for one in verdict.not_judged if failed(one.reason)]
            assert not wrong, f"seed {seed}: {wrong}"


def test_a_rule_whose_sums_no_number_holds_says_so():
    columns = {"actor/entropy": [0.5] * 30 + [1.7e308] * 90, **REWARD}
    verdict = judge(planted(columns))
    assert reason(verdict, "entropy-explosion") == TOO_LARGE


def test_what_is_too_large_once_is_not_judged_by_its_other_half():
    values = [0.5] * 30 + [1.7e308] * 40 + [0.5] * 130
    run = planted({"actor/entropy": values[:120], **REWARD})
    judging = Judge(GUIDE, run)
    judging.verdict(1.0)
    run.apply(
        batch(rows({"actor/entropy": values[120:]}, range(121, 201), 120)), now=0.0
    )
    assert reason(judging.verdict(1.0), "entropy-explosion") == TOO_LARGE


def test_an_entropy_that_is_no_number_at_the_beginning_is_judged_later():
    columns = {
        "actor/entropy": [NONE] * 40 + [0.2] * 100,
        "critic/score/mean": [0.5] * 140,
    }
    verdict = judge(planted(columns))
    assert not failed(reason(verdict, "entropy-explosion") or "")


@pytest.mark.parametrize("known", [0, 1, 3])
def test_rewards_that_are_no_numbers_fail_no_rule(known):
    reward = [0.5] * known + [NONE] * (160 - known)
    columns = {
        "critic/score/mean": reward,
        "actor/ppo_kl": [0.2] * 160,
        "actor/kl_loss": [0.2] * 160,
    }
    verdict = judge(planted(columns))
    assert not [one for one in verdict.not_judged if failed(one.reason)]
