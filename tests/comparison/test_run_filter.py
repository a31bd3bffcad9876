"""Columns and conditions as people type them: what they mean for runs, and what is said of those
that mean nothing.
"""

from __future__ import annotations

from math import nan

import pytest
from compared_runs import BATCH, KL, LR, MODEL, NOW, REWARD, VALIDATION, run_of
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.comparison.run_columns import (
    apart,
    awaited,
    meeting,
    parse_columns,
    sorted_by,
    together,
    value_of,
)
from verl_tui.health.finding import Finding, Moment, Severity, Verdict

SMALL = run_of(
    "ppo small",
    [0.2, 0.8, 0.5],
    {LR: "1e-6", BATCH: 64, "actor.use_kl_loss": True},
    {KL: [0.01, 0.3, 0.02]},
)
SAID = {"learning_rate": 5e-6, MODEL: "Qwen/Qwen3-8B", "actor.use_kl_loss": False}
SAID |= {"trainer.total_training_steps": 400}
LOGGED = {VALIDATION: 0.7, "critic/lr(1e-3)": 2.0}
LARGE = run_of("grpo large", [0.1, 0.9], SAID, LOGGED)
BROKEN = run_of("ppo broken", [0.4, nan])
RUNS = [SMALL, LARGE, BROKEN]
CRASH = Finding("crash", Severity.CRITICAL, "it crashed")
HIGH = Finding("kl-high", Severity.WARNING, "high", consequence_of="crash")
FOUND = Verdict((CRASH, HIGH))
AT = Moment(NOW, {"ppo small": Verdict(), "grpo large": FOUND})


@pytest.mark.parametrize(
    ("column", "small", "large"),
    [
        ("name", "ppo small", "grpo large"),
        ("step", 3.0, 2.0),
        ("findings", 0.0, 1.0),
        ("finding", "", "crash, kl-high"),
        ("severity", -1.0, 2.0),
        ("total", None, 400.0),
        ("reward", 0.5, 0.9),
        ("last reward", 0.5, 0.9),
        (REWARD, 0.5, 0.9),
        ("best reward", 0.8, 0.9),
        ("min reward", 0.2, 0.1),
        ("reward@2", 0.8, 0.9),
        ("max reward@1", 0.2, 0.1),
        ("reward@3", 0.5, None),
        ("reward@0", None, None),  # both begin at step 1
        ("kl", 0.02, None),
        ("max kl", 0.3, None),
        ("best kl", None, None),  # neither more nor less is better
        ("val", None, 0.7),
        (VALIDATION, None, 0.7),
        (f"{VALIDATION}@1", None, 0.7),
        ("lr", 1e-6, 5e-6),
        ("learning rate", 1e-6, 5e-6),
        ("optim.lr", 1e-6, 5e-6),
        ("train_batch_size", 64.0, None),
        ("model", None, "Qwen/Qwen3-8B"),
        ("use_kl_loss", "true", "false"),
        ("", None, None),
        ("nothing", None, None),
    ],
)
def test_a_column_is_a_figure_or_a_setting(column, small, large):
    assert (value_of(column, SMALL, AT), value_of(column, LARGE, AT)) == (small, large)


def test_kls_to_different_policies_are_columns_of_their_own():
    other = run_of("trl", [0.1, 0.2], {}, {"train/loss": 1.0, "kl": [0.1, 0.4]})
    both = ["max policy KL", "max reference KL"]
    assert apart(["max kl"], [SMALL, LARGE, other]) == (*both,)
    assert [value_of(one, SMALL, AT) for one in both] == [0.3, None]
    assert [value_of(one, other, AT) for one in both] == [None, 0.4]
    assert apart(["KL@2"], [SMALL, other]) == ("policy KL@2", "reference KL@2")
    assert apart(["kl"], [SMALL, LARGE]) == ("kl",)
    assert apart(["kl_loss_coef"], [SMALL, other]) == ("kl_loss_coef",)
    assert together("kl", [SMALL, other], AT) is None


@pytest.mark.parametrize(
    ("column", "mean", "best"),
    [
        ("reward", 0.7, 0.9),
        ("min reward", 0.15, 0.1),
        ("max kl", 0.3, 0.3),
        ("lr", None, None),
    ],
)
def test_a_group_has_a_mean_and_a_best(column, mean, best):
    found = together(column, [SMALL, LARGE], AT)
    known = None if mean is None else (pytest.approx(mean), best)
    assert found == known


