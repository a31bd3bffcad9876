"""Histograms that a run keeps."""

from __future__ import annotations

from itertools import pairwise

from verl_tui.distributions import BINS
from verl_tui.records import Histogram
from verl_tui.runs.samples import Histograms


def histogram(step, count, order=0):
    return Histogram("h", step, 0.0, 1.0, [float(count), *[0.0] * (BINS - 1)], order)


def counts(histograms, step):
    return sum(histograms.at("h", step).bins.counts)


def test_the_newest_at_or_before_a_step():
    found = Histograms()
    for step in (20, 10, 30):
        found.add(histogram(step, step), 0)
    assert found.at("h", 9) is None
    assert found.at("other", 20) is None
    assert [found.at("h", step).step for step in (10, 19, 20, 1000)] == [10, 10, 20, 30]
    assert counts(found, 20) == 20
    assert list(found.keys) == ["h"]


def test_of_one_step_the_higher_precedence_holds_and_of_equal_ones_the_later():
    found = Histograms()
    found.add(histogram(1, 5), 7)
    found.add(histogram(1, 6), 3)
    assert counts(found, 1) == 5
    found.add(histogram(1, 8), 7)
    assert counts(found, 1) == 8
    found.add(histogram(1, 9, order=2), 7)
    found.add(histogram(1, 1, order=1), 7)
    assert counts(found, 1) == 9


def test_a_budget_costs_every_second_step_but_never_the_newest(monkeypatch):
    monkeypatch.setattr("verl_tui.runs.samples.HISTOGRAMS", 8)
    found = Histograms()
    for step in range(9):
        found.add(histogram(step, step + 1), 0)
    assert [found.at("h", step).step for step in range(9)] == [
        0,
        0,
        2,
        2,
        4,
        4,
        6,
        6,
        8,
    ]
    assert [counts(found, step) for step in (0, 4, 8)] == [1, 5, 9]
    found.add(histogram(9, 10), 0)
    assert found.at("h", 9).step == 9


def test_of_many_the_newest_and_others_that_stay_the_same():
    found, seen = Histograms(), []
    for step in range(0, 200, 2):
        found.add(histogram(step, 1), 0)
        seen.append({one.step for one in found.some("h", None, 10)})
        assert step in seen[-1]
        assert len(seen[-1]) <= 11
    changes = [len(before ^ after) for before, after in pairwise(seen)]
    assert sum(one > 3 for one in changes) == 4, "each time that room for more is gone"
    assert [one.step for one in found.some("h", (99, 104), 10)] == [100, 102, 104]
    assert not found.some("h", (201, 300), 10)
    assert not found.some("other", None, 10)
