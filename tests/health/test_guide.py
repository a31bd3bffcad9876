"""The guide as data, with the user's own changes."""

from __future__ import annotations

import pytest
from planted import TUTORIAL, VERL, ids, judge, planted, reason

from verl_tui.config import Config
from verl_tui.health.conditions import KINDS
from verl_tui.health.diagnoses import DIAGNOSES
from verl_tui.health.exemptions import BY_VALUES, FOR_WHOLE_RUN
from verl_tui.health.finding import Severity
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.limits import CAUSES, LIMITS
from verl_tui.indicators import INDICATORS
from verl_tui.monitor import Monitor

PUBLIC = {
    "critical": "reward-zero circuit-breaker-kl circuit-breaker-reward not-finite hang crash policy-collapse",
    "warning": "reward-low reward-noisy kl-high kl-low ref-kl-high ref-kl-rising ref-kl-above-band "
    "policy-loss-positive policy-loss-jump "
    "response-short response-long gpu-idle gpu-memory-high rollout-probs-diff rollout-is-mean rollout-is-ess "
    "rollout-is-std rollout-kl rollout-chi2 truncation prompt-truncation grad-norm-rising critic-useless no-signal "
    "reward-cliff aborted staleness grad-norm-spike clip-saturation entropy-collapse reward-hacking length-explosion "
    "repetition dead-groups component-imbalance engine-mismatch slow-phase gpu-uneven worker-errors "
    "token-mult-prob-error engine-pearson rejection-eats-batch sequence-is-saturated corrupted-requests "
    "first-step weights-not-synced entropy-explosion host-memory nothing-learns reward-slide reward-jump "
    "component-falls length-collapse kl-negative disk-filling one-phase ended-early resume-lost",
    "info": "gpu-low async-idle plateau restart",
}
"""Ids that have been published: a new rule needs no entry here."""


def test_public_ids_and_severities():
    guide = load_guide()
    severities: dict[str, str] = {}
    for rule in guide.rules:
        severities.setdefault(rule.id, rule.severity.word)
    for severity, names in PUBLIC.items():
        assert {severities.get(id) for id in names.split()} == {severity}


def test_everything_named_exists():
    for rule in load_guide().rules:
        is_diagnosis = rule.condition == "diagnosis"
        is_sound = {
            "indicator": rule.indicator in {"", *INDICATORS},
            "of": rule.of in {"", *LIMITS},
            "unless": {*rule.unless} <= {*BY_VALUES, *FOR_WHOLE_RUN},
            "causes": rule.causes in {"", *CAUSES},
            "condition": is_diagnosis or rule.condition in KINDS,
            "advice": is_diagnosis or rule.advice,
            "why_window": rule.window == 1 or rule.why_window,
            **{one: getattr(rule, one) for one in ("meaning", "false_when", "source")},
        }
        wrong = [name for name, fine in is_sound.items() if not fine]
        assert not wrong, f"{rule.name} in guide.toml: {', '.join(wrong)}"
    for rule in load_guide().rules:
        change = {"severity": rule.severity.word, "of_the_end": rule.of_the_end}
        load_guide(
            {"rules": {rule.name: change}}
        )  # as of a user's, its fields make sense
    assert set(DIAGNOSES) == {
        rule.name for rule in load_guide().rules if rule.condition == "diagnosis"
    }
    assert all(band.indicator in INDICATORS for band in load_guide().bands)


def test_bands():
    guide = load_guide()
    assert guide.band("policy_kl", "tutorial") == (0.01, 0.05)
    assert guide.band("response_length", "tutorial") == (480.0, 512.0)
    assert guide.band("response_length", "tutorial", 1024) == (960.0, 1024.0)
    assert guide.band("reward", "verl") == (None, None)
    assert guide.band("gpu_utilization", "verl") == (70.0, None)
    run = planted(
        {"rollout/response_length_mean": [1.0]}, TUTORIAL, {"max_new_tokens": 256}
    )
    assert Monitor(Config()).band(run, "response_length") == (240.0, 256.0)


