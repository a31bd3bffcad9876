"""The beginnings of files, and why some are those of no text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.sources.files.tail import opened

if TYPE_CHECKING:
    from pathlib import Path

DEEPEST = 4 * 2**20
"""Bytes in which a console's first step is searched, validation samples may come before it; and
those read where one of the first records does not end before: five thousand metrics, a long chat.
"""
PACKED = "compressed: unpack it to have it read"
WIDE = "UTF-16, as PowerShell writes it: convert it to UTF-8 to have it read"
_UNREAD = {
    b"\x1f\x8b": PACKED,  # gzip
    b"BZh": PACKED,  # bzip2
    b"\xfd7zXZ\0": PACKED,
    b"\x28\xb5\x2f\xfd": PACKED,  # zstd
    b"\x04\x22\x4d\x18": PACKED,  # lz4
    b"PK\x03\x04": PACKED,  # zip
    b"\xff\xfe": WIDE,
    b"\xfe\xff": WIDE,
}
"""How files begin that cannot be read as a text, and why."""
_TEXT = bytes({*b"\0\a\b\t\n\v\f\r\x1b", *range(0x20, 0x100)})
_LOOKED_AT = 4096
"""Bytes that tell: enough to hold what is between the names in a binary file."""


def why_unread(begin: bytes) -> str | None:
    """Return why a file that begins so cannot be read as a text, None where it may be one."""
    return next((why for sign, why in _UNREAD.items() if begin.startswith(sign)), None)


def is_binary(data: bytes) -> bool:
    """Return whether the beginning of a file is that of no text.

    Zero bytes alone do not tell: a log that was emptied beneath its writer begins with as many as
    it had bytes, and a machine that has failed may leave some anywhere.
    """
    if why_unread(data) == WIDE:
        return True
    begin = data.lstrip(b"\0")[:_LOOKED_AT]
    odd = (
        begin.translate(None, delete=_TEXT) or b"ustar" in begin
    )  # an archive of texts
    return b"\0" in begin and bool(odd)


def head(path: Path, limit: int) -> bytes:
    """Return the first bytes of a file; raise OSError where it cannot be read."""
    with opened(path) as file:
        return file.read(limit)
