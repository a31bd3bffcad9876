"""What a chart keeps from one drawing to the next."""

from __future__ import annotations

from array import array

from verl_tui.rendering.charts.axes import fill_window
from verl_tui.rendering.charts.cache import ChartCache
from verl_tui.runs.pyramid import Pyramid


class Column:
    """A series."""

    def __init__(self, count: int) -> None:
        self.steps = array("q", range(count))
        self.values = array("d", map(float, range(count)))
        self.pyramid = Pyramid(self.steps, self.values)


def test_averages_stay_while_they_are_drawn() -> None:
    cache, points = ChartCache(), Column(40)
    rough, smooth = (cache.smoothed(points, weight) for weight in (0.6, 0.9))
    cache.forget_unused()
    assert cache.smoothed(points, 0.9) is smooth
    cache.forget_unused()
    assert cache.smoothed(points, 0.9) is smooth
    assert cache.smoothed(points, 0.6) is not rough, "it was not drawn any more"


def test_columns_are_those_of_the_series_that_is_asked_for() -> None:
    cache, window = ChartCache(), fill_window(0, 39, 40)
    one, other = Column(40), Column(20)
    assert cache.columns(one, window).highs[39] == 39
    assert cache.columns(other, window).highs[39] is None
    cache.forget_unused()
    assert cache.columns(one, window).highs[39] == 39


def test_an_axis_is_kept_while_it_serves_and_its_subject_is_the_same() -> None:
    cache = ChartCache()
    wide = cache.axis("left", "run", (0.0, 1.0))
    assert cache.axis("left", "run", (0.1, 0.8)) is wide
    assert cache.axis("right", "run", (0.1, 0.8)) != wide
    assert cache.axis("left", "another", (0.1, 0.8)) != wide
