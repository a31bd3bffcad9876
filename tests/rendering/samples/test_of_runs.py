"""What the samples panel keeps of each run."""

from __future__ import annotations

from verl_tui.records import Sample
from verl_tui.rendering.samples.chosen import SampleChoice
from verl_tui.rendering.samples.of_runs import FOLLOWING, ChoicesByRun, TallestSamples
from verl_tui.runs.samples import Place


def test_a_run_is_shown_as_it_was_left() -> None:
    choices = ChoicesByRun()
    chosen = SampleChoice(Place(7, validation=False), 2)
    assert choices.turn_to("one", FOLLOWING) == FOLLOWING
    assert choices.turn_to("one", chosen) == chosen, "it is the same run"
    assert choices.turn_to("other", chosen) == FOLLOWING, "nothing was chosen there"
    assert choices.turn_to("one", SampleChoice(Place(1, validation=False))) == chosen
    assert choices.turn_to("other", chosen) == SampleChoice(Place(1, validation=False))


def test_the_room_for_samples_only_grows() -> None:
    tallest, counted = TallestSamples(), []

    def count(rows: int) -> int:
        counted.append(rows)
        return rows

    assert tallest.most("run", 80, otherwise=3) == 3
    short, long = (Sample(step=1, prompt="", response=text) for text in "ab")
    for sample, rows in ((short, 4), (short, 4), (long, 9), (short, 5)):
        tallest.grow("run", 80, sample, lambda rows=rows: count(rows))
    assert counted == [4, 9, 5], "what was counted last is known"
    assert tallest.most("run", 80, otherwise=3) == 9
    assert tallest.most("run", 120, otherwise=3) == 3, (
        "at another width rows are others"
    )
