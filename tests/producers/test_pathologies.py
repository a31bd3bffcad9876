"""The bench of real trainings: its list, its extracts, and how what was found is held against the
truth.
"""

from __future__ import annotations

import json
import math

import pytest
from log_reading import read_run, values
from producers.pathologies import curves
from producers.pathologies.extracts import FORMS, Extract, extract, read, replay, write
from producers.pathologies.judge import Outcome, judge
from producers.pathologies.training import Fault, Training, halves

from verl_tui.health.finding import Episode, Severity

SCALARS = Extract(
    "falls",
    {"beta": 0.02, "max_steps": 3, "max_completion_length": 16},
    {
        1: {"reward": 0.5, "rewards/right/mean": 0.25, "completions/mean_length": 7.0},
        2: {
            "reward": math.nan,
            "rewards/right/mean": math.nan,
            "completions/mean_length": 8.0,
            "eval_reward": 0.5,
        },
        3: {"reward": 0.75, "rewards/right/mean": 0.5, "completions/mean_length": 9.0},
    },
)
UNDER_VERL = {
    "reward": "critic/score/mean",
    "rewards/right/mean": "reward_extra/right/mean",
    "completions/mean_length": "response_length/mean",
    "eval_reward": "val-core/trl/reward/mean@1",
}
UNDER_TRL = {name: name for name in UNDER_VERL}
SICK = Training(
    "falls", "it falls", "first", 100, 0, {}, Fault(40, 50, ("reward-cliff",))
)
WELL = Training("learns", "it learns", "first", 100, 0, {}, true=("dead-groups",))


def episode(id: str, raised: int, severity: Severity = Severity.WARNING) -> Episode:
    return Episode(id, severity, raised, raised)


def test_an_extract_is_read_as_it_was_written(tmp_path):
    write(SCALARS, tmp_path / "falls.json")
    assert repr(read(tmp_path / "falls.json")) == repr(SCALARS)


def test_an_extract_rounds_and_knows_what_was_not_finite(tmp_path):
    history = [
        {"step": 1, "reward": 0.123456, "num_tokens": 400.0, "epoch": 0.1},
        {"step": 2, "reward": None, "grad_norm": math.inf},
        {"step": 2, "eval_reward": 0.5, "eval_runtime": 3.0},
        {"step": 2, "train_runtime": 30.0, "total_flos": 0.0},
    ]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    made = extract(tmp_path, {"beta": 0.1, "output_dir": "out"})
    assert made.settings == {"beta": 0.1}
    assert made.records[1] == {"reward": 0.1235}
    assert repr(made.records[2]) == repr(
        {"reward": math.nan, "grad_norm": math.nan, "eval_reward": 0.5}
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_replay_is_read_value_for_value(form, tmp_path):
    names = UNDER_VERL if form.startswith("verl") else UNDER_TRL
    run = read_run(replay(SCALARS, form, tmp_path / "run"))
    for step, record in SCALARS.records.items():
        for key, value in record.items():
            found = values(run, names[key]).get(step, math.nan)
            assert found == pytest.approx(value, nan_ok=True), (key, step)


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        ([episode("reward-cliff", 60)], Outcome.IN_TIME),
        ([episode("reward-cliff", 61)], Outcome.LATE),
        ([episode("kl-high", 45)], Outcome.PARTLY),
        ([episode("reward-cliff", 39)], Outcome.MISSED),
        ([], Outcome.MISSED),
    ],
)
def test_a_fault_is_named_in_time_late_in_part_or_not_at_all(raised, outcome):
    assert judge(SICK, raised).outcome is outcome


def test_a_warning_from_before_a_fault_is_reported():
    found = judge(SICK, [episode("kl-high", 20), episode("reward-cliff", 45)])
    assert [one.id for one in found.early] == ["kl-high"]
    assert found.named is not None


def test_a_healthy_training_may_have_what_is_true_of_it():
    assert judge(WELL, [episode("dead-groups", 50)]).outcome is Outcome.QUIET
    assert judge(WELL, [episode("kl-high", 50)]).outcome is Outcome.FALSE


def test_curves_are_shown_by_their_means():
    header, *lines = curves.table(SCALARS)
    assert header.split() == ["falls", "1", "2", "3"]
    assert ["rewards/right/mean", "0.25", "nan", "0.5"] in [
        line.split() for line in lines
    ]


def test_the_halves_share_no_name_seed_or_task():
    tuned = halves()["tuned"]
    held_out = halves()["held_out"]
    for of in (
        lambda one: {one.name},
        lambda one: {one.seed},
        lambda one: set(one.task.split("+")),
    ):
        assert not set().union(*map(of, tuned)) & set().union(*map(of, held_out))
    assert len({one.name for one in (*tuned, *held_out)}) == len(tuned) + len(held_out)


def test_every_fault_has_room_to_be_seen():
    for one in (*halves()["tuned"], *halves()["held_out"]):
        if one.fault:
            assert 1 <= one.fault.onset <= one.fault.by <= one.steps
