"""Writes event files as plainly as can be, and reads what they say."""

from __future__ import annotations

import itertools
import struct
from math import nan
from pathlib import Path

from verl_tui.records import Histogram, MetricRows
from verl_tui.sources.formats import tensorboard

NAME = "events.out.tfevents.1700000000.host.1.0"


def slow_crc(data: bytes) -> int:
    """Return the CRC-32C, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = slow_crc(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(data: bytes) -> bytes:
    header = struct.pack("<Q", len(data))
    return header + masked(header) + data + masked(data)


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(step: int, time: float, *values: bytes) -> bytes:
    stated = b"\x10" + varint(step) if step else b""
    summary = b"".join(field(1, value) for value in values)
    return framed(b"\x09" + struct.pack("<d", time) + stated + field(5, summary))


def scalar(tag: str, value: float) -> bytes:
    return field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def plugin(name: str) -> bytes:
    return field(9, field(1, field(1, name.encode())))


def histogram(
    tag: str, low: float, high: float, limits: list[float], counts: list[float]
) -> bytes:
    ends = b"\x09" + struct.pack("<d", low) + b"\x11" + struct.pack("<d", high)
    lists = [struct.pack(f"<{len(one)}d", *one) for one in (limits, counts)]
    return field(1, tag.encode()) + field(
        5, ends + field(6, lists[0]) + field(7, lists[1])
    )


def tensor(tag: str, data: bytes, kind: str) -> bytes:
    return field(1, tag.encode()) + field(8, data) + (plugin(kind) if kind else b"")


def text(tag: str, *texts: str) -> bytes:
    return tensor(
        tag, b"\x08\x07" + b"".join(field(8, t.encode()) for t in texts), "text"
    )


VERSION = framed(b"\x09" + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2"))
TAGS = ("actor/loss", "critic/score/mean", "perf/throughput", "actor/grad_norm")


def scalars(steps: range) -> list[bytes]:
    """Return events of several tags: enough of each step length to be read together."""
    return [
        event(step, 1.7e9 + step + n / 100, scalar(tag, step + n / 8))
        for step in steps
        for n, tag in enumerate(TAGS)
    ]  # fmt: skip


def mixed() -> list[bytes]:
    """Return events of every kind that is read, and some that are not."""
    return [
        event(3, 1.7e9, scalar("a", 1.0), scalar("b", nan)),
        event(3, 1.7e9, histogram("h", 0.5, 2.5, [1.0, 2.0, 3.0], [2.0, 2.0, 4.0])),
        event(3, 1.7e9, text("rollout/sample_0/text_summary", "hello")),
        event(
            3,
            1.7e9,
            field(1, b"picture") + field(4, b"\x08\x01\x10\x01" + field(4, b"png")),
        ),
        event(
            3,
            1.7e9,
            tensor("t", b"\x08\x01" + field(4, struct.pack("<f", 0.25)), "scalars"),
        ),
        # the session starts
        framed(b"\x09" + struct.pack("<d", 1.7e9) + field(7, b"\x08\x01")),
        framed(
            b"\x09" + struct.pack("<d", 1.7e9) + field(4, b"graph") + field(99, b"?")
        ),
    ]


def read(
    data: bytes, cuts: tuple[int, ...] = ()
) -> tuple[dict[str, list[tuple[str, ...]]], list[object]]:
    """Return what stands in a file, by key and as samples and complaints, read in pieces."""
    reader = tensorboard.reader(Path(NAME))
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    numbers: dict[str, list[tuple[str, ...]]] = {}
    others: list[object] = []
    for start, stop in itertools.pairwise(edges):
        for record in reader.feed(data[start:stop]):
            if not isinstance(record, MetricRows):
                others += [] if isinstance(record, Histogram) else [record]
                continue
            (key,), (column,) = record.keys, record.columns
            assert record.progress
            assert not record.mean
            for row in zip(
                record.steps, record.times, record.orders, column, strict=True
            ):
                numbers.setdefault(key, []).append(tuple(map(repr, row)))
    others.extend(reader.finish())
    return numbers, sorted(others, key=repr)
