"""Remember what a function returned for a run until the run changes."""

from __future__ import annotations

from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S")
T = TypeVar("T")


def cached_by_revision(function: Callable[[S], T]) -> Callable[[S], T]:
    """Make a function answer from memory until its argument's revision changes.

    A screen with two hundred runs asks each of them for its pace many times between two records.
    """
    return _cached(function, attrgetter("revision"))


def cached_by_keys(function: Callable[[S], T]) -> Callable[[S], T]:
    """Make a function answer from memory until its argument has a new metric: keys hardly ever
    change.
    """
    return _cached(function, attrgetter("keys_revision"))


def _cached(
    function: Callable[[S], T], version_of: Callable[[S], int]
) -> Callable[[S], T]:
    known: WeakKeyDictionary[S, tuple[int, T]] = WeakKeyDictionary()

    @wraps(function)
    def cached(subject: S) -> T:
        version = version_of(subject)
        found = known.get(subject)
        if not found or found[0] != version:
            found = known[subject] = (version, function(subject))
        return found[1]

    return cached
