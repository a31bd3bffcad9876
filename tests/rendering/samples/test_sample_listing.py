"""Which samples are listed, which is shown, how they stand, and the rows of the list."""

from __future__ import annotations

from math import nan

from verl_tui.records import Sample, SampleFacts
from verl_tui.rendering.samples.browse import SampleChoice, place_of
from verl_tui.rendering.samples.listing import summarise
from verl_tui.runs.samples import Place, Samples


def fact(index, score=None, **more):
    known = {
        "group": f"g{index // 2}",
        "length": 10 * index,
        "numbers": {"acc": float(index)},
        "validation": False,
        **more,
    }
    return SampleFacts(index, score, **known)


# -- chosen ----------------------------------------------------------------------------------------


def samples_at(*places):
    samples = Samples()
    for step, validation in places:
        samples.add(Sample(step, "p", "r", validation=validation), step)
    return samples


def test_the_place_to_show():
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


# -- scores ----------------------------------------------------------------------------------------


def test_marks():
    def judged(*scores):
        facts = [fact(i, score, group=None) for i, score in enumerate(scores)]
        return [summarise(facts).mark(one) for one in facts]

    assert judged(0.0, 1.0) == [("✗", "critical"), ("✓", "good")]
    assert judged(-1.0, 1.0) == [("✗", "critical"), ("✓", "good")]
    assert judged(-1.0, -1.0) == [("✗", "critical")] * 2, "all are wrong"
    assert judged(0.2, 0.4, 0.3) == [("▼", "warning"), ("▲", "good"), ("=", "dim")]
    assert judged(-2.0, 0.5) == [("▼", "critical"), ("▲", "good")]
    assert judged(None, 0.7) == [("·", "dim"), ("=", "dim")]
    assert judged(nan, 1.0) == [("!", "critical"), ("✓", "good")]
    assert [glyph for glyph, _ in judged(1.7e308, 1.6e308)] == ["▲", "▼"]
    assert [glyph for glyph, _ in judged(1.7e308, -1.7e308)] == ["▲", "▼"]
