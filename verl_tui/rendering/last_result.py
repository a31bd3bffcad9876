"""A result that is remembered until it is asked of something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LastResult(Generic[T]):
    """The result for one subject, computed again only for another."""

    def __init__(self) -> None:
        self._known: tuple[object, T] | None = None

    def of(self, subject: object, compute: Callable[[], T]) -> T:
        """Return the result for a subject.

        Args:
            subject: All that the result depends on; equal subjects have the same result.
            compute: Returns the result where it is not known.
        """
        if not self._known or self._known[0] != subject:
            self._known = (subject, compute())
        return self._known[1]
