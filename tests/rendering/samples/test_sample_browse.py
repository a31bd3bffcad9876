"""What is seen of a run's samples, without a screen."""

from __future__ import annotations

import pytest

from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.records import Sample
from verl_tui.rendering.samples.browse import Browse
from verl_tui.rendering.samples.query import parse_query
from verl_tui.runs.samples import Samples


class Reader:
    """A user of samples in memory: two prompts at each of the steps 1, 2 and 3 with two answers
    each.
    """

    def __init__(self) -> None:
        self.samples = Samples()
        for step in (1, 2, 3):
            self.add(step)
        self.browser = SampleBrowser(lambda: None)
        self.browse = Browse()
        self.settle()

    def add(self, step: int, *, count: int = 4, validation: bool = False) -> None:
        for index in range(count):
            one = Sample(
                step,
                f"p{index // 2}",
                f"answer {step}-{index}",
                float(index % 2),
                validation=validation,
            )
            self.samples.add(one, step)

    def settle(self) -> bool:
        return self.browse.settle(self.samples, self.browser)

    def at(self, moved: bool = True) -> tuple[int, int] | None:
        """Return step and index of what is shown after a move."""
        assert moved
        self.settle()
        shown = self.browse.shown
        return (shown[0].step, shown[1]) if shown is not None else None


@pytest.fixture
def reader():
    reader = Reader()
    yield reader
    reader.browser.stop()


def test_who_compares_answers_stays_with_them(reader):
    browse = reader.browse
    browse.compare()
    reader.settle()
    assert browse.listing.visible == [0, 1]
    reader.add(4)
    assert reader.at() == (3, 0)
    assert browse.listing.visible == [0, 1]
    assert reader.at(browse.to_sample(1)) == (3, 1)
    assert not browse.to_sample(1)
    browse.compare()
    reader.settle()
    assert reader.at(browse.to_sample(1)) == (3, 2)
    browse.compare()
    assert reader.at(browse.to_step(1)) == (2, 2)
    assert len(browse.listing.visible) == 4, "another step has other prompts"


def test_each_way_back(reader):
    browse = reader.browse
    browse.query = parse_query("score=1")
    browse.compare()
    assert [browse.back() for _ in range(3)] == [True, True, False]
    assert not browse.query
