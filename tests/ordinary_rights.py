"""The rights of an ordinary user, for tests that root runs: root may read and write everything."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION = 0x20080522
"""Of the structures below, see capset(2)."""
_OVERRIDES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: to read and write whatever the permissions say."""
_WORDS = ctypes.c_uint32 * 6
"""What is in force, what may be and what is handed on, twice: of the first 32, of the others."""


@contextmanager
def ordinary_rights() -> Iterator[None]:
    """Have permissions hold for root in this thread and those that it starts; skip a test where the
    system has no means to do so.
    """
    if os.geteuid() != 0:
        yield
        return
    before = _rights()
    _take(_WORDS(before[0] & ~_OVERRIDES, *before[1:]))
    try:
        yield
    finally:
        _take(before)


def _rights() -> ctypes.Array[ctypes.c_uint32]:
    words = _WORDS()
    _call("capget", words)
    return words


def _take(words: ctypes.Array[ctypes.c_uint32]) -> None:
    _call("capset", words)


def _call(name: str, words: ctypes.Array[ctypes.c_uint32]) -> None:
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    function = getattr(ctypes.CDLL(None), name, None)
    if function is None or function(header, words) != 0:
        pytest.skip("root may read and write everything here: run this as another user")
