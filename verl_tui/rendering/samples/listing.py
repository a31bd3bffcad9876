"""The list of a step's samples: filtered and sorted."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from verl_tui.on_demand.samples import Hits
from verl_tui.rendering.filter_words import Matches
from verl_tui.rendering.samples.query import SampleQuery, parse_query
from verl_tui.rendering.samples.sample_order import Fields, SampleOrder
from verl_tui.rendering.samples.sample_rows import number_groups
from verl_tui.rendering.samples.score_summary import ScoreSummary, summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.on_demand.samples import SamplePage
    from verl_tui.records import SampleFacts

_NO_SEARCH = Hits(SampleQuery(), complete=True)
_GROWTH = 8
"""While a step is read its list is rebuilt at each growth by an eighth, since sorting costs."""


class SampleListing:
    """The samples of a step that pass the filter, in order; rebuilt only when something changed."""

    def __init__(self) -> None:
        self.facts: Sequence[SampleFacts] = ()
        """The samples that the list was made from."""
        self.visible: list[int] = []
        """Indices of the listed samples, in order."""
        self.scores = ScoreSummary()
        """Scores of all samples, listed or not."""
        self.groups: dict[str, int] = {}
        """The number of each group."""
        self.complete = False
        """True once all samples are known and searched."""
        self.filtered = False
        """True with a filter, or in another order than the file's."""
        self.revision = 0
        """Grows with every change."""
        self._fields = Fields()
        self._source: Sequence[SampleFacts] | None = None
        """The step's own growing list of facts, replaced when its file is rewritten."""
        self._inputs: object = None
        """Samples known, rows searched, filter and order that the list was made from."""
        self._places: dict[int, int] = {}

    @property
    def fields(self) -> tuple[str, ...]:
        """The numeric fields of the samples."""
        return tuple(self._fields.names)

    def update(self, page: SamplePage, query: SampleQuery, order: SampleOrder) -> None:
        """Rebuild the list from the samples known by now, if something changed."""
        hits = page.hits(query) if query.searches else _NO_SEARCH
        facts = page.facts
        rows = len(hits.rows)
        read = page.complete and len(facts) >= page.count
        self.filtered = bool(query) or order != SampleOrder()
        self.complete = read and hits.complete
        # a rewritten file
        if facts is not self._source or len(facts) < len(self.facts):
            self._source = facts
            self._fields = Fields()
            self._inputs = None
            self._know(())
        known = len(facts) if read else self._worth_listing(len(facts))
        inputs = (known, rows, query, order)
        if inputs == self._inputs:
            return
        self._inputs = inputs
        if known != len(self.facts):
            self._know(facts[:known])
        self._list(query, order, hits.rows[:rows])

    def _worth_listing(self, known: int) -> int:
        """Return the number of samples to list while a step is read."""
        listed = len(self.facts)
        if known >= listed * (_GROWTH + 1) // _GROWTH:
            return known
        return listed

    def _know(self, facts: Sequence[SampleFacts]) -> None:
        self.facts = facts
        self._fields.read(facts)
        self.scores = summarise(facts)
        self.groups = number_groups(facts)

    def _list(
        self, query: SampleQuery, order: SampleOrder, rows: Sequence[int]
    ) -> None:
        passed: Iterable[SampleFacts] = filter(query.holds, self.facts)
        if query.searches:
            hits = set(rows)
            passed = (fact for fact in passed if fact.index in hits)
        self.visible = order.sort(passed)
        self._places = {index: at for at, index in enumerate(self.visible)}
        self.revision += 1

    def asked(self, text: str) -> SampleQuery:
        """Return a filter that the user has typed.

        Raises:
            ValueError: It is invalid, or compares a number that no sample has; the message says so.
        """
        query = parse_query(text)
        unknown = query.unknown(self.fields)
        if unknown and self.complete:
            known = ", ".join(("score", "len", *self.fields))
            raise ValueError(
                f"no sample has a number called {unknown[0]}: there are {known}"
            )
        return query

    def matches(self, text: str) -> dict[str, Matches] | None:
        """Count the samples that pass a filter that is being typed; None if that is unknown yet:
        the filter is invalid, or searches in texts that have not been read.
        """
        try:
            query = parse_query(text)
        except ValueError:
            return None
        if query.searches or query.unknown(self.fields) or not self.facts:
            return None
        holding = sum(map(query.holds, self.facts))
        return {"samples": Matches(holding, len(self.facts))}

    def place_of(self, index: int | None) -> int | None:
        """Return the position of a sample in the list, None if it is not listed."""
        if index is None:
            return None
        return self._places.get(index)

    def mates(self, index: int) -> list[int]:
        """Return the samples of the same prompt, listed or not, in the order of the file."""
        if not 0 <= index < len(self.facts) or self.facts[index].group is None:
            return [index]
        group = self.facts[index].group
        return [fact.index for fact in self.facts if fact.group == group]

    def extreme(self, current: int | None, *, best: bool) -> int | None:
        """Return the best or worst listed sample; of several, the next one after the current."""
        scores = self._finite_scores()
        if not scores:
            return None
        extreme = (max if best else min)(scores.values())
        same = [index for index, score in scores.items() if score == extreme]
        at = -1 if current is None else self._places.get(current, -1)
        for index in same:
            if self._places[index] > at:
                return index
        return same[0]

    def _finite_scores(self) -> dict[int, float]:
        """Return the scores of the listed samples by index."""
        scores = ((index, self.facts[index].score) for index in self.visible)
        return {
            index: score
            for index, score in scores
            if score is not None and isfinite(score)
        }
