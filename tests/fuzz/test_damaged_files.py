"""Damaged logs of every format: read as they grow they are what they are at once."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from fuzz.damaged import case
from fuzz.reading_twice import difference
from fuzz.seeds import seeds


def test_a_file_is_read_the_same_however_it_grows():
    for seed in seeds(40):
        with TemporaryDirectory() as directory:
            wrong = difference(case(Random(seed)), Path(directory), named=seed % 4 == 0)
        assert wrong is None, f"VERL_TUI_SEEDS={seed}:{seed + 1}: {wrong}"