def test_a_threshold_changed_by_the_user():
    guide = load_guide(
        {"rules": {"kl-high": {"threshold": 0.3, "window": 20, "severity": "info"}}}
    )
    rule = guide.rule("kl-high")
    assert rule is not None
    assert (rule.threshold, rule.window, rule.severity) == (0.3, 20, Severity.INFO)
    assert "changed in your settings" in rule.source
    run = planted({"ppo/kl_div": [0.15] * 40}, TUTORIAL)
    assert "kl-high" in ids(judge(run))
    assert "kl-high" not in ids(judge(run, guide))


def test_a_rule_of_ones_own():
    rule = {
        "severity": "warning",
        "condition": "above",
        "metric": "reward/format_*",
        "threshold": 2,
        "window": 3,
    }
    run = planted(
        {
            "reward/format_a": [3.0] * 5,
            "reward/format_b": [1.0] * 5,
            "reward/format_c": [4.0] * 5,
        },
        VERL,
    )
    found = [
        one
        for one in judge(run, load_guide({"rules": {"mine": rule}})).findings
        if one.id == "mine"
    ]
    assert [one.key for one in found] == ["reward/format_a", "reward/format_c"]
    assert found[0].source == "your settings"


def test_silenced_rules_say_so():
    run = planted(
        {"ppo/kl_div": [0.15] * 40, "ppo/policy_loss": [0.1, float("nan")] * 20},
        TUTORIAL,
    )
    verdict = judge(run, load_guide({"silence": ["kl-high", "not-finite"]}))
    assert not ids(verdict) & {"kl-high", "not-finite"}
    assert (
        reason(verdict, "kl-high")
        == reason(verdict, "not-finite")
        == "silenced in your settings"
    )


NEW = {"condition": "above", "severity": "info", "threshold": 1, "window": 2}


@pytest.mark.parametrize(
    ("id", "change", "words"),
    [
        ("kl-high", {"threshold": "much"}, 'threshold` must be a number, not "much"'),
        ("kl-high", {"window": 0}, "window` must be a whole number above 0, not 0"),
        ("kl-high", {"window": 2.5}, "window` must be a whole number above 0"),
        ("kl-high", {"treshold": 1}, "treshold`; did you mean threshold?"),
        ("kl-high", {"severity": "bad"}, "severity` must be info, warning or critical"),
        ("kl-high", {"id": "x"}, "unknown key `guide.rules.kl-high.id`"),
        ("kl-high", {"clear": 0.9}, "clear` must be from 0 to below `share`"),
        ("kl-high", 3, "kl-high` must be a table of fields"),
        ("mine", {"condition": "above"}, "mine` must have a `severity`"),
        ("mine", {**NEW, "condition": "crash"}, "condition` must be one of above, "),
        ("mine", {**NEW, "condition": "diagnosis"}, "condition` must be another"),
        (
            "mine",
            {"condition": "above", "severity": "info", "metric": "x"},
            "mine` must have threshold, window",
        ),
        ("mine", NEW, "mine` must judge a metric"),
        ("mine", {**NEW, "indicator": "rward"}, "indicator` must be one of reward, "),
        ("rollout-is-mean", {"low": 3}, "low` must be below `high`"),
    ],
)
def test_a_bad_rule_names_rule_and_field(id, change, words):
    with pytest.raises(ValueError, match=rf"guide\.rules\.{id}") as caught:
        load_guide({"rules": {id: change}})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"rules": []}, "`guide.rules` must be a table"),
        (
            {"silence": ["kl-hihg"]},
            "`guide.silence` must name rules: there is no kl-hi",
        ),
        ({"response_limit": -1}, "`guide.response_limit` must be a number of tokens"),
        ({"treshold": 1}, "unknown key `guide.treshold`"),
    ],
)
def test_bad_settings_of_the_guide_are_named(overrides, words):
    with pytest.raises(ValueError, match=words):
        load_guide(overrides)
