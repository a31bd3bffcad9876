"""Failures that samples, their groups and their scores tell of: repetition, groups that teach nothing,
a component that carries all. Each is found where it was planted, and not in what only looks like
it.
"""

from __future__ import annotations

import pytest
from planted import OTHER, VERL, ids, judge, planted
from planted_failures import COUNT, FLAT, LOOPS, find, noisy, ramp, scored

from verl_tui.health.finding import Severity


def in_parts(right: list[float], brief: list[float]) -> dict[str, list[float]]:
    """Return a reward that is the sum of two parts, and these."""
    return {
        "critic/score/mean": [a + b for a, b in zip(right, brief, strict=True)],
        "reward_extra_info/right/mean": right,
        "reward_extra_info/brief/mean": brief,
    }


# -- repetition ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "is_told"),
    [
        (
            scored([0.2] * 150 + [0.9] * 100),
            False,
        ),  # the text behind the answer repeats itself
        (scored([0.5] * 250), True),
        (scored([0.9] * 150 + [0.1] * 100), True),
        (
            {"samples/score": ramp(0.2, 0.9), "samples/score_std": [0.05] * COUNT},
            True,
        ),  # by degrees
        (in_parts([0.2] * 150 + [0.9] * 150, FLAT), False),  # none has lost
        (
            in_parts([0.2] * 150 + [0.9] * 150, [0.5] * 150 + [0.1] * 150),
            True,
        ),  # bought with the other
        (in_parts(FLAT, FLAT), True),  # and nothing is gained
    ],
)
def test_repetition_beside_answers_that_become_right_is_no_fault(
    scores: dict[str, list[float]], is_told: bool
) -> None:
    verdict = judge(planted({"samples/repetition": LOOPS, **scores}))
    assert ("repetition" in ids(verdict)) is is_told


def test_loops_and_the_entropy_that_they_cost_are_one_finding() -> None:
    entropy = [1.0 - value for value in LOOPS]
    series = {"val_samples/repetition": LOOPS, "val_samples/ngram_entropy": entropy}
    (one,) = [one for one in judge(planted(series)).findings if one.id == "repetition"]
    assert one.message.startswith("repetition of samples in validation has risen")
    assert any(line.startswith("val_samples/ngram_entropy: ") for line in one.evidence)


def test_repetition_that_creeps_and_such_that_was_always_there() -> None:
    assert find("repetition", {"samples/repetition": noisy(ramp(0.05, 0.6), 0.02)})
    assert (
        find("repetition", {"samples/repetition": noisy([0.5] * COUNT, 0.05)}) is None
    )
    assert (
        find("repetition", {"samples/repetition": noisy(ramp(0.05, 0.15), 0.03)})
        is None
    )


# -- dead-groups -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "beside"), [("samples/dead_groups", VERL), ("frac_reward_zero_std", OTHER)]
)
def test_groups_that_teach_nothing(key: str, beside: dict[str, float]) -> None:
    found = find("dead-groups", {key: noisy(ramp(0.2, 0.9, finish=200), 0.05)}, beside)
    assert found is not None
    assert find("dead-groups", {key: noisy([0.5] * COUNT, 0.1)}, beside) is None


def test_it_says_whether_they_are_wrong_or_right() -> None:
    columns = {
        "samples/dead_groups": [0.9] * 40,
        "samples/groups_all_wrong": [0.85] * 40,
    }
    found = find("dead-groups", columns)
    assert found is not None
    assert (
        "(all wrong 0.85 at the newest step); the task is too hard so far"
        in found.message
    )


def dead(**more: list[float]) -> dict[str, list[float]]:
    """Return groups that are dead from step 60 on, and what else the samples tell."""
    return {"samples/dead_groups": [*[0.3] * 60, *[0.9] * 60], **more}


@pytest.mark.parametrize(
    ("columns", "settings", "words", "severity"),
    [
        (
            dead(**{"critic/score/mean": [*ramp(0.1, 0.98)[:120], *[0.98] * 40][40:]}),
            {},
            "is solved",
            Severity.INFO,
        ),
        (
            dead(**{"critic/score/mean": [*noisy([-2.0] * 60, 0.1), *[-0.3] * 60]}),
            {},
            "is solved",
            Severity.INFO,
        ),
        (
            dead(**{"critic/score/mean": [0.0] * 120}),
            {},
            "has scored 0: the task is too hard",
            Severity.WARNING,
        ),
        (
            {"samples/dead_groups": [1.0] * 120, "critic/score/mean": [1.0] * 120},
            {},
            "the scorer is constant",
            Severity.WARNING,
        ),
        (dead(**{"critic/score/mean": [1.0] * 120}), {}, "is solved", Severity.INFO),
        (
            dead(**{"critic/score/mean": [0.3, 0.30000001] * 60}),
            {},
            "the scorer is constant",
            Severity.WARNING,
        ),
        (
            dead(**{"critic/score/mean": noisy([0.03] * 120, 0.005)}),
            {},
            "is too hard so far",
            Severity.WARNING,
        ),
        (
            dead(**{"critic/score/mean": noisy([0.6] * 120, 0.1)}),
            {"rollout.temperature": 0.05, "rollout.val_kwargs.temperature": 0},
            "sampling is too cold: rollout.temperature is 0.05",
            Severity.WARNING,
        ),
        (
            dead(
                **{
                    "critic/score/mean": noisy([0.6] * 120, 0.1),
                    "samples/unique_share": [0.4] * 120,
                }
            ),
            {"rollout.val_kwargs.temperature": 0},
            "alike: 40% of them differ",
            Severity.WARNING,
        ),
        (
            dead(
                **{
                    "critic/score/mean": noisy([0.6] * 120, 0.1),
                    "samples/unique_share": [*[0.9] * 60, *[0.1] * 60],
                }
            ),
            {},
            "alike: 10% of them differ, 90% at the beginning",
            Severity.WARNING,
        ),
    ],
)
def test_it_says_why_groups_are_dead(
    columns: dict[str, list[float]],
    settings: dict[str, float],
    words: str,
    severity: Severity,
) -> None:
    (found,) = (
        one
        for one in judge(planted(columns, settings=settings)).findings
        if one.id == "dead-groups"
    )
    assert words in found.message
    assert found.severity is severity


def test_why_groups_were_dead_does_not_depend_on_what_came_after() -> None:
    shares = {
        "samples/dead_groups": [*[0.9] * 60, *[0.1] * 60],
        "critic/score/mean": [*[0.0] * 60, *[0.99] * 60],
    }
    (known,) = (
        one for one in judge(planted(shares)).history if one.id == "dead-groups"
    )
    assert known.severity is Severity.WARNING
    assert known.message.endswith(
        "has scored 0: the task is too hard, or the scorer cannot read the answers"
    )


# -- component-imbalance ---------------------------------------------------------------------------
