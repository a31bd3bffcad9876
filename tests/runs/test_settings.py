"""Of several sources of a setting the most trusted one that states a value holds."""

from __future__ import annotations

import itertools

import pytest

from verl_tui.records import Settings
from verl_tui.runs.settings import (
    RunSettings,
    SettingsLayer,
    as_whole_number,
    layer_of,
    number,
)

SOURCES = {
    "console": 1,
    "wandb/run-1/run-1.wandb": 2,
    "outputs/.hydra/overrides.yaml": 3,
    "outputs/.hydra/config.yaml": 4,
    "logs/config.yaml": 5,
}


@pytest.mark.parametrize("count", range(1, len(SOURCES) + 1))
def test_the_most_trusted_source_holds_in_whatever_order_they_are_read(count):
    said = list(SOURCES.items())[-count:]
    for order in itertools.permutations(said):
        known = RunSettings()
        for origin, value in order:
            known.apply(Settings({"lr": value}, origin))
        assert known.values == {"lr": said[0][1]}
        assert known.origins["lr"] == said[0][0]
        assert [value for _, value in known.statements("lr")] == [
            value for _, value in said
        ]


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("console", SettingsLayer.TRAINER),
        ("out/checkpoint-250/trainer_state.json", SettingsLayer.TRAINER),
        ("wandb/run-x/run-x.wandb", SettingsLayer.WANDB),
        ("wandb/run-x/files/config.yaml", SettingsLayer.WANDB),
        ("out/.hydra/overrides.yaml", SettingsLayer.OVERRIDES),
        ("overrides.yaml", SettingsLayer.OVERRIDES),
        ("out/.hydra/config.yaml", SettingsLayer.HYDRA),
        ("run_7/config.yaml", SettingsLayer.FILE),
    ],
)
def test_what_kind_of_source_a_path_is(origin, expected):
    assert layer_of(origin) is expected


def test_what_is_not_resolved_gives_way_to_what_is():
    known = RunSettings()
    known.apply(Settings({"a": "${oc.env:HOME}", "b": 1}, "x/.hydra/overrides.yaml"))
    known.apply(Settings({"a": "/home/me"}, "x/config.yaml"))
    assert known.values == {"a": "/home/me", "b": 1}
    assert known.origins["a"] == "x/config.yaml"


def test_references_to_other_settings_are_followed():
    known = RunSettings()
    config = {
        "data.n": 512,
        "one": "${data.n}",
        "two": "${one}",
        "three": "${oc.env:X}",
        "four": "${.n}",
        "gone": "${x}",
    }
    known.apply(
        Settings({**config, "loop": "${pool}", "pool": "${loop}"}, ".hydra/config.yaml")
    )
    assert (known.values["one"], known.values["two"]) == (512, 512)
    for key in ("three", "four", "gone"):
        assert known.values[key] == config[key]
    assert known.values["loop"].startswith("${")


def test_settings_are_found_by_the_end_of_their_names():
    known = RunSettings()
    known.apply(
        Settings(
            {
                "actor_rollout_ref.actor.optim.lr": 1,
                "critic.optim.lr": 2,
                "config/optim/lr": 3,
            },
            "console",
        )
    )
    assert known.find(["optim.lr"]) == ("critic.optim.lr", 2)
    assert known.find(["nothing", "actor.optim.lr"]) == (
        "actor_rollout_ref.actor.optim.lr",
        1,
    )
    assert known.find(["config/optim/lr"]) == ("config/optim/lr", 3)
    assert known.find(["ptim.lr"]) is None
    known.apply(Settings({"lr": 4}, "console"))
    assert known.find(["lr"]) == ("lr", 4)


@pytest.mark.parametrize(
    ("value", "as_number", "as_whole"),
    [
        (3, 3.0, 3),
        ("1e-6", 1e-6, None),
        (2.0, 2.0, 2),
        (-1, -1.0, None),
        (True, None, None),
        (None, None, None),
        ("x", None, None),
        ("inf", float("inf"), None),
        (10**400, float("inf"), None),
    ],
)
def test_numbers_however_they_were_written(value, as_number, as_whole):
    assert number(value) == as_number
    assert as_whole_number(value) == as_whole