@pytest.mark.parametrize(
    ("condition", "found", "lacking"),
    [
        ("reward > 0.6", "large", ""),
        ("reward >= 0.5 and lr < 2e-6", "small", "1 without lr"),
        ("reward<0.6 or best reward = 0.9", "small large", ""),
        ("not reward > 0.6", "small", ""),  # no number is neither more nor less
        ("reward != 0.5", "large", ""),
        ("lr == 0.000001", "small", "1 without lr"),
        ("finding = kl-high", "large", "1 without finding"),
        ("finding != kl-high", "small", "1 without finding"),
        ("Finding >= Critical", "large", "1 without severity"),
        ("finding < info", "small", "1 without severity"),
        ("not finding", "small broken", ""),
        ("total = 400", "large", "2 without total"),
        ("not lr > 1", "small large", "1 without lr"),
        ("val > 0.9 or reward > 0.8", "large", "2 without val"),
        ("not val", "small broken", ""),
        ("not (val or kl)", "broken", ""),
        ("use_kl_loss and reward > 0", "small", ""),
        ("use_kl_loss = off", "large", "1 without use_kl_loss"),
        ("use_kl_loss = False", "large", "1 without use_kl_loss"),
        ("use_kl_loss != true", "large", "1 without use_kl_loss"),
        ("model = qwen*", "large", "2 without model"),
        ("name = *ppo* and not broken", "small", ""),
        ('ppo and not "ppo broken"', "small", ""),
        ("NOT = x or grpo", None, "no run has NOT"),
        ('"critic/lr(1e-3)" = 2', "large", "2 without critic/lr(1e-3)"),
        ("findings = 0", "small", "1 without findings"),
        ("reward >", None, "unfinished"),
        ("reward > 0.6 and", None, "unfinished"),
        ("not", None, "unfinished"),
        ("reward > 0.6" + " and reward > 0.6" * 20, None, "longer than 300 characters"),
        ("> 3", None, "not understood from “> 3” on"),
        ("and reward > 3", None, "not understood from “and reward > 3” on"),
        ("(reward > 1", None, "not understood from “(reward > 1” on"),
        ("reward > 1)", None, "not understood from “)” on"),
        ("reward > 1 lr < 2", None, "not understood from “< 2” on"),
        ("0.1 < reward < 1", None, "not understood from “< 1” on"),
        ("reward > high", None, "“high” is no number"),
        ("reward > nan", None, "“nan” is no number"),
        ("rewrd > 1", None, "no run has rewrd, alike: reward"),
        ("best kl > 1", None, "no run has best kl, alike: max kl or min kl"),
        ("(" * 140 + "lr > 1" + ")" * 139, None, "not understood"),
        ("__import__('os') > 1", None, "not understood from “__import__('os') > 1” on"),
    ],
)
def test_a_condition_says_what_it_finds_and_what_it_cannot(condition, found, lacking):
    if found is None:
        with pytest.raises(ValueError, match=r".") as raised:
            meeting(condition, RUNS, AT)
        assert str(raised.value).startswith(lacking)
        return
    held, note = meeting(condition, RUNS, AT)
    assert " ".join(run.name.split()[1] for run in held) == found
    assert note == lacking


def test_columns_that_no_run_has_are_named():
    assert parse_columns(" reward,best  val,, reward,trend", RUNS, AT, ["trend"]) == (
        ("reward", "best val", "trend"),
        "",
    )
    titles, said = parse_columns("rewrd, lr", RUNS, AT)
    assert titles == ("rewrd", "lr")
    assert said.startswith("no run has rewrd, alike: reward")


@given(st.text(' ()<>=!"@.-1aeklnorw', max_size=40), st.booleans())
def test_no_condition_and_no_order_loses_or_doubles_a_run(typed, up):
    listed = sorted_by(typed, RUNS, AT, up=up)
    assert sorted(run.name for run in listed) == sorted(run.name for run in RUNS)
    try:
        held, _ = meeting(typed, listed, AT)
    except ValueError:
        return
    assert held == [run for run in listed if run in held]


UNFINISHED = run_of("ppo", [0.2, 0.8, 0.5], {"trainer.total_training_steps": 10})
WARNED = Verdict((Finding("kl-high", Severity.WARNING, "high"),))


@pytest.mark.parametrize(
    ("condition", "verdict", "holds", "may", "lacking"),
    [
        ("step = 2", None, True, True, []),  # reached, or passed
        ("step=3", None, True, True, []),
        ("step = 10", None, False, True, []),
        ("step >= 11", None, False, False, []),  # the tenth is the last
        ("step = 11 or reward > 0.9", None, False, True, []),
        ("step = 11 and reward > 0.1", None, False, False, []),
        ("step > 3 and step < 6", None, False, True, []),
        ("step < 3", None, False, False, []),
        ("not step < 5", None, False, True, []),
        ("not step < 11", None, False, False, []),
        ("step != 3", None, False, False, []),  # not yet reached
        ("reward > 0.6", None, False, True, []),
        ("max reward > 0.6", None, True, True, []),
        ("val > 0.7", None, False, True, ["val"]),
        ("not val > 0.7", None, False, True, ["val"]),
        ("val", None, False, True, ["val"]),
        ("reward", None, True, True, []),
        ("val > 0.7 or step >= 3", None, True, True, ["val"]),
        ("finding >= warning", Verdict(), False, True, []),
        ("finding >= warning", WARNED, True, True, []),
        ("finding >= critical", WARNED, False, True, []),
        ("finding = kl-*", WARNED, True, True, []),
        ("finding", WARNED, True, True, []),
        ("finding", Verdict(), False, True, []),
        ("state != running", None, False, True, []),
        ("state = finished", None, False, True, []),
    ],
)
def test_a_condition_that_is_waited_for(condition, verdict, holds, may, lacking):
    at = Moment(NOW, {} if verdict is None else {"ppo": verdict})
    found = awaited(condition, UNFINISHED, at)
    assert (found.holds, found.may, found.lacking) == (holds, may, lacking)


@pytest.mark.parametrize("word", ["ended?", "stopped?", "Ended*", "!= running"])
def test_a_state_is_meant_by_the_words_of_programs_and_of_screens(word):
    condition = f"state {word}" if "=" in word else f"state = {word}"
    late = Moment(NOW + 1e6, {})
    assert awaited(condition, UNFINISHED, late).holds
    assert meeting(condition, [UNFINISHED], late)[0] == [UNFINISHED]
