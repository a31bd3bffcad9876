"""The list of a step's samples: filtered and sorted, their scores, and a row for each: as many
numbers as fit, and words of its response.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache, partial
from math import isfinite, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.means import finite, gathered, mean
from verl_tui.on_demand.samples import Hits, SamplePage
from verl_tui.rendering.samples.answers import final_answer
from verl_tui.rendering.samples.query import (
    FILE,
    GROUP,
    SampleOrder,
    SampleQuery,
    are_mates,
    number_groups,
    parse_query,
    value_of,
)
from verl_tui.rendering.samples.speakers import parse, special
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import Piece, Pieces, fit, fit_left
from verl_tui.rendering.text.search import Matches
from verl_tui.rendering.text.table import GAP, FittedTable, TextColumn
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from verl_tui.records import SampleFacts


@dataclass(frozen=True, slots=True)
class StepScores:
    """The finite scores of a step's samples."""

    count: int
    """Number of samples, with a score or without."""
    scores: Sequence[float]
    mean: float
    binary: bool
    """True if a score is only right or wrong."""
    groups: Mapping[str, Sequence[float]]
    """Scores of each prompt with more than one."""

    def mark(self, fact: SampleFacts) -> Piece:
        """Return a glyph with its role: right or wrong, else above or below the mean of its group,
        or of the step where it has no group.
        """
        score = fact.score
        if score is None:
            return "·", "dim"
        if not isfinite(score):
            return "!", "critical"
        if self.binary:
            return ("✓", "good") if score > 0 else ("✗", "critical")
        group = self.groups.get(fact.group or "")
        centre = mean(group) if group else self.mean
        if abs(score - centre) <= 1e-9 * max(1.0, abs(centre)):
            return "=", "dim"
        if score > centre:
            return "▲", "good"
        return "▼", "critical" if score < 0 else "warning"

    def score_words(self, fact: SampleFacts, word: str = "score ") -> Piece:
        """Return a sample's score with its glyph, and the role."""
        if fact.score is None:
            return "no score", "dim"
        glyph, role = self.mark(fact)
        return f"{glyph} {word}{compact(fact.score)}", role

    def group_words(self, group: str | None) -> str:
        """Say how many of a prompt's samples are right, or their mean; empty without a group."""
        scores = self.groups.get(group or "")
        if scores is None:
            return ""
        if self.binary:
            return f"{sum(score > 0 for score in scores)} of {len(scores)} right"
        return f"group mean {compact(mean(scores))}"

    def words(self, *, complete: bool = True) -> Pieces:
        """Return the figures, those that say most first: `score 0.41 ± 0.49`, `dead groups 12%`,
        `512 samples`.
        """
        words = []
        if self.scores:
            apart = [score - self.mean for score in self.scores]
            spread = sqrt(fmean(one * one for one in apart))
            spread_words = f" ± {compact(spread)}" * (len(apart) > 1)
            words.append(f"score {compact(self.mean)}{spread_words}")
        if self.groups:
            dead = sum(min(one) == max(one) for one in self.groups.values())
            words.append(f"dead groups {dead / len(self.groups):.0%}")
        words.append(counted(self.count, "sample") + " so far" * (not complete))
        return [(" · " * (at > 0) + one, "") for at, one in enumerate(words)]


def right_or_wrong(scores: Set[float]) -> bool:
    """Return whether scores say no more than that something is right or wrong."""
    return bool(scores) and (scores <= {0, 1} or scores <= {-1, 1})


def summarise(facts: Sequence[SampleFacts]) -> StepScores:
    """Sum up the scores of a step's samples."""
    known = [
        (one.group, one.score)
        for one in facts
        if one.score is not None and isfinite(one.score)
    ]
    scores = [score for _, score in known]
    return StepScores(
        len(facts),
        scores,
        mean(scores) if scores else 0.0,
        right_or_wrong({*scores}),
        {
            group: several
            for group, several in gathered(known).items()
            if group is not None and len(several) > 1
        },
    )


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
        facts, known, rows = page.facts, len(page.facts), len(hits.rows)
        read = page.complete and known >= page.count
        self.filtered = (bool(query), order) != (False, SampleOrder())
        self.complete = read and hits.complete
        if facts is not self._source:
            self._source, self._inputs = facts, None
            self._know(())
        listed = len(self.facts)
        if not read and known < listed * (_GROWTH + 1) // _GROWTH:
            known = listed
        inputs = known, rows, query, order
        if inputs != self._inputs:
            self._inputs = inputs
            if known != listed:
                self._know(facts[:known])
            self._list(query, order, hits.rows[:rows])

    def _list(
        self, query: SampleQuery, order: SampleOrder, rows: Sequence[int]
    ) -> None:
        passed = filter(query.holds, self.facts) if query else iter(self.facts)
        if query.searches:
            found = set(rows)
            passed = filter(lambda fact: fact.index in found, passed)
        self.visible = order.sort(passed, self.groups)
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
        return {"samples": Matches(sum(map(query.holds, self.facts)), len(self.facts))}

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
        known = {at: self.facts[at].score for at in self.visible}
        scores = finite(one for one in known.values() if one is not None)
        if not scores:
            return None
        extreme = (max if best else min)(scores)
        same = [at for at, score in known.items() if score == extreme]
        place = self.place_of(current)
        after = -1 if place is None else place
        at = bisect_right(same, after, key=self._places.__getitem__)
        return same[at % len(same)]


