"""Many numbers in few bytes, for all that is logged and hardly ever looked at."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, TypeGuard, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Literal

_BLOCK = 256
"""Numbers packed together: with fewer, the blocks' own bytes weigh more; with more, more must be
unpacked for a single number.
"""
_BYTES = 8
"""Bytes of a number."""
_TOP = _BYTES - 1 if sys.byteorder == "little" else 0
"""Position of the byte that holds a number's sign."""

Number = TypeVar("Number", int, float)


class Column(Sequence[Number]):
    """Numbers of 8 bytes, in the order in which they came.

    The newest are kept as they are. Of every 256 before them, first all first bytes are kept, then
    all second ones, and so on ("byte shuffle", as HDF5 calls it); where all of them are alike, only
    one is kept. So a metric that never changes costs next to nothing, places in a file cost 1 to 2
    bytes, numbers of single precision 4 to 5, and others 7 to 8. All come back exactly as they
    were.
    """

    __slots__ = ("_newest", "_packed")

    def __init__(self, typecode: Literal["d", "q"]) -> None:
        """Begin without numbers.

        Args:
            typecode: That of `array`: `d` for floating-point numbers, `q` for integers.
        """
        self._packed: list[bytes] = []
        self._newest: array[Number] = array(typecode)

    def __len__(self) -> int:
        return len(self._packed) * _BLOCK + len(self._newest)

    def __iter__(self) -> Iterator[Number]:
        return iter(self[:])

    @overload
    def __getitem__(self, at: int) -> Number: ...

    @overload
    def __getitem__(self, at: slice) -> array[Number]: ...

    def __getitem__(self, at: int | slice) -> Number | array[Number]:
        if isinstance(at, slice):
            start, stop, stride = at.indices(len(self))
            if stride == 1:
                return self._between(start, stop)
            return self[:][at]
        place = range(len(self))[at]
        block = place // _BLOCK
        packed = block < len(self._packed)
        return (self._unpacked(block) if packed else self._newest)[place % _BLOCK]

    def extend(self, numbers: Iterable[Number]) -> None:
        """Append numbers."""
        self._newest.extend(numbers)
        if len(self._newest) >= _BLOCK:
            whole = len(self._newest) // _BLOCK * _BLOCK
            for at in range(0, whole, _BLOCK):
                self._packed.append(_pack(self._newest[at : at + _BLOCK].tobytes()))
            del self._newest[:whole]

    def first(self, count: int) -> Column[Number]:
        """Return the first so many numbers as a column, which shares the packed blocks."""
        found: Column[Number] = copy(self)
        found._packed = self._packed[: count // _BLOCK]
        found._newest = self[len(found._packed) * _BLOCK : count]
        return found

    def cut(self, at: int) -> None:
        """Remove the numbers from an index on."""
        block = at // _BLOCK
        if block < len(self._packed):
            self._newest = self._unpacked(block)
            del self._packed[block:]
        del self._newest[at - len(self._packed) * _BLOCK :]

    def _between(self, start: int, stop: int) -> array[Number]:
        """Return the numbers from one index up to another."""
        packed = len(self._packed) * _BLOCK
        if start >= packed:
            return self._newest[start - packed : max(start, stop) - packed]
        first = start // _BLOCK
        last = -(-min(stop, packed) // _BLOCK)
        found = self._newest[:0]
        for block in range(first, last):
            found += self._unpacked(block)
        found += self._newest[: max(0, stop - packed)]
        return found[start - first * _BLOCK : max(start, stop) - first * _BLOCK]

    def _unpacked(self, block: int) -> array[Number]:
        found = self._newest[:0]
        found.frombytes(_unpack(self._packed[block]))
        return found


def may_be_odd(columns: Iterable[Sequence[float]]) -> bool:
    """Return False if all numbers of some columns are seen to be finite by a quick test that does
    not look at each of them.

    All bits of the exponent of a number that is not finite are set, so that the byte with its sign
    is 7f or ff (IEEE 754); the same is true of finite numbers only beyond 10^231.
    """
    packed = [
        column if _is_packed(column) else array("d", column) for column in columns
    ]
    tops = b"".join(packed)[_TOP::_BYTES]
    return b"\x7f" in tops or b"\xff" in tops


def _is_packed(numbers: Sequence[float]) -> TypeGuard[array[float]]:
    return isinstance(numbers, array) and numbers.typecode == "d"


def _pack(numbers: bytes) -> bytes:
    """Return a block: a byte that marks the positions where bytes differ, then the bytes of each
    position.
    """
    differ = 0
    places = []
    for place in range(_BYTES):
        found = numbers[place::_BYTES]
        if found.count(found[0]) == _BLOCK:
            found = found[:1]
        else:
            differ |= 1 << place
        places.append(found)
    return b"".join((bytes((differ,)), *places))


def _unpack(block: bytes) -> bytes:
    numbers = bytearray(_BYTES * _BLOCK)
    differ = block[0]
    at = 1
    for place in range(_BYTES):
        count = _BLOCK if differ >> place & 1 else 1
        numbers[place::_BYTES] = block[at : at + count] * (_BLOCK // count)
        at += count
    return bytes(numbers)
