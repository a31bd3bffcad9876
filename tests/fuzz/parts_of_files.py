"""Takes a file apart into what its reader takes one by one, and puts such parts together.

What is packed is unpacked for this, and checksums are right again in the end: else nearly every
change of a file would end at its first check.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import TYPE_CHECKING

from verl_tui.sources.formats.tensorboard.frames import checksum
from verl_tui.sources.formats.wandb.reader import HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable


def apart(name: str, data: bytes) -> list[bytes]:
    """Return the parts of a file: lines, or what stands between checksums.

    Raises:
        ValueError: It is not whole.
    """
    if name.endswith(".gz"):
        try:
            return gzip.decompress(data).splitlines(keepends=True)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(name) from error
    if "tfevents" in name:
        return _framed(data, 0, 12, 4)
    if name.endswith(".wandb"):
        return _framed(data, len(HEADER), 6, 0)
    return data.splitlines(keepends=True)


def _framed(data: bytes, at: int, before: int, behind: int) -> list[bytes]:
    parts = []
    while at + before <= len(data):
        size = struct.unpack_from("<Q" if behind else "<4xH", data, at)[0]
        size += 0 if behind else 1  # the kind of a chunk of W&B's is none of its length
        if at + before + size + behind > len(data):
            raise ValueError(at)
        parts.append(data[at + before : at + before + size])
        at += before + size + behind
    return parts


def together(name: str, parts: Iterable[bytes]) -> bytes:
    """Return a file of parts."""
    if name.endswith(".gz"):
        return gzip.compress(b"".join(parts), mtime=0)
    if "tfevents" in name:
        return b"".join(map(_event, parts))
    if name.endswith(".wandb"):
        return HEADER + b"".join(
            struct.pack("<IH", zlib.crc32(part), (len(part) - 1) & 0xFFFF) + part
            for part in parts
        )
    return b"".join(parts)


def _event(part: bytes) -> bytes:
    size = struct.pack("<Q", len(part))
    return size + checksum(size) + part + checksum(part)


def is_binary(name: str) -> bool:
    """Return whether the parts of a file are messages of Protocol Buffers."""
    return "tfevents" in name or name.endswith(".wandb")
