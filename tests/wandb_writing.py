"""Writes W&B's logs as wandb does."""

from __future__ import annotations

import struct
import zlib

from verl_tui.sources.formats import record_log, wandb


def varint(value: int) -> bytes:
    out = bytearray()
    value &= 2**64 - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def item(number: int, key: str | tuple[str, ...], value: str) -> bytes:
    parts = [field(1, key)] if isinstance(key, str) else [field(2, one) for one in key]
    return field(number, b"".join(parts) + field(16, value))


def history(step: int, numbers: dict[str | tuple[str, ...], str]) -> bytes:
    items = b"".join(
        item(1, (key,) if isinstance(key, str) else key, value)
        for key, value in numbers.items()
    )
    return field(2, items + field(2, field(1, step) if step else b""))


def stats(time: float, numbers: dict[str, str]) -> bytes:
    moment = field(1, int(time)) + field(2, round(time % 1 * 1e9))
    items = b"".join(item(3, key, value) for key, value in numbers.items())
    return field(7, field(2, moment) + items)


def written(records: list[bytes]) -> bytes:
    """Return the log of records: numbered, each with the control record that wandb adds."""
    control = field(16, field(4, "slot"))
    numbered = enumerate(records, 1)
    return logged(wandb.HEADER, [field(1, at) + control + one for at, one in numbered])


def logged(header: bytes, records: list[bytes]) -> bytes:
    """Return the log of records, in chunks and blocks."""
    log = bytearray(header)
    for record in records:
        rest = record
        first = True
        while first or rest:
            left = record_log.BLOCK - len(log) % record_log.BLOCK
            if left < 7:
                log += bytes(left)
                continue
            part, rest = rest[: left - 7], rest[left - 7 :]
            begins = (record_log.FULL, record_log.FIRST)
            goes_on = (record_log.LAST, record_log.MIDDLE)
            kind = (begins if first else goes_on)[bool(rest)]
            body = bytes((kind,)) + part
            log += struct.pack("<IH", zlib.crc32(body), len(part)) + body
            first = False
    return bytes(log)
