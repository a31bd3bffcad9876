"""Which samples of a step are listed, and in which order."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from verl_tui.rendering.samples.order import Fields, SampleOrder
from verl_tui.rendering.samples.score_summary import ScoreSummary, summarise
from verl_tui.rendering.samples.table import number_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.on_demand.sample_browser import Page
    from verl_tui.records import SampleFacts
    from verl_tui.rendering.samples.query import SampleQuery

_GROWTH = 8
"""While a step is read its list is made anew when it has grown by an eighth: sorting has its
price.
"""


class SampleListing:
    """The samples of a page that pass the filter, in order. Worked out anew only where something
    has changed.
    """

    def __init__(self) -> None:
        self.facts: Sequence[SampleFacts] = ()
        """What the list was made of."""
        self.visible: list[int] = []
        """Indices of the samples that are listed."""
        self.scores = ScoreSummary()
        """How all samples scored, listed or not."""
        self.groups: dict[str, int] = {}
        """The number of each group."""
        self.complete = False
        """Whether nothing more is to come."""
        self.filtered = False
        """Whether less than everything is asked for, or not in the order of the file."""
        self.revision = 0
        """Grows with every change."""
        self._fields = Fields()
        self._source: Sequence[SampleFacts] | None = None
        """The page's own list of facts, which grows; another one where the file has begun anew."""
        self._key: object = None
        self._places: dict[int, int] = {}

    @property
    def fields(self) -> tuple[str, ...]:
        """The numeric fields of the samples."""
        return tuple(self._fields.names)

    def update(self, page: Page, query: SampleQuery, order: SampleOrder) -> None:
        """Take in the samples of a page that are known by now."""
        hits = page.hits(query) if query.searches else None
        facts, rows = page.facts, len(hits.rows) if hits is not None else -1
        begun = facts is not self._source or len(facts) < len(self.facts)
        read = page.complete and len(facts) >= page.count
        self.filtered = bool(query) or order != SampleOrder()
        self.complete = read and (hits is None or hits.complete)
        known = len(facts) if begun or read else self._worth_listing(len(facts))
        key = (known, rows, query, order)
        if not begun and key == self._key:
            return
        self._key, self._source = key, facts
        if begun:
            self._fields = Fields()
        if begun or known != len(self.facts):
            self._know(facts[:known])
        self._list(query, order, set(hits.rows[:rows]) if hits is not None else None)

    def _worth_listing(self, known: int) -> int:
        """Return how many samples to list while a step is read: those so far, until enough came."""
        listed = len(self.facts)
        return known if known >= listed * (_GROWTH + 1) // _GROWTH else listed

    def _list(self, query: SampleQuery, order: SampleOrder, hits: set[int] | None) -> None:
        passed = (fact for fact in self.facts if query.holds(fact))
        if hits is not None:
            passed = (fact for fact in passed if fact.index in hits)
        self.visible = order.sort(passed)
        self._places = {index: at for at, index in enumerate(self.visible)}
        self.revision += 1

    def _know(self, facts: Sequence[SampleFacts]) -> None:
        self.facts = facts
        self._fields.read(facts)
        self.scores = summarise(facts)
        self.groups = number_groups(facts)

    def place_of(self, index: int | None) -> int | None:
        """Return where in the list a sample stands, None if it is not listed."""
        return self._places.get(index) if index is not None else None

    def mates(self, index: int) -> list[int]:
        """Return all samples of a sample's prompt, listed or not, in the order of the file."""
        if not 0 <= index < len(self.facts) or self.facts[index].group is None:
            return [index]
        group = self.facts[index].group
        return [fact.index for fact in self.facts if fact.group == group]

    def extreme(self, current: int | None, *, best: bool) -> int | None:
        """Return the best or worst sample of the list.

        Of several that score the same it is the one after the current.
        """
        scores: dict[int, float] = {}
        for index in self.visible:
            score = self.facts[index].score
            if score is not None and isfinite(score):
                scores[index] = score
        if not scores:
            return None
        top = (max if best else min)(scores.values())
        same = [index for index, score in scores.items() if score == top]
        at = self.place_of(current)
        if at is None:
            return same[0]
        return next((index for index in same if self._places[index] > at), same[0])
