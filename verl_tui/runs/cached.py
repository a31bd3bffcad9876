"""What was reckoned of a run holds until the run changes."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.runs.run import Run

T = TypeVar("T")


def while_unchanged(reckon: Callable[[Run], T]) -> Callable[[Run], T]:
    """Have a function of a run answer from memory until the run's revision is another.

    A screen with two hundred runs asks each of them for its pace many times between two records.
    """
    known: WeakKeyDictionary[Run, tuple[int, T]] = WeakKeyDictionary()

    @wraps(reckon)
    def remembered(run: Run) -> T:
        found = known.get(run)
        if found is None or found[0] != run.revision:
            found = known[run] = (run.revision, reckon(run))
        return found[1]

    return remembered
