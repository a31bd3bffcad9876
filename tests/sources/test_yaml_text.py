"""YAML of anybody's making: what it says, and no more than it is worth."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.records import Unreadable
from verl_tui.sources.fields import yaml_text
from verl_tui.sources.fields.setting_values import scalar
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
def test_a_few_lines_never_stand_for_billions(text: str) -> None:
    found = read_settings(text.encode())
    assert isinstance(found, Unreadable)
    assert found.reason == "not YAML: its aliases stand for too many values"


def test_one_setting_may_be_no_more_either() -> None:
    text = "{" + ", ".join(laughs("[{}]", "[1, 2]").splitlines()) + "}"
    assert str(scalar(text)).startswith("{a0: &a0 [1, 2]")
    assert str(scalar("[" * 10_000)).startswith("[[[")


def test_aliases_as_people_use_them() -> None:
    text = "base: &base {lr: 0.5, clip: 0.2}\nactor: {<<: *base, clip: 0.3}\ncritic: *base\n"
    assert read_settings(text.encode()) == {
        "base.lr": 0.5, "base.clip": 0.2, "actor.lr": 0.5, "actor.clip": 0.3, "critic.lr": 0.5, "critic.clip": 0.2,
    }  # fmt: skip


def test_nothing_but_plain_values_is_made() -> None:
    with pytest.raises(yaml.YAMLError):
        yaml_text.load_yaml("!!python/object/apply:os.system ['true']")


@given(st.text(alphabet="ab:-[]{}&*!<, \n'\"#|1.", max_size=60))
def test_it_says_what_the_library_says(text: str) -> None:
    try:
        expected = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError):
        return
    try:
        found = yaml_text.load_yaml(text)
    except ValueError:  # it holds itself
        assert "&" in text
    else:
        assert repr(found) == repr(expected)
