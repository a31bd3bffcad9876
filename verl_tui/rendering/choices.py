"""Going through choices in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_Choice = TypeVar("_Choice")


def next_choice(choices: Sequence[_Choice], current: _Choice, way: int = 1) -> _Choice:
    """Return the choice so many places after the current one, from the last on to the first."""
    at = choices.index(current) + way
    return choices[at % len(choices)]
