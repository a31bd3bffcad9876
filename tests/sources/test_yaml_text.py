"""YAML of anybody's making: what it says, and no more than it is worth."""

from __future__ import annotations

import pytest
import yaml

from verl_tui.records import Unreadable
from verl_tui.sources.fields.setting_values import load_yaml
from verl_tui.sources.folders.setting_files import read_settings

LEVELS = 40


def laughs(level: str, first: str) -> str:
    """Return a text of a few lines of which each stands for the one before nine times."""
    levels = (
        f"a{number}: &a{number} " + level.format(", ".join([f"*a{number - 1}"] * 9))
        for number in range(1, LEVELS)
    )
    return "\n".join((f"a0: &a0 {first}", *levels))


@pytest.mark.parametrize(
    "text",
    [
        laughs("[{}]", "[1, 2]"),
        laughs("{{<<: [{}]}}", "{x: 1}"),
        "a: &a [*a]",
        "&a {b: *a, c: *a}",
        "a: &a " + "x" * 100_000 + "\nb: [" + ", ".join(["*a"] * 100) + "]",
    ],
)  # fmt: skip
def test_a_few_lines_never_stand_for_billions(text):
    found = read_settings(text.encode())
    assert isinstance(found, Unreadable)
    assert found.reason == "not YAML: its aliases stand for too many values"


def test_nothing_but_plain_values_is_made():
    with pytest.raises(yaml.YAMLError):
        load_yaml("!!python/object/apply:os.system ['true']")
