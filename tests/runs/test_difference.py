"""In which settings runs differ."""

from __future__ import annotations

import math

import pytest

from verl_tui.comparison.settings import ABSENT, alike, difference, is_naming


def test_only_what_differs_the_telling_first():
    one = {
        "trainer.experiment_name": "a",
        "x.dropout": 0.1,
        "actor.optim.lr": 1e-6,
        "same": 1,
        "data.seed": 1,
    }
    two = {
        "trainer.experiment_name": "b",
        "x.dropout": 0.2,
        "actor.optim.lr": 1e-5,
        "same": 1,
        "only.two": None,
    }
    rows = difference([one, two])
    assert [row.key for row in rows] == [
        "actor.optim.lr",
        "x.dropout",
        "data.seed",
        "only.two",
        "trainer.experiment_name",
    ]
    assert rows[0].values == (1e-6, 1e-5)
    assert rows[2].values == (1, ABSENT)
    assert [row.silent for row in rows] == [False, False, True, True, False]
    assert [row.naming for row in rows] == [False] * 4 + [True]


def test_some_state_it_and_they_differ():
    (row,) = difference([{"a": 1}, {}, {"a": 2}])
    assert not row.silent


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1e-6", 1e-06, True),
        (1, 1.0, True),
        (1, True, False),
        (False, False, True),
        (None, None, True),
        (None, ABSENT, False),
        (ABSENT, ABSENT, True),
        (math.nan, math.nan, True),
        ("a", "b", False),
        ("None", None, False),
    ],
)
def test_alike(one, other, same):
    assert alike(one, other) is same
    assert alike(other, one) is same


@pytest.mark.parametrize(
    ("key", "naming"),
    [
        ("trainer.default_local_dir", True),
        ("trainer.experiment_name", True),
        ("data.train_files", True),
        ("wandb.start_time", True),
        ("wandb.id", True),
        ("output_dir", True),
        ("run_name", True),
        ("critic.model.tokenizer_path", True),
        ("actor_rollout_ref.model.path", False),
        ("actor_rollout_ref.rollout.name", False),
        ("actor_rollout_ref.actor.optim.lr", False),
        ("data.seed", False),
        ("algorithm.filter_groups.metric", False),
        ("reward_model.reward_manager", False),
    ],
)
def test_what_only_names_something(key, naming):
    assert is_naming(key) is naming
