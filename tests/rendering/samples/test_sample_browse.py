"""What is seen of a run's samples, without a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from verl_tui.on_demand.samples import SampleBrowser
from verl_tui.records import Sample
from verl_tui.rendering.samples.browse import Browse
from verl_tui.rendering.samples.chosen import SampleChoice
from verl_tui.rendering.samples.query import parse_query
from verl_tui.runs.samples import Place, Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.rendering.samples.response_rows import ResponseItem


class Reader:
    """A user of samples in memory: two prompts at each of the steps 1, 2 and 3 with two answers
    each.
    """

    def __init__(self) -> None:
        self.samples = Samples()
        for step in (1, 2, 3):
            self.add(step)
        self.browser = SampleBrowser(lambda: None)
        self.browse = Browse(SampleChoice(follow=True))
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

    def items(self) -> list[ResponseItem]:
        return [make() for make in self.browse.items()]


@pytest.fixture
def reader() -> Iterator[Reader]:
    reader = Reader()
    yield reader
    reader.browser.stop()


def test_nothing_to_see() -> None:
    browse = Browse(SampleChoice(follow=True))
    browser = SampleBrowser(lambda: None)
    for samples in (None, Samples()):
        assert not browse.settle(samples, browser)
        assert (browse.shown, browse.sample, browse.fact, browse.read()) == (None,) * 4
        moves: list[Any] = [
            browse.to_kind(),
            browse.follow(),
            browse.stay(),
            browse.to_row(0),
        ]
        moves += [browse.to_sample(1), browse.to_step(1), browse.to_extreme(best=True)]
        assert not any(moves)
        browse.compare()
        browse.look_back()
        assert not browse.responses
        assert list(browse.items()) == []
    assert browse.leaving == SampleChoice(follow=True)
    browser.stop()


def test_moves(reader: Reader) -> None:
    browse = reader.browse
    assert reader.at() == (3, 0)
    assert reader.at(browse.to_sample(1)) == (3, 1)
    assert reader.at(browse.to_step(1)) == (2, 1)
    assert reader.at(browse.to_extreme(best=False)) == (2, 2)
    assert reader.at(browse.to_row(3)) == (2, 3)
    assert reader.at(browse.to_sample(1)) == (1, 0)
    assert reader.at(browse.to_sample(-1)) == (2, 3)
    assert not browse.to_row(4)
    assert reader.at(browse.to_step(-1)) == (3, 3)
    assert not browse.to_step(-1)
    assert browse.leaving == SampleChoice(Place(3, validation=False), 3)


def test_the_other_kind(reader: Reader) -> None:
    with pytest.raises(LookupError, match="no validation samples"):
        reader.browse.to_kind()
    reader.add(2, validation=True)
    assert reader.at(reader.browse.to_kind()) == (2, 0)
    assert reader.browse.shown == (Place(2, validation=True), 0)


def test_follows_until_one_reads(reader: Reader) -> None:
    reader.add(4)
    assert reader.settle(), "another sample than before"
    assert reader.at() == (4, 0)
    assert not reader.settle()
    assert reader.browse.stay()
    assert not reader.browse.stay()
    reader.add(5)
    assert reader.at() == (4, 0)
    assert reader.at(reader.browse.follow()) == (5, 0)


def test_who_compares_answers_stays_with_them(reader: Reader) -> None:
    browse = reader.browse
    browse.compare()
    assert browse.responses
    assert [item.excerpt and item.excerpt.words for item in reader.items()] == [
        "answer 3-0",
        "answer 3-1",
    ]
    reader.add(4)
    assert reader.at() == (3, 0)
    assert [item.excerpt and item.excerpt.words for item in reader.items()] == [
        "answer 3-0",
        "answer 3-1",
    ]
    assert not browse.to_sample(1)
    assert reader.at(browse.to_item(reader.items()[1])) == (3, 1)
    assert not browse.responses
    browse.compare()
    browse.compare()
    assert not browse.responses


def test_answers_over_the_steps(reader: Reader) -> None:
    browse = reader.browse
    browse.compare()
    browse.look_back()
    assert browse.mates is None
    while browse.history is not None and not browse.history.complete:
        reader.settle()
    assert [item.excerpt and item.excerpt.words for item in reader.items()] == [
        f"answer {step}-{i}" for step in (1, 2, 3) for i in (0, 1)
    ]
    assert reader.at(browse.to_item(reader.items()[0])) == (1, 0)


def test_a_filter_that_hides_an_answer_is_dropped(reader: Reader) -> None:
    browse = reader.browse
    browse.ask(parse_query("score=1"))
    assert reader.at() == (3, 1)
    browse.compare()
    assert reader.at(browse.to_item(reader.items()[1])) == (3, 1)
    assert browse.query
    browse.compare()
    assert reader.at(browse.to_item(reader.items()[0])) == (3, 0)
    assert not browse.query


def test_answers_that_are_no_more_are_left_out(reader: Reader) -> None:
    reader.browse.compare()
    reader.browse.mates = 99
    assert reader.items() == []
