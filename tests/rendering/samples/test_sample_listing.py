"""Which samples are listed, which is shown, how they stand, and the rows of the list."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from verl_tui.records import Sample, SampleFacts
from verl_tui.rendering.samples.chosen import (
    SampleChoice,
    next_place,
    place_of,
)
from verl_tui.rendering.samples.listing import SampleListing
from verl_tui.rendering.samples.query import SampleQuery, parse_query
from verl_tui.rendering.samples.sample_order import SampleOrder
from verl_tui.rendering.samples.score_summary import summarise
from verl_tui.runs.samples import Place, Samples


class Page:
    """A page whose facts arrive as the test says."""

    def __init__(self, count: int) -> None:
        self.place = Place(1, validation=False)
        self.count = count
        self.complete = True
        self.facts: list[SampleFacts] = []
        self.problem = None

    def read(self, *facts: SampleFacts) -> Any:
        self.facts += facts
        return self


def fact(index: int, score: float | None = None, **more: Any) -> SampleFacts:
    known = {
        "group": f"g{index // 2}",
        "length": 10 * index,
        "numbers": {"acc": float(index)},
        "validation": False,
        **more,
    }
    return SampleFacts(index, score, **known)


def listing_of(
    *facts: SampleFacts,
    query: SampleQuery | None = None,
    order: SampleOrder | None = None,
) -> SampleListing:
    listing = SampleListing()
    listing.update(
        Page(len(facts)).read(*facts), query or SampleQuery(), order or SampleOrder()
    )
    return listing


# -- listing ---------------------------------------------------------------------------------------


def test_filters_and_sorts() -> None:
    facts = [fact(i, score) for i, score in enumerate([0.5, 1.0, 0.0, 1.0])]
    assert listing_of(*facts).visible == [0, 1, 2, 3]
    assert listing_of(
        *facts, query=parse_query("score>0"), order=SampleOrder("score", down=True)
    ).visible == [
        1,
        3,
        0,
    ]
    listing = listing_of(*facts, query=parse_query("acc>=2"))
    assert listing.visible == [2, 3]
    assert (listing.place_of(3), listing.place_of(0), listing.place_of(None)) == (
        1,
        None,
        None,
    )
    assert listing.mates(3) == [2, 3]
    assert listing.mates(99) == [99]
    assert listing.scores.count == 4  # of all, listed or not
    assert listing.fields == ("acc",)


def test_best_and_worst() -> None:
    listing = listing_of(
        *(
            fact(i, score)
            for i, score in enumerate([0.5, 0.1, 0.9, nan, 0.9, 0.1, None, inf])
        )
    )
    assert [listing.extreme(at, best=True) for at in (None, 2, 4)] == [2, 4, 2]
    assert [listing.extreme(at, best=False) for at in (0, 1, 5)] == [1, 5, 1]
    assert listing_of(fact(0), fact(1, nan)).extreme(None, best=True) is None


# -- chosen ----------------------------------------------------------------------------------------


def samples_at(*places: tuple[int, bool]) -> Samples:
    samples = Samples()
    for step, validation in places:
        samples.add(Sample(step, "p", "r", validation=validation), step)
    return samples


def test_the_place_to_show() -> None:
    samples = samples_at((10, False), (10, True), (20, False), (20, True), (30, False))
    assert place_of(SampleChoice(), samples) == (30, False)
    assert place_of(SampleChoice(Place(10, validation=True), follow=True), samples) == (
        20,
        True,
    )
    assert place_of(SampleChoice(Place(10, validation=True)), samples) == (10, True)
    assert place_of(SampleChoice(Place(14, validation=True)), samples) == (10, True)
    assert place_of(SampleChoice(Place(99, validation=False)), samples) == (30, False)
    assert place_of(SampleChoice(), samples_at((5, True))) == (5, True)
    assert place_of(
        SampleChoice(Place(9, validation=False)), samples_at((5, True))
    ) == (5, True)
    assert place_of(SampleChoice(), Samples()) is None
    assert place_of(SampleChoice(), samples, 20) == (20, False), (
        "step 30 is of before a restart"
    )
    assert place_of(SampleChoice(Place(30, validation=False)), samples, 20) == (
        30,
        False,
    )
    assert place_of(SampleChoice(), samples, 5) == (30, False), (
        "there are none since the restart"
    )
    assert next_place(Place(20, validation=True), samples, 1) == (10, True)
    assert next_place(Place(20, validation=True), samples, -1) is None
    assert next_place(Place(15, validation=True), samples, 1) is None


# -- scores ----------------------------------------------------------------------------------------


def test_marks() -> None:
    def judged(*scores: float | None) -> list[tuple[str, str]]:
        stands = summarise([fact(i, score) for i, score in enumerate(scores)])
        return [stands.mark(score) for score in scores]

    assert judged(0.0, 1.0) == [("✗", "critical"), ("✓", "good")]
    assert judged(-1.0, 1.0) == [("✗", "critical"), ("✓", "good")]
    assert judged(0.2, 0.4, 0.3) == [("▼", "warning"), ("▲", "good"), ("=", "even")]
    assert judged(-2.0, 0.5) == [("▼", "critical"), ("▲", "good")]
    assert judged(None, 0.7) == [("·", "even"), ("=", "even")]
    assert judged(nan, 1.0) == [("!", "critical"), ("✓", "good")]
    assert [glyph for glyph, _ in judged(1.7e308, 1.6e308)] == ["▲", "▼"]
    assert [glyph for glyph, _ in judged(1.7e308, -1.7e308)] == ["▲", "▼"]
    stands = summarise([fact(0, 1.0), fact(1, 2.0)])
    assert all(
        stands.mark(score, ascii_only=True)[0].isascii()
        for score in (1.0, 2.0, 1.5, None, nan)
    )


# -- rows of the list ------------------------------------------------------------------------------
