"""Recognises bytes that are not text."""

from __future__ import annotations

_LOOKED_AT = 4096
"""Bytes that tell: enough to hold what is between the names in a binary file."""
_TEXT = bytes(
    one for one in range(256) if one >= 0x20 or one in b"\0\a\b\t\n\v\f\r\x1b"
)
_ARCHIVE = b"ustar"
"""How an archive of texts says what it is."""

PACKED = "compressed otherwise than by gzip: unpack it to have it read"
WIDE = "UTF-16, as PowerShell writes it: convert it to UTF-8 to have it read"
_PACKED = (
    b"BZh",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
    b"PK\x03\x04",
)
"""How bzip2, xz, zstd, lz4 and zip begin, as their specifications say."""
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""The byte order marks of UTF-16, of which every other byte is zero."""


def why_unread(begin: bytes) -> str | None:
    """Return why a file that begins so cannot be read as a text, None where it may be one."""
    if begin.startswith(_PACKED):
        return PACKED
    return WIDE if begin.startswith(_WIDE) else None


def is_binary(data: bytes) -> bool:
    """Return whether the beginning of a file is that of no text.

    Zero bytes alone do not tell: a log that was emptied beneath its writer begins with as many as
    it had bytes, and a machine that has failed may leave some anywhere.
    """
    if data.startswith(_WIDE):
        return True
    begin = data.lstrip(b"\0")[:_LOOKED_AT]
    if b"\0" not in begin:
        return False
    return bool(begin.translate(None, delete=_TEXT)) or _ARCHIVE in begin
