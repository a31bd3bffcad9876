"""Walks through the app in hostile worlds, short ones unless the environment asks for more (see
`seeds.py`); `VERL_TUI_WALK` is a walk that was reported.
"""

from __future__ import annotations

import os
from itertools import count, islice
from typing import TYPE_CHECKING

import pytest
from fuzz.player import BrokenError, limited, played
from fuzz.seeds import seeds, steps
from fuzz.shorten import shortened
from fuzz.steps import walk
from inside_textual import quick_pilots

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORTENING = 20.0
"""Seconds in which a walk that breaks something is shortened."""
FOUND = {
    "an arrow on a screen of one row": "size:80x1 left right f3 left right size:1x1 left right",
    "an axis of times beyond the calendar": "x right x m x x escape enter x x",
    "smoothing and zooming near the largest float": "s s s plus plus plus y Y S minus enter s plus y",
    "a paste of escape sequences": "ctrl+p paste:3 a quiet escape slash paste:4 quiet escape",
}
"""Keys that once ended the app, or wrote to the terminal what it obeys."""


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No state of another start, and no waiting."""
    monkeypatch.setenv("VERL_TUI_STATE", "")
    with quick_pilots():
        yield


@pytest.mark.parametrize("seed", seeds(4, first=3))
def test_a_walk_breaks_nothing(seed, tmp_path):
    given = os.environ.get("VERL_TUI_WALK", "").split()
    player, error = played(tmp_path / "0", seed, given or list(walk(seed, steps(30))))
    if error is not None:
        least = shortened(tmp_path, seed, player.steps, error, SHORTENING)
        again = f"VERL_TUI_SEEDS={seed}:{seed + 1} VERL_TUI_WALK='{' '.join(least)}'"
        raise AssertionError(
            f"broken after {len(player.steps)} steps: {again}"
        ) from error


def test_keys_that_broke_the_app_do_so_no_more(tmp_path):
    keys = " quiet escape escape size:120x40 ".join(FOUND.values()).split()
    player, error = played(tmp_path, 3, keys)
    assert error is None, (player.steps[-20:], error)


def test_the_same_seed_walks_the_same_way_over_every_kind_of_step():
    taken = list(islice(walk(1, 4000), 4000))
    assert taken[:200] == list(walk(1, 200)) != list(walk(6, 200))
    kinds = {step.partition(":")[0] for step in taken if ":" in step}
    assert kinds >= {
        "size",
        "click",
        "wheel",
        "paste",
        "world",
        "clock",
        "theme",
        "app",
    }


def test_a_walk_that_breaks_is_shortened_to_the_step_that_does(tmp_path):
    taken = ["j", "unknown:1"]  # no such step: the player itself fails there
    _, error = played(tmp_path / "first", 3, taken)
    assert isinstance(error, AttributeError)
    assert list(shortened(tmp_path, 3, taken, error, 20.0)) == ["unknown:1"]


def test_an_endless_step_is_ended(monkeypatch):
    monkeypatch.setattr("fuzz.player.PATIENCE", 0.05)
    with pytest.raises(BrokenError, match="no answer"), limited("no answer"):
        sum(0 for _ in count())
