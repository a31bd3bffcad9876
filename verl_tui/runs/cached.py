"""Remember what a function returned for a run until the run changes."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Protocol, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable


class Revised(Protocol):
    """Anything with a number that grows with each change."""

    @property
    def revision(self) -> int:
        """Grows with every change."""
        ...


R = TypeVar("R", bound=Revised)
T = TypeVar("T")


def cached_by_revision(function: Callable[[R], T]) -> Callable[[R], T]:
    """Have a function answer from memory until its argument's revision is another.

    A screen with two hundred runs asks each of them for its pace many times between two records.
    """
    known: WeakKeyDictionary[R, tuple[int, T]] = WeakKeyDictionary()

    @wraps(function)
    def cached(subject: R) -> T:
        found = known.get(subject)
        if found is None or found[0] != subject.revision:
            found = known[subject] = (subject.revision, function(subject))
        return found[1]

    return cached
