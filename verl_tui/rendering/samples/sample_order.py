"""Order of listed samples: as in the file, or by a number, those without it last."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.samples.query import value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.records import SampleFacts

FILE = "file"
GROUP = "group"


class SampleOrder(NamedTuple):
    """A sort key: file order, group, score, length or any field; ties stay in file order."""

    field: str = FILE
    down: bool = False

    def arrow(self) -> str:
        """Return the sign of the direction."""
        return "▲▼"[self.down]

    def sort(self, facts: Iterable[SampleFacts]) -> list[int]:
        """Return the indices of the samples in this order."""
        facts = list(facts)
        if self.field == FILE:
            indices = [fact.index for fact in facts]
            if self.down:
                return indices[::-1]
            return indices
        known: list[tuple[float, int]] = []
        lacking: list[int] = []
        for key, fact in zip(self._keys(facts), facts, strict=True):
            if key is None or isnan(key):
                lacking.append(fact.index)
            else:
                known.append((key, fact.index))
        known.sort(key=lambda pair: pair[0], reverse=self.down)
        return [index for _, index in known] + lacking

    def _keys(self, facts: Sequence[SampleFacts]) -> list[float | None]:
        if self.field == GROUP:
            return _groups(facts)
        return [value_of(fact, self.field) for fact in facts]


def _groups(facts: Sequence[SampleFacts]) -> list[float | None]:
    """Number each sample's group in the order of appearance."""
    numbers: dict[object, int] = {}
    return [
        None if fact.group is None else numbers.setdefault(fact.group, len(numbers))
        for fact in facts
    ]


class Fields:
    """Numeric fields of a step's samples, in the order of appearance; reads each sample once."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self._seen = 0

    def read(self, facts: Sequence[SampleFacts]) -> None:
        """Add the fields of new samples."""
        if len(facts) < self._seen:
            self.names = {}
            self._seen = 0
        for fact in facts[self._seen :]:
            if not self.names.keys() >= fact.numbers.keys():
                self.names.update(dict.fromkeys(fact.numbers))
        self._seen = len(facts)


def choices(fields: Iterable[str]) -> tuple[str, ...]:
    """Return the keys that samples can be sorted by."""
    return tuple(dict.fromkeys((FILE, "score", "length", GROUP, *fields)))
