"""In which order samples are listed: as in the file, or by a number, those without one last."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.samples.query import value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.records import SampleFacts

FILE, GROUP = "file", "group"


class SampleOrder(NamedTuple):
    """What samples are sorted by: file order, group, score, length or any field; ties are left in
    file order.
    """

    field: str = FILE
    down: bool = False

    def sort(self, facts: Iterable[SampleFacts]) -> list[int]:
        """Return the indices of the samples in this order."""
        facts = list(facts)
        if self.field == FILE:
            indices = [fact.index for fact in facts]
            return indices[::-1] if self.down else indices
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
    """Return each sample's group by number, in the order in which groups appear."""
    numbers: dict[object, int] = {}
    return [
        None if fact.group is None else numbers.setdefault(fact.group, len(numbers))
        for fact in facts
    ]


class Fields:
    """The numeric fields of a step's samples, in the order of their appearance; looks at each
    sample once.
    """

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self._seen = 0

    def read(self, facts: Sequence[SampleFacts]) -> None:
        """Take in what is new."""
        if len(facts) < self._seen:
            self.names, self._seen = {}, 0
        for fact in facts[self._seen :]:
            if not self.names.keys() >= fact.numbers.keys():
                self.names.update(dict.fromkeys(fact.numbers))
        self._seen = len(facts)


def choices(fields: Iterable[str]) -> tuple[str, ...]:
    """Return what samples can be sorted by."""
    return (
        FILE,
        "score",
        "length",
        GROUP,
        *(name for name in fields if name not in (FILE, "score", "length", GROUP)),
    )
