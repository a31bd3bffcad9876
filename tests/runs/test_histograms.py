"""Histograms that a run keeps."""

from __future__ import annotations

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


def test_a_budget_costs_every_second_step_but_never_the_newest():
    found = Histograms(budget=8)
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
