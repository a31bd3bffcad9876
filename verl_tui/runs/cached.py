"""Remember a result until it is asked of something else, or what a function returned for a run
until the run changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import attrgetter
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")


class LastResult:
    """The result for one subject, computed again only for another."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: tuple[object, Any] | None = None

    def of(self, subject: object, compute: Callable[[], T]) -> T:
        """Return the result for a subject.

        Args:
            subject: All that the result depends on; equal subjects have the same result.
            compute: Returns the result where it is not known.
        """
        if not self._known or self._known[0] != subject:
            self._known = (subject, compute())
        found: T = self._known[1]
        return found


def cached_by_revision(function: F, version: str = "revision") -> F:
    """Make a function answer from memory until its first argument's revision changes, or the others
    do, such as the time.

    A screen with two hundred runs asks each of them for its pace many times between two records,
    and for its state many times in one drawing.
    """
    version_of = attrgetter(version)
    known: WeakKeyDictionary[Any, tuple[object, Any]] = WeakKeyDictionary()

    @wraps(function)
    def cached(subject: object, *others: object) -> Any:
        asked = version_of(subject), others
        found = known.get(subject)
        if not found or found[0] != asked:
            found = known[subject] = (asked, function(subject, *others))
        return found[1]

    return cached  # type: ignore[return-value]


def cached_by_keys(function: F) -> F:
    """Make a function answer from memory until its argument has a new metric: keys hardly ever
    change.
    """
    return cached_by_revision(function, "keys_revision")
