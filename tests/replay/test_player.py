"""The recorded clock: speed, pauses, steps, and when a fresh monitor is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tapes import BEGAN, GAP, file_logger, tape, tutorial

from verl_tui.records import Batch
from verl_tui.replay import Player, usual_speed

if TYPE_CHECKING:
    from pathlib import Path


class Wall:
    """The present, which goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def player(tmp_path: Path, wall: Wall) -> Player:
    tutorial(tmp_path / "run", range(1, 11))
    return Player(tape(tmp_path / "run"), speed=20.0, wall=wall)


def steps(player: Player) -> list[int]:
    """Take what waits; return the steps of its metrics."""
    batches = [news for news in player.take() if isinstance(news, Batch)]
    return sorted(
        {step for batch in batches for r in batch.records for step in getattr(r, "steps", ())}
    )


def test_time_goes_on_so_many_times_as_fast(player, wall):
    assert player.now() == BEGAN
    assert steps(player) == [1]
    assert not player.waiting
    wall.now += 5
    assert player.now() == BEGAN + 100
    assert player.waiting
    assert steps(player) == [2]
    player.speed = 100.0
    wall.now += 2
    assert steps(player) == [3, 4]


def test_a_pause_stops_the_clock(player, wall):
    player.paused = True
    wall.now += 60
    assert (player.now(), player.paused) == (BEGAN, True)
    player.paused = False
    wall.now += 1
    assert player.now() == BEGAN + 20


def test_speeds_are_round_and_have_ends(player):
    player.speed = 30.0
    player.faster()
    assert player.speed == 50
    player.slower()
    player.slower()
    assert player.speed == 10
    for _ in range(100):
        player.faster()
    assert player.speed == 50_000
    for _ in range(100):
        player.slower()
    assert player.speed == 0.1


def test_forward_only_more_is_told_and_backward_all_is_told_anew(player):
    steps(player)
    assert player.go(BEGAN + 4 * GAP) is False
    assert steps(player) == [2, 3, 4, 5]
    assert player.go(BEGAN + 2 * GAP) is True
    assert player.seeking
    assert steps(player) == [1, 2, 3]
    assert not player.seeking
    assert player.go(0.0) is True
    assert player.now() == BEGAN


def test_whoever_stops_taking_goes_on_where_it_was(player):
    player.go(BEGAN + 9 * GAP)
    taken = player.take()
    for news in taken:
        if isinstance(news, Batch):
            break
    taken.close()
    assert player.waiting
    list(player.take())
    assert not player.waiting


def test_it_pauses_where_it_was_asked_to_and_goes_on_from_there(tmp_path, wall):
    tutorial(tmp_path / "run", range(1, 11))
    made = tape(tmp_path / "run")
    player = Player(made, speed=20.0, at=made.when(3), until=made.when(5), wall=wall)
    wall.now += 1000
    assert (player.now(), player.paused) == (BEGAN + 4 * GAP, True)
    assert steps(player) == [1, 2, 3, 4, 5]
    player.paused = False
    wall.now += 5
    assert player.now() == BEGAN + 5 * GAP


def test_the_words_fit_and_say_what_sets_the_pace(tmp_path, player, wall):
    def words(player: Player, width: int) -> str:
        return player.standing("run").words(width)

    assert words(player, 200).startswith("replay 20× · 2023-11-1")
    assert words(player, 80).startswith("replay 20× · ")
    assert words(player, 60).startswith("20× · ")
    assert words(player, 40) == "20×"
    player.paused = True
    assert words(player, 40) == "paused"
    player.go(player.tape.end)
    player.paused = False
    assert words(player, 140).endswith("at its end")
    file_logger(tmp_path / "other", 5)
    other = Player(tape(tmp_path / "other"), speed=0.5, wall=wall)
    assert other.standing("other").words(140) == "replay 0.5× · a second a step"
    for width in range(20, 250):
        for one in (player, other):
            assert len(one.standing("other").words(width)) <= max(width // 2, 10)


@pytest.mark.parametrize(
    ("steps_made", "speed"), [(2, 1.0), (10, 5.0), (100, 100.0), (1000, 1000.0)]
)
def test_a_replay_takes_some_minutes_unless_told_otherwise(tmp_path, steps_made, speed):
    tutorial(tmp_path / "run", range(1, steps_made + 1))
    made = tape(tmp_path / "run")
    assert usual_speed(made) == speed
    assert (made.end - made.start) / speed <= 180
