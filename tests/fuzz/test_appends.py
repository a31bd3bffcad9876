"""Logs that are written in pieces, also cleared and replaced by copies: each point arrives
once.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fuzz.following import followed
from fuzz.seeds import seeds

if TYPE_CHECKING:
    from pathlib import Path


def test_points_of_logs_that_grow_in_pieces_arrive_once(tmp_path: Path) -> None:
    for seed in seeds(8):
        result = followed(Random(seed), tmp_path / str(seed))
        assert result.points > 0
        assert result.broken == 0, (
            f"VERL_TUI_SEEDS={seed}:{seed + 1}: {result.in_words()}"
        )
