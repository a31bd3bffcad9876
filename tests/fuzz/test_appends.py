"""Logs that are written in pieces: each point arrives once; `appends.py` beside this writes many."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fuzz.following import followed

if TYPE_CHECKING:
    from pathlib import Path


def test_points_of_logs_that_grow_in_pieces_arrive_once(tmp_path: Path) -> None:
    for seed in range(8):
        result = followed(Random(seed), tmp_path / str(seed))
        assert result.points > 0
        assert result.broken == 0, f"appends.py --seed {seed}: {result.in_words()}"
