"""The recorded clock: speed, pauses, steps, and when a fresh monitor is needed."""

from __future__ import annotations

import pytest
from clock import Clock
from recordings import BEGAN, GAP, file_logger, recording, tutorial

from verl_tui.records import Batch
from verl_tui.replay import Playback


@pytest.fixture
def wall():
    return Clock(5.0)


@pytest.fixture
def playback(tmp_path, wall):
    tutorial(tmp_path / "run", range(1, 11))
    return Playback(recording(tmp_path / "run"), speed=20.0, wall=wall)


def steps(playback: Playback) -> list[int]:
    """Take what waits; return the steps of its metrics."""
    found: set[int] = set()
    for news in playback.take():
        for record in news.records if isinstance(news, Batch) else ():
            found.update(getattr(record, "steps", ()))
    return sorted(found)


def test_time_goes_on_so_many_times_as_fast(playback, wall):
    assert playback.now() == BEGAN
    assert steps(playback) == [1]
    assert not playback.waiting
    wall.now += 5
    assert playback.now() == BEGAN + 100
    assert playback.waiting
    assert steps(playback) == [2]
    playback.change_speed(1)
    playback.change_speed(1)
    wall.now += 2
    assert steps(playback) == [3, 4]


def test_speeds_are_round_and_have_ends(playback):
    playback.speed = 30.0
    playback.change_speed(1)
    assert playback.speed == 50
    playback.change_speed(-1)
    playback.change_speed(-1)
    assert playback.speed == 10
    for _ in range(100):
        playback.change_speed(1)
    assert playback.speed == 50_000
    for _ in range(100):
        playback.change_speed(-1)
    assert playback.speed == 0.1


def test_forward_only_more_is_delivered_and_backward_all_is_delivered_anew(playback):
    steps(playback)
    assert playback.go(BEGAN + 4 * GAP) is False
    assert steps(playback) == [2, 3, 4, 5]
    assert playback.go(BEGAN + 2 * GAP) is True
    assert playback.seeking
    assert steps(playback) == [1, 2, 3]
    assert not playback.seeking
    assert playback.go(0.0) is True
    assert playback.now() == BEGAN


def test_it_pauses_where_it_was_asked_to_and_goes_on_from_there(tmp_path, wall):
    tutorial(tmp_path / "run", range(1, 11))
    made = recording(tmp_path / "run")
    asked = {"at": made.when(3), "until": made.when(5)}
    playback = Playback(made, speed=20.0, **asked, wall=wall)
    wall.now += 1000
    assert (playback.now(), playback.paused) == (BEGAN + 4 * GAP, True)
    assert steps(playback) == [1, 2, 3, 4, 5]
    playback.pause(paused=False)
    wall.now += 5
    assert playback.now() == BEGAN + 5 * GAP


def test_the_words_fit_and_say_what_sets_the_pace(tmp_path, playback, wall):
    def words(playback: Playback, width: int) -> str:
        return playback.status("run").words(width)

    assert words(playback, 200).startswith("replay 20× · 2023-11-1")
    assert words(playback, 80).startswith("replay 20× · ")
    assert words(playback, 60) == "20×"
    assert words(playback, 40) == "20×"
    playback.pause(paused=True)
    assert words(playback, 40) == "paused"
    playback.go(playback.recording.end)
    playback.pause(paused=False)
    assert words(playback, 140).endswith("at its end")
    tutorial(tmp_path / "later", range(1, 11), began=BEGAN + 1000 * GAP)
    apart = Playback(recording(tmp_path / "run", tmp_path / "later"), wall=wall)
    assert words(apart, 80).startswith("replay 1× · ")
    file_logger(tmp_path / "other", 5)
    other = Playback(recording(tmp_path / "other"), speed=0.5, wall=wall)
    assert other.status("other").words(140) == "replay 0.5× · a second a step"
    for width in range(20, 250):
        for one in (playback, other):
            assert len(one.status("other").words(width)) <= max(width // 2, 10)
