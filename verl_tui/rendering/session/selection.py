"""The runs selected for comparison, for one session."""

from __future__ import annotations

from os.path import commonprefix
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

LETTERS = "ABCDEF"
"""Letters that mark selected runs beside their colours; one for each that can be selected."""
_PART = pattern(r"(?<![^\W_])(?:[^\W_]*\d[eE]-)?[^\W_]*$")
"""The last word of a shared start, which may be incomplete; `lr1e-6` is one word."""


class Selection:
    """Selected runs in places, which decide letter and colour."""

    def __init__(self) -> None:
        self.revision = 0
        """Grows with every change."""
        self.baseline: str | None = None
        """The run that others are compared with, None for the first one."""
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def place(self, name: str) -> int | None:
        """Return the place of a run, None if it is not selected."""
        return self._places.get(name)

    def names(self, known: Container[str]) -> list[str]:
        """Return the selected runs that are known, in the order of their places."""
        found = (name for name in self._places if name in known)
        return sorted(found, key=self._places.__getitem__)

    def toggle(self, name: str) -> bool:
        """Select or deselect a run; return False if all places are taken."""
        if self._places.pop(name, None) is None:
            free = {*range(len(LETTERS))}.difference(self._places.values())
            if not free:
                return False
            self._places[name] = min(free)
        self.revision += 1
        return True


def without_shared_start(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them start with."""
    if len(set(names)) < 2:
        return list(names)
    start = commonprefix(names)  # noqa: RUF071 - of letters is what is wanted
    start = _PART.sub("", start)
    if start.rfind("(") > start.rfind(")"):
        start = start[: start.rindex("(")]  # keep brackets in pairs
    return [name[len(start) :] or name for name in names]
