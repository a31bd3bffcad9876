"""Which samples are listed, which is shown, how they stand, and the rows of the list."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.records import Sample, SampleFacts
from verl_tui.rendering.samples import sample_rows
from verl_tui.rendering.samples.chosen import (
    SampleChoice,
    index_of,
    next_place,
    next_sample,
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


def test_texts_are_searched() -> None:
    samples = Samples()
    for text in ("an apple", "a pear", "apples"):
        samples.add(Sample(1, "p", text), 1)
    browser = SampleBrowser(lambda: None)
    listing = SampleListing()
    place = Place(1, validation=False)
    page = browser.page(samples, place)
    for _ in range(10):
        listing.update(page, parse_query("apple"), SampleOrder())
        if listing.complete:
            break
        page.read_on()
    assert listing.visible == [0, 2]
    listing.update(page, SampleQuery(), SampleOrder())
    assert listing.visible == [0, 1, 2]
    browser.stop()


def test_what_has_not_changed_is_not_worked_out_again() -> None:
    page = Page(3).read(fact(0), fact(1), fact(2))
    listing = SampleListing()
    listing.update(page, SampleQuery(), SampleOrder())
    before = listing.revision
    listing.update(page, SampleQuery(), SampleOrder())
    assert listing.revision == before
    listing.update(page, SampleQuery(), SampleOrder("score"))
    assert listing.revision > before


def test_a_list_grows_by_eighths_and_ends_complete() -> None:
    page = Page(1000)
    listing = SampleListing()
    revisions = set()
    for index in range(1000):
        page.read(fact(index))
        listing.update(page, SampleQuery(), SampleOrder())
        revisions.add(listing.revision)
    assert len(listing.visible) == 1000
    assert listing.complete
    assert len(revisions) < 100


def test_a_file_written_anew_is_listed_anew() -> None:
    page = Page(2).read(fact(0, 1.0), fact(1, 1.0, numbers={"old": 1.0}))
    listing = SampleListing()
    listing.update(page, SampleQuery(), SampleOrder())
    page.facts, page.count = [fact(0, 0.0)], 1
    listing.update(page, SampleQuery(), SampleOrder())
    assert listing.visible == [0]
    assert listing.scores.mean == 0.0
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


def test_the_sample_to_show() -> None:
    place = Place(1, validation=False)
    whole = listing_of(fact(0, 1.0), fact(1, 0.0), fact(2, 1.0))
    assert [
        index_of(SampleChoice(place, index), whole) for index in (None, 0, 2, 9)
    ] == [
        0,
        0,
        2,
        2,
    ]
    assert index_of(SampleChoice(place, None, last=True), whole) == 2
    some = listing_of(
        fact(0, 1.0), fact(1, 0.0), fact(2, 1.0), query=parse_query("score=1")
    )
    assert index_of(SampleChoice(place, 1), some) == 0
    assert (
        index_of(
            SampleChoice(place, 1), listing_of(fact(0), query=parse_query("score=1"))
        )
        is None
    )
    assert index_of(SampleChoice(place, 1), listing_of()) is None


def test_the_sample_to_show_while_they_are_read() -> None:
    place = Place(1, validation=False)
    listing = SampleListing()
    page = Page(1000).read(fact(0), fact(1))
    page.complete = False
    listing.update(page, SampleQuery(), SampleOrder())
    # Which one is asked for can be read before it can be listed; which one is last nobody knows
    # yet.
    assert index_of(SampleChoice(place, 500), listing) == 500
    assert index_of(SampleChoice(place, None), listing) == 0
    assert index_of(SampleChoice(place, None, last=True), listing) is None
    listing.update(page, parse_query("score>0"), SampleOrder())
    assert index_of(SampleChoice(place, 500), listing) is None


def test_the_next_sample() -> None:
    samples = samples_at((1, False), (2, False))
    listing = listing_of(fact(0), fact(1), order=SampleOrder(down=True))
    assert next_sample(
        Place(2, validation=False), 1, listing, samples, 1
    ) == SampleChoice(Place(2, validation=False), 0)
    assert next_sample(
        Place(2, validation=False), 0, listing, samples, 1
    ) == SampleChoice(Place(1, validation=False), None)
    assert next_sample(
        Place(1, validation=False), 1, listing, samples, -1
    ) == SampleChoice(Place(2, validation=False), None, last=True)
    assert next_sample(Place(1, validation=False), 0, listing, samples, 1) is None
    listing.complete = False
    assert next_sample(Place(2, validation=False), 0, listing, samples, 1) is None


def test_the_next_sample_while_they_are_read() -> None:
    samples = samples_at((1, False), (2, False))
    place = Place(1, validation=False)
    newer = Place(2, validation=False)
    listing = SampleListing()
    page = Page(1000).read(fact(0))
    page.complete = False
    listing.update(page, SampleQuery(), SampleOrder())
    # A key is not lost for coming before the list.
    assert next_sample(place, 0, listing, samples, 1) == SampleChoice(place, 1)
    assert next_sample(place, 1, listing, samples, 1) == SampleChoice(place, 2)
    assert next_sample(place, 1, listing, samples, -1) == SampleChoice(place, 0)
    assert next_sample(place, 0, listing, samples, -1) == SampleChoice(
        newer, None, last=True
    )
    assert next_sample(place, None, listing, samples, 1) is None
    # which one passes nobody knows yet
    listing.update(page, parse_query("score>0"), SampleOrder())
    assert next_sample(place, 0, listing, samples, 1) is None


# -- scores ----------------------------------------------------------------------------------------


def test_figures() -> None:
    stands = summarise(
        [fact(0, 1.0), fact(1, 1.0), fact(2, 0.0), fact(3, 1.0), fact(4), fact(5, nan)]
    )
    assert (stands.count, stands.scored, stands.mean) == (6, 4, 0.75)
    assert stands.std == pytest.approx(0.4330127)
    assert (stands.groups, stands.dead) == (2, 1)
    assert stands.words() == ["6 rows", "score 0.75 ± 0.433", "dead groups 50%"]
    assert stands.words(complete=False, ascii_only=True)[:2] == [
        "6 rows so far",
        "score 0.75 +- 0.433",
    ]
    assert summarise([]).words() == ["0 rows"]
    assert summarise([fact(0, 0.5)]).words() == ["1 row", "score 0.5"]


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


def test_marks_are_against_the_mean_of_the_group() -> None:
    scores = (("a", 0.2), ("a", 0.4), ("b", 0.8), ("b", 0.9))
    stands = summarise(
        [fact(at, one, group=name) for at, (name, one) in enumerate(scores)]
    )
    assert [
        stands.mark(score, group)[0] for score, group in ((0.4, "a"), (0.8, "b"))
    ] == ["▲", "▼"]
    # without a group, against the step's mean of 0.575
    assert stands.mark(0.5)[0] == "▼"
    assert stands.group_words("a") == "group mean 0.3"
    assert stands.group_words(None) == ""
    binary = summarise(
        [fact(0, 1.0, group="a"), fact(1, 0.0, group="a"), fact(2, 1.0, group="c")]
    )
    assert binary.group_words("a") == "1 of 2 right"
    assert binary.group_words("c") == ""


# -- rows of the list ------------------------------------------------------------------------------


def rows_of(
    listing: SampleListing, width: int, order: SampleOrder | None = None, **options: Any
) -> list[str]:
    order = order or SampleOrder()
    shown = sample_rows.columns(listing.fields, len(listing.facts), order, width)
    rows = [sample_rows.sample_heading(shown, order, **options)]
    rows += [
        sample_rows.sample_row(one, shown, listing.scores, listing.groups, **options)
        for one in listing.facts
    ]
    return ["".join(text for text, _ in row).rstrip() for row in rows]


def test_columns_come_as_there_is_room() -> None:
    listing = listing_of(fact(0, 1.0), fact(1, 0.0), fact(2, nan, group=None))
    assert rows_of(listing, 60) == [
        "#▲     score   len  grp     acc answer or end",
        " 1 ✓       1     0    1       0",
        " 2 ✗       0    10    1       1",
        " 3 !     nan    20    -       2",
    ]
    # Words of the response go before further numbers.
    assert rows_of(listing, 40)[0] == "#▲     score   len answer or end"
    assert rows_of(listing, 20)[0] == "#▲     score"
    assert rows_of(listing, 14)[1] == " 1 ✓       1"
    # What the list is sorted by is seen before all else.
    assert rows_of(listing, 22, SampleOrder("acc", down=True))[:2] == [
        " #     score    acc▼",
        " 1 ✓       1       0",
    ]
    assert rows_of(listing, 40, ascii_only=True)[0].startswith("#^ ")


@given(
    st.lists(
        st.tuples(st.none() | st.floats(), st.none() | st.text(max_size=3)),
        min_size=1,
        max_size=5,
    ),
    st.dictionaries(
        st.sampled_from(["acc", "汉字" * 9, "x" * 300, "file", "score", "a b"]),
        st.floats(),
        max_size=5,
    ),
    st.integers(12, 200),
    st.sampled_from(["file", "score", "length", "group", "acc", "汉字" * 9]),
    st.booleans(),
)
def test_rows_fit(
    scores: list[tuple[float | None, str | None]],
    numbers: dict[str, float],
    width: int,
    by: str,
    down: bool,
) -> None:
    facts = [
        fact(i, score, group=group, numbers=numbers)
        for i, (score, group) in enumerate(scores)
    ]
    for row in rows_of(listing_of(*facts), width, SampleOrder(by, down=down)):
        assert cell_len(row) <= max(width, 14)
        assert "\n" not in row
