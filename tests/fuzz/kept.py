"""The kept corpus: small files that together go every way through the readers that a
search led by these ways has found. Each lies in a folder that is called as the file is.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from random import Random

from fuzz.damaged import Case

CORPUS = Path(__file__).parent / "corpus"
LARGEST = 500_000
"""Bytes of all files together at most."""


def case_of(name: str, data: bytes) -> Case:
    """Return how a file grows: its content alone says at which looks there is how much of it."""
    random = Random(zlib.crc32(data))
    cuts = sorted(random.randint(0, len(data)) for _ in range(random.randint(1, 2)))
    return Case(name, data, (*cuts, len(data)))


def kept() -> list[tuple[str, bytes]]:
    """Return the names and contents of all files that are kept."""
    found = sorted(path for path in CORPUS.glob("*/*") if path.is_file())
    return [(path.parent.name, path.read_bytes()) for path in found]