_NUMBER, _WIDEST = 7, 12
"""Least and most cells of a number: field names are long and differ at their start."""
_EXCERPT = 24
"""Cells that an excerpt is left by the numbers that come after score and length."""
_TITLES = {FILE: "#", GROUP: "grp", "length": "len"}
_READ = 2000
"""Characters at a response's end in which an answer is looked for."""
_KEPT = 150
"""Characters kept of an excerpt."""


class Excerpt(NamedTuple):
    """A few words of a response."""

    words: str
    answer: bool
    """True if they are its answer, False if its end."""

    def piece(self, width: int) -> Piece:
        """Return as much as fits: the beginning of an answer, the end of a response."""
        if self.answer:
            return fit(self.words, width), "answer"
        return fit_left(self.words, width) or "(empty)"[:width], "dim"


@lru_cache(maxsize=256)
def excerpt(response: str) -> Excerpt:
    """Return the answer of a response, else its end."""
    end = response[-_READ:]
    answer = final_answer(end, parse(end))
    if answer:
        return Excerpt(" ".join(answer.split())[:_KEPT], answer=True)
    for start, stop, _ in reversed(special(end)):
        end = f"{end[:start]} {end[stop:]}"
    return Excerpt(" ".join(end.split())[-_KEPT:], answer=False)


def sample_table(
    page: SamplePage, listing: SampleListing, order: SampleOrder, width: int
) -> FittedTable[SampleFacts]:
    """Return the columns that fit, the one that the list is sorted by before the other numbers.

    Args:
        page: Has the responses read that are written.
        listing: The samples.
        order: Order of the list.
        width: Cells of a row.
    """
    digits = max(2, len(str(len(listing.facts))))
    numbers = {FILE: digits, "score": _NUMBER + 2, "length": 5, GROUP: max(4, digits)}
    numbers |= {
        name: min(_WIDEST, max(_NUMBER, cell_len(name))) for name in listing.fields
    }
    columns = [
        TextColumn(
            _title(field, order, size),
            partial(_cell, field=field, listing=listing),
            size,
            99 if field == order.field else 90 - at if at < 2 else 50 - at,
            right=True,
            gap=1 if at else GAP,
        )
        for at, (field, size) in enumerate(numbers.items())
    ]
    least = min(_EXCERPT, max(1, width - sum([*numbers.values()][:2]) - 2))
    words = partial(_words, page)
    excerpt = TextColumn("answer or end", words, least, 80, most=width, gap=1)
    return FittedTable([*columns, excerpt], width)


def _title(field: str, order: SampleOrder, size: int) -> str:
    """Return a column's title, with an arrow where the list is sorted by it."""
    arrow = order.arrow if field == order.field else ""
    return fit(_TITLES.get(field, field), size - len(arrow)) + arrow


def _words(page: SamplePage, fact: SampleFacts, cells: int) -> Pieces:
    sample = page.sample(fact.index)
    return [("…", "dim") if sample is None else excerpt(sample.response).piece(cells)]


def _cell(fact: SampleFacts, cells: int, field: str, listing: SampleListing) -> Pieces:
    if field == "score":
        glyph, role = listing.scores.mark(fact)
        return [(f"{glyph} {_number(fact.score):>{cells - 2}}", role)]
    texts = {
        FILE: str(fact.index + 1),
        GROUP: str(listing.groups.get(fact.group or "", "-")),
    }
    role = "dim" if field in (FILE, GROUP) else ""
    return [(texts.get(field) or _number(value_of(fact, field)), role)]


def _number(value: float | None) -> str:
    return "-" if value is None else compact(value)
