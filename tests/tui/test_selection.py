"""Which runs are selected, in which places and colours, in which order all are listed."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

from run_views import NOW, make_run

from verl_tui.health.finding import Moment
from verl_tui.rendering.session.run_order import ORDERS, RunListing, Selection, ordered

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", 2009: matrices for full protanopia, deuteranopia and tritanopia on linear RGB.


def test_a_run_keeps_its_place_while_it_is_selected():
    selection = Selection()
    for name in ("one", "two", "three"):
        assert selection.toggle(name)
    placed = ("A", "run-1"), ("B", "run-2"), ("C", "run-3"), None
    assert (*map(selection.letter, ("one", "two", "three", "four")),) == placed
    selection.toggle("one")
    assert selection.names({"one", "two", "three"}) == ["two", "three"]
    assert selection.letter("two") == placed[1]
    selection.toggle("four")
    assert selection.letter("four") == placed[0]
    selection.toggle("one")
    assert selection.letter("one") == ("D", "run-4"), "its place is taken"
    assert selection.names({"two", "four"}) == ["four", "two"], (
        "a run that is gone is no column"
    )


def test_six_are_the_most():
    selection = Selection()
    assert all(selection.toggle(str(n)) for n in range(6))
    before = selection.revision
    assert not selection.toggle("6")
    assert (selection.revision, len(selection)) == (before, 6)
    assert selection.toggle("3")
    assert selection.toggle("6")
    assert selection.letter("6") == ("D", "run-4")


def names(runs: list[Run]) -> str:
    return " ".join(run.name for run in runs)


AT = Moment(NOW, {})


def rewarded(name: str, reward: float, quiet: float) -> Run:
    return make_run(name, 1, columns={"critic/score/mean": [reward]}, quiet=quiet)


def test_orders():
    runs = [
        rewarded("run-10", 0.5, 30.0),
        rewarded("Run-9", 0.9, 50.0),
        rewarded("run-2", nan, 60.0),
        rewarded("a", 0.5, 40.0),
    ]
    assert names(ordered(runs, "as found", AT)) == "run-10 Run-9 run-2 a"
    assert names(ordered(runs, "name", AT)) == "a run-2 Run-9 run-10"
    assert names(ordered(runs, "reward", AT)) == "Run-9 run-10 a run-2"
    assert names(ordered(runs, "reward", AT, reverse=True)) == "run-10 a Run-9 run-2"
    assert names(ordered(runs, "activity", AT)) == "run-10 a Run-9 run-2"
    assert set(ORDERS) == {"as found", "name", "reward", "activity", "state"}


def test_a_filter_that_names_no_run_is_meant_for_metrics():
    runs = [make_run("GRPO"), make_run("ppo")]
    listing = RunListing()
    for wanted, found in (("gr", "GRPO"), ("kl", "GRPO ppo"), ("", "GRPO ppo")):
        listing.filter = wanted
        assert names(listing.runs(runs, AT)) == found
