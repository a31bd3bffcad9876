"""Remember what a function returned for a run until the run changes."""

from __future__ import annotations

from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S")
F = TypeVar("F", bound="Callable[..., Any]")


def cached_by_revision(function: F) -> F:
    """Make a function answer from memory until its first argument's revision changes, or the others
    do, such as the time.

    A screen with two hundred runs asks each of them for its pace many times between two records,
    and for its state many times in one drawing.
    """
    return _cached(function, attrgetter("revision"))


def cached_by_keys(function: F) -> F:
    """Make a function answer from memory until its argument has a new metric: keys hardly ever
    change.
    """
    return _cached(function, attrgetter("keys_revision"))


def _cached(function: F, version_of: Callable[[S], int]) -> F:
    known: WeakKeyDictionary[S, tuple[object, Any]] = WeakKeyDictionary()

    @wraps(function)
    def cached(subject: S, *others: object) -> Any:
        version = version_of(subject), others
        found = known.get(subject)
        if not found or found[0] != version:
            found = known[subject] = (version, function(subject, *others))
        return found[1]

    return cached  # type: ignore[return-value]
