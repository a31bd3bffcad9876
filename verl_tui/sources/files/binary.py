"""Recognises bytes that are not text."""

from __future__ import annotations

_LOOKED_AT = 4096
"""Bytes that tell: enough to hold what is between the names in a binary file."""
_TEXT = bytes(
    one for one in range(256) if one >= 0x20 or one in b"\0\a\b\t\n\v\f\r\x1b"
)
_ARCHIVE = b"ustar"
"""How an archive of texts says what it is."""

WIDE = (b"\xff\xfe", b"\xfe\xff")
"""The byte order marks of UTF-16, of which every other byte is zero."""


def is_binary(data: bytes) -> bool:
    """Return whether the beginning of a file is that of no text.

    Zero bytes alone do not tell: a log that was emptied beneath its writer begins with as many as
    it had bytes, and a machine that has failed may leave some anywhere.
    """
    if data.startswith(WIDE):
        return True
    begin = data.lstrip(b"\0")[:_LOOKED_AT]
    if b"\0" not in begin:
        return False
    return bool(begin.translate(None, delete=_TEXT)) or _ARCHIVE in begin
