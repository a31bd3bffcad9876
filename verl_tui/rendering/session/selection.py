"""Which runs the user has selected to be compared; for one session only."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

LETTERS = "ABCDEF"
"""What marks the selected runs wherever they are shown, with or without colours; so many can be
selected.
"""
_PART = re.compile(r"(?:[^\W_]*\d[eE]-)?[^\W_]*$")
"""The last word of a name, which may go on in one name and end in another; `lr1e-6` is one word."""


class Selection:
    """Runs in places of their own: the place gives a run its letter and its colour, and stays as
    long as it can.
    """

    def __init__(self) -> None:
        self.revision = 0
        """Grows with every change."""
        self.baseline: str | None = None
        """The run that the others are held against, None for the first one."""
        self._places: dict[str, int] = {}
        self._former: dict[str, int] = {}
        """Places that runs had when they were selected last."""

    def __len__(self) -> int:
        return len(self._places)

    def place(self, name: str) -> int | None:
        """Return the place of a run, None where it is not selected."""
        return self._places.get(name)

    def names(self, known: Container[str]) -> list[str]:
        """Return the selected runs among those that are known, by their places."""
        return sorted(
            (name for name in self._places if name in known), key=self._places.__getitem__
        )

    def toggle(self, name: str) -> bool:
        """Select a run, or take that back; return False where all places are taken."""
        if name in self._places:
            del self._places[name]
        else:
            free = [place for place in range(len(LETTERS)) if place not in self._places.values()]
            if not free:
                return False
            former = self._former.get(name)
            self._places[name] = self._former[name] = former if former in free else free[0]
        self.revision += 1
        return True

    def clear(self) -> None:
        """Take every selection back."""
        self._places.clear()
        self.baseline = None
        self.revision += 1


def without_shared_start(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them begin with: in little room only what tells
    them apart counts.
    """
    if len(set(names)) < 2:
        return list(names)
    ends = zip(min(names), max(names), strict=False)
    start = _PART.sub(
        "", "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    )
    if start.rfind("(") > start.rfind(")"):
        start = start[: start.rindex("(")]  # a bracket that closes needs one that opens
    return [name[len(start) :] or name for name in names]
