"""Damaged logs of every format: read as they grow they are what they are at once; `read.py` beside
this reads many more.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from fuzz.damaged import case
from fuzz.reading_twice import difference


@pytest.mark.parametrize("first", [0, pytest.param(100, marks=pytest.mark.thorough)])
def test_a_file_is_read_the_same_however_it_grows(first: int) -> None:
    for seed in range(first, first + (60 if first == 0 else 5000)):
        with TemporaryDirectory() as directory:
            wrong = difference(case(Random(seed)), Path(directory), named=seed % 4 == 0)
        assert wrong is None, f"read.py --seed {seed}: {wrong}"
