"""Rows that are made when they come into sight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT = 2000
"""Rows that are remembered: more than a screenful by far."""


class LazyStrips(Sequence[Strip]):
    """A long list of strips, each made when first asked for and then remembered."""

    def __init__(self, count: int, make: Callable[[int], Strip]) -> None:
        """Describe the list.

        Args:
            count: How many there are.
            make: Makes one.
        """
        self._count = count
        self._make = make
        self._made: dict[int, Strip] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Strip: ...
    @overload
    def __getitem__(self, at: slice) -> list[Strip]: ...
    def __getitem__(self, at: int | slice) -> Strip | list[Strip]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(self._count))]
        if not 0 <= at < self._count:
            raise IndexError(at)
        if at not in self._made:
            if len(self._made) >= _KEPT:
                self._made.clear()
            self._made[at] = self._make(at)
        return self._made[at]

    def grown(self, count: int) -> LazyStrips:
        """Return the same strips with more behind them."""
        more = LazyStrips(count, self._make)
        more._made = self._made
        return more
