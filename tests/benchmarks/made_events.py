"""Event files of TensorBoard for the benchmark: a gigabyte in some seconds, a thousand steps at a
time.
"""

from __future__ import annotations

import struct
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

TAGS = tuple(
    f"{('actor', 'critic', 'perf', 'timing_s')[n % 4]}/{'metric_' * (1 + n % 5)}{n}"
    for n in range(100)
)
_BEGAN = 1.7e9
"""Seconds since the epoch at which the events begin."""
_SECONDS = 20.0
"""Of a step."""
_LONGER = (1, 1 << 7, 1 << 14, 1 << 21)
"""Steps from which on a step takes a byte more."""
_AT_ONCE = 2000
"""Steps that are made together: some megabytes."""


def write_events(path: Path, steps: int) -> None:
    """Write a number of each of 100 tags at each step from 1 on, as TensorBoard's writer does."""
    version = struct.pack("<Bd", 0x09, _BEGAN) + b"\x1a\x0dbrain.Event:2"
    with path.open("wb") as file:
        file.write(_framed(np.frombuffer(version, "u1").reshape(1, -1)).tobytes())
        for size, (begin, end) in enumerate(pairwise(_LONGER), 1):
            for first in range(begin, min(end, steps + 1), _AT_ONCE):
                stop = min(first + _AT_ONCE, end, steps + 1)
                file.write(_events(np.arange(first, stop), size))


def _events(steps: NDArray[np.int64], size: int) -> bytes:
    """Return the records of all tags at steps that each take so many bytes."""
    chance = np.random.default_rng(int(steps[0]))
    digits = (steps[:, None] >> (7 * np.arange(size)) & 0x7F).astype("u1")
    digits[:, :-1] |= 0x80
    records = []
    for at, tag in enumerate(TAGS):
        name = tag.encode()
        value = bytes((0x0A, len(name))) + name + b"\x15"
        summary = bytes((0x2A, len(value) + 6, 0x0A, len(value) + 4)) + value
        times = _BEGAN + steps * _SECONDS + at * 1e-4
        fields = (
            _constant(b"\x09", len(steps)),
            times.astype("<f8").view("u1").reshape(-1, 8),
            _constant(b"\x10", len(steps)),
            digits,
            _constant(summary, len(steps)),
            chance.random(len(steps), "f4").astype("<f4").view("u1").reshape(-1, 4),
        )
        records.append(_framed(np.concatenate(fields, axis=1)))
    return np.concatenate(records, axis=1).tobytes()


def _constant(text: bytes, rows: int) -> NDArray[np.uint8]:
    return np.broadcast_to(np.frombuffer(text, "u1"), (rows, len(text)))


def _framed(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return records, one a row, with their length and the checksums of both."""
    rows, size = data.shape
    length = _constant(struct.pack("<Q", size), rows)
    return np.concatenate((length, _checksums(length), data, _checksums(data)), axis=1)


def _checksums(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the masked CRC-32C of each row, as 4 bytes."""
    crc = np.full(len(data), 0xFFFFFFFF, "u4")
    for column in data.T:
        crc = _table()[(crc ^ column) & 0xFF] ^ (crc >> 8)
    crc = ~crc
    masked: NDArray[np.uint32] = ((crc >> 15) | (crc << 17)) + np.uint32(0xA282EAD8)
    return masked.astype("<u4").view(np.uint8).reshape(-1, 4)


@cache
def _table() -> NDArray[np.uint32]:
    """Return what each byte changes of a CRC-32C."""
    table = np.arange(256, dtype="u4")
    for _ in range(8):
        table = (table >> 1) ^ np.where(table & 1, np.uint32(0x82F63B78), np.uint32(0))
    return table
