"""The list of a step's samples: filtered and sorted."""

from __future__ import annotations

from math import isfinite, nan
from operator import itemgetter
from typing import TYPE_CHECKING

from verl_tui.on_demand.samples import Hits
from verl_tui.rendering.samples.query import (
    SampleOrder,
    SampleQuery,
    are_mates,
    number_groups,
    parse_query,
)
from verl_tui.rendering.samples.scores import summarise
from verl_tui.rendering.text.search import Matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.on_demand.samples import SamplePage
    from verl_tui.records import SampleFacts

_NO_SEARCH = Hits(SampleQuery(), complete=True)
_GROWTH = 8
"""While a step is read its list is rebuilt at each growth by an eighth, since sorting costs."""


class SampleListing:
    """The samples of a step that pass the filter, in order; rebuilt only when something changed."""

    def __init__(self) -> None:
        self.visible: list[int] = []
        """Indices of the listed samples, in order."""
        self.complete = False
        """True once all samples are known and searched."""
        self.filtered = False
        """True with a filter, or in another order than the file's."""
        self._source: Sequence[SampleFacts] | None = None
        """The step's own growing list of facts, replaced when its file is rewritten."""
        self._inputs: object = None
        """Samples known, rows searched, filter and order that the list was made from."""
        self._places: dict[int, int] = {}
        self._know(())

    def update(self, page: SamplePage, query: SampleQuery, order: SampleOrder) -> None:
        """Rebuild the list from the samples known by now, if something changed."""
        hits = page.hits(query) if query.searches else _NO_SEARCH
        facts = page.facts
        rows = len(hits.rows)
        read = page.complete and len(facts) >= page.count
        self.filtered = (bool(query), order) != (False, SampleOrder())
        self.complete = read and hits.complete
        rewritten = facts is not self._source or len(facts) < len(self.facts)
        if rewritten:
            self._source = facts
            self._know(())
        inputs = (self._worth_listing(len(facts), read=read), rows, query, order)
        if rewritten or inputs != self._inputs:
            self._inputs = inputs
            if inputs[0] != len(self.facts):
                self._know(facts[: inputs[0]])
            self._list(query, order, hits.rows[:rows])

    def _worth_listing(self, known: int, *, read: bool) -> int:
        """Return the number of samples to list."""
        listed = len(self.facts)
        return known if read or known >= listed * (_GROWTH + 1) // _GROWTH else listed

    def _list(
        self, query: SampleQuery, order: SampleOrder, rows: Sequence[int]
    ) -> None:
        passed = filter(query.holds, self.facts)
        if query.searches:
            found = set(rows)
            passed = filter(lambda fact: fact.index in found, passed)
        self.visible = order.sort(passed)
        self._places = {index: at for at, index in enumerate(self.visible)}

    def _know(self, facts: Sequence[SampleFacts]) -> None:
        self.facts = facts
        """The samples that the list was made from."""
        self.fields = tuple(
            dict.fromkeys(name for fact in facts for name in fact.numbers)
        )
        """The numeric fields of the samples."""
        self.scores = summarise(facts)
        """Scores of all samples, listed or not."""
        self.groups = number_groups(facts)
        """The number of each group."""

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

    def fact(self, index: int | None) -> SampleFacts | None:
        """Return what is known of a sample, listed or not."""
        return (
            self.facts[index] if index is not None and index < len(self.facts) else None
        )

    def place_of(self, index: int | None) -> int | None:
        """Return the position of a sample in the list, None if it is not listed."""
        return None if index is None else self._places.get(index)

    def mates(self, fact: SampleFacts) -> list[int]:
        """Return the samples of the same prompt, listed or not, in the order of the file."""
        return [other.index for other in self.facts if are_mates(fact, other)]

    def extreme(self, current: int | None, *, best: bool) -> int | None:
        """Return the best or worst listed sample; of several, the next one after the current."""
        known = [(at, one) for at in self.visible if isfinite(one := self._score(at))]
        if not known:
            return None
        _, extreme = (max if best else min)(known, key=itemgetter(1))
        same = [at for at, score in known if score == extreme]
        place = self.place_of(current)
        later = (one for one in same if place is not None and self._places[one] > place)
        return next(later, same[0])

    def _score(self, at: int) -> float:
        score = self.facts[at].score
        return nan if score is None else score
