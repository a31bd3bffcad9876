"""Short walks through the app in hostile worlds; `walk.py` beside this takes long ones."""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING

import pytest
from fuzz.player import BrokenError, limited, played
from fuzz.shorten import shortened
from fuzz.steps import walk
from inside_textual import quick_pilots

if TYPE_CHECKING:
    from pathlib import Path

FOUND = {
    "an arrow on a screen of one row": "size:80x1 left right f3 left right size:1x1 left right",
    "an axis of times beyond the calendar": "x right x m x x escape enter x x",
    "smoothing and zooming near the largest float": "s s s plus plus plus y Y S minus enter s plus y",
    "a paste of escape sequences": "ctrl+p paste:3 a quiet escape slash paste:4 quiet escape",
}
"""Keys that once ended the app, or wrote to the terminal what it obeys."""


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the user's."""
    for name in ("NO_COLOR", "FORCE_COLOR", "VERL_TUI_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VERL_TUI_STATE", "")


@pytest.mark.parametrize("seed", [3, pytest.param(9, marks=pytest.mark.thorough)])
def test_a_short_walk_breaks_nothing(seed: int, tmp_path: Path) -> None:
    with quick_pilots():
        player, error = played(tmp_path, seed, list(walk(seed, 60)))
    assert error is None, (player.steps, error)


def test_keys_that_broke_the_app_do_so_no_more(tmp_path: Path) -> None:
    steps = " quiet escape escape size:120x40 ".join(FOUND.values()).split()
    with quick_pilots():
        player, error = played(tmp_path, 3, steps)
    assert error is None, (player.steps[-20:], error)


def test_the_same_seed_walks_the_same_way() -> None:
    assert list(walk(5, 200)) == list(walk(5, 200))
    assert list(walk(5, 200)) != list(walk(6, 200))


def test_a_walk_that_breaks_is_shortened_to_the_step_that_does(tmp_path: Path) -> None:
    steps = ["j", "k", "unknown:1"]  # no such step: the player itself fails there
    with quick_pilots():
        _, error = played(tmp_path / "first", 3, steps)
        assert isinstance(error, AttributeError)
        assert list(shortened(tmp_path, 3, steps, error, 20.0)) == ["unknown:1"]


def test_an_endless_step_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.player.PATIENCE", 0.05)
    with pytest.raises(BrokenError, match="no answer"), limited("no answer"):
        sum(0 for _ in count())


def test_walks_go_to_every_kind_of_step() -> None:
    kinds = {
        step.partition(":")[0] for step in islice(walk(1, 4000), 4000) if ":" in step
    }
    assert {
        "size",
        "click",
        "wheel",
        "paste",
        "world",
        "clock",
        "theme",
        "app",
    } <= kinds
