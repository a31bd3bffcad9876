"""One cause, one finding: what only follows from another finding says so."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from planted import TUTORIAL, judge, planted
from run_views import NOW, make_run

from verl_tui.health.consequences import with_causes
from verl_tui.health.finding import Finding, Severity, Verdict
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.records import Batch, MetricRows, SourceStatus
from verl_tui.runs.run import Run

GUIDE = load_guide()
GAP = 10
"""Steps from one logged point to the next."""
STEPS = [*range(0, 20_000, GAP)]
RUN = Run("grpo")
RUN.apply(
    Batch(
        "grpo",
        SourceStatus("/logs/grpo", "verl"),
        (MetricRows(("k",), STEPS, [[0.0] * len(STEPS)], [*range(len(STEPS))]),),
    ),
    NOW,
)


def found(
    id: str,
    since: int | None,
    severity: Severity = Severity.WARNING,
    key: str | None = "k",
) -> Finding:
    return Finding(id, severity, "", since_step=since, key=key)


def causes(*findings: Finding) -> list[str | None]:
    reported = with_causes(findings, GUIDE, RUN)
    assert [one.id for one in reported] == [one.id for one in findings]
    return [one.consequence_of for one in reported]


COLLAPSE = found("policy-collapse", 5000, Severity.CRITICAL)


@pytest.mark.parametrize(
    ("finding", "follows"),
    [
        (found("reward-cliff", 5000), True),
        (found("reward-cliff", 5000 - 10 * GAP), True),  # windows blur where it begins
        (found("reward-cliff", 5000 - 11 * GAP), False),
        (found("truncation", 9000), True),
        (
            found("kl-high", 4000),
            True,
        ),  # a sign of it: the KL leaves its band before the reward falls
        (found("kl-high", 1000), False),  # long before: another story
        (
            found("circuit-breaker-kl", 5010, Severity.CRITICAL),
            True,
        ),  # as bad as its cause, no worse
        (found("gpu-idle", 5010), False),
        (found("crash", 5010, Severity.CRITICAL), False),
        (found("reward-cliff", None), False),
    ],
)
def test_what_follows_from_a_collapse(finding, follows):
    assert causes(COLLAPSE, finding) == [None, "policy-collapse" if follows else None]
    assert causes(finding, COLLAPSE) == ["policy-collapse" if follows else None, None]


def test_what_is_worse_than_its_cause_stands_for_itself():
    mild = found("policy-collapse", 5000, Severity.WARNING)
    assert causes(mild, found("circuit-breaker-kl", 5000, Severity.CRITICAL)) == [
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("cause", "since"),
    [
        ("policy-collapse", 5000),
        ("entropy-collapse", 5000),
        ("reward-slide", 5110),  # what moved first leads: here the reward
        ("reward-hacking", 4000),
    ],
)
def test_what_responses_shrink_from(cause, since):
    """What pays for brevity shortens responses before another score has fallen by it."""
    collapse = found("length-collapse", since)
    short = found("response-short", since + 50)
    assert causes(found(cause, 5000), collapse, short) == [None, cause, cause]
    assert causes(collapse, short) == [None, "length-collapse"]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (
            found("not-finite", 119, Severity.CRITICAL),
            found("policy-collapse", 120, Severity.CRITICAL),
        ),
        (found("not-finite", 119, Severity.CRITICAL), found("reward-slide", 119)),
        (found("length-collapse", 5000), found("reward-slide", 5000)),
        (found("length-collapse", 5000), found("reward-zero", 5050, Severity.CRITICAL)),
        (found("length-explosion", 5000), found("reward-slide", 5100)),
        (found("component-falls", 5000), found("reward-cliff", 5050)),
        (found("worker-errors", 5000), found("reward-zero", 5000, Severity.CRITICAL)),
        (found("truncation", 1), found("nothing-learns", 1)),
    ],
    ids=lambda one: one.id,
)
def test_what_moved_first_leads(first, later):
    """It is as bad as what follows from it."""
    for order in ((first, later), (later, first)):
        reported = with_causes(order, GUIDE, RUN)
        told = {one.id: one for one in reported}
        assert told[first.id].consequence_of is None
        assert told[later.id].consequence_of == first.id
        assert told[first.id].severity == max(first.severity, later.severity)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (COLLAPSE, found("not-finite", 5010, Severity.CRITICAL)),
        (found("reward-slide", 4000), found("length-collapse", 5000)),
        (found("reward-cliff", 4900), found("component-falls", 5000)),
    ],
    ids=lambda one: one.id,
)
def test_the_reward_leads_where_it_moved_first(first, later):
    assert causes(first, later) == [None, first.id]


def test_nothing_leads_long_after_it_or_without_being_enough():
    broken = found("not-finite", 1000, Severity.CRITICAL)
    assert causes(broken, COLLAPSE) == [None, None]
    some = replace(found("truncation", 1), certain=False)
    assert causes(some, found("nothing-learns", 1)) == [None, None]


def test_of_two_findings_of_one_rule_the_first_carries_what_follows():
    first = found("dead-groups", 10, key="a")
    second = found("dead-groups", 10, key="b")
    verdict = Verdict(
        with_causes(
            [first, second, found("no-signal", 20)],
            GUIDE,
            RUN,
        )
    )
    assert [len(verdict.consequences(one)) for one in verdict.findings] == [1, 0, 0]


def test_a_collapse_is_one_finding():
    chance = random.Random(1)
    reward = [2.5 + chance.gauss(0, 0.05) for _ in range(300)] + [
        0.3 + chance.gauss(0, 0.03) for _ in range(60)
    ]
    kl = [0.03 + chance.gauss(0, 0.003) for _ in range(290)] + [
        0.35 + chance.gauss(0, 0.01) for _ in range(70)
    ]
    idle = [20.0] * 360
    verdict = judge(
        planted(
            {"rollout/reward_mean": reward, "ppo/kl_div": kl, "system/gpu_util": idle},
            TUTORIAL,
        )
    )
    reported = [one.id for one in verdict.primary]
    assert reported[0] == "policy-collapse"
    assert "gpu-idle" in reported
    assert not {"reward-cliff", "kl-high", "circuit-breaker-kl"} & set(reported)
    follow = {one.id for one in verdict.consequences(verdict.primary[0])}
    assert {"reward-cliff", "kl-high", "circuit-breaker-kl"} <= follow


def test_the_worst_variant_of_a_rule_says_since_when_it_holds_itself():
    steps = 40
    run = make_run(
        steps=steps,
        columns={
            "critic/score/mean": [0.3, 0.2, *[0.0] * (steps - 2)],
            "actor/entropy": [5.0, *(n * 1e-12 for n in range(1, steps))],
            "actor/grad_norm": [
                5.0 + n / 7 if n < 19 else n * 1e-12 for n in range(steps)
            ],
            "response_length/clip_ratio": [0.1, 0.1, *[1.0] * (steps - 2)],
        },
    )
    verdict = Judge(GUIDE, run).verdict(NOW)
    (dead,) = (one for one in verdict.findings if one.id == "entropy-collapse")
    assert (dead.since_step, dead.begun) == (20, 2)
    assert dead.severity is Severity.CRITICAL
    (cut,) = (one for one in verdict.findings if one.id == "truncation")
    assert cut.consequence_of == dead.id, "it began before, with the first sign"
