"""Logs that are written in pieces: each point arrives once; `appends.py` beside this writes many."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fuzz.following import followed
from fuzz.growing import Log, Part

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_points_of_logs_that_grow_in_pieces_arrive_once(tmp_path: Path) -> None:
    for seed in range(8):
        result = followed(Random(seed), tmp_path / str(seed))
        assert result.points > 0
        assert result.broken == 0, f"appends.py --seed {seed}: {result.in_words()}"


def test_points_that_are_lost_wrong_or_said_twice_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b'{"step":1,"data":{"a":1}}\n{"step":2,"data":{"a":3}}\n{"step":2,"data":{"a":3}}\n'
    points = {("a", 2): 2.0, ("a", 3): 4.0}
    part = Part("log.jsonl", data, points)
    monkeypatch.setattr(
        "fuzz.following.log",
        lambda folder, random: Log(folder, "planted", [part], random, counted=True),
    )
    result = followed(Random(0), tmp_path)
    assert (result.points, result.lost, result.wrong, result.twice) == (2, 1, 1, 2)
