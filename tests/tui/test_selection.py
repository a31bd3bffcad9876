"""Which runs are selected, in which places and colours, in which order all are listed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from verl_tui.rendering.session.run_order import ORDERS, Selection, matching, ordered

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", 2009: matrices for full protanopia, deuteranopia and tritanopia on linear RGB.


def test_a_run_keeps_its_place_while_it_is_selected() -> None:
    selection = Selection()
    for name in ("one", "two", "three"):
        assert selection.toggle(name)
    assert [selection.place(name) for name in ("one", "two", "three", "four")] == [
        0,
        1,
        2,
        None,
    ]
    selection.toggle("one")
    assert selection.names({"one", "two", "three"}) == ["two", "three"]
    assert selection.place("two") == 1
    selection.toggle("four")
    assert selection.place("four") == 0
    selection.toggle("one")
    assert selection.place("one") == 3, "its place is taken"
    assert selection.names({"two", "four"}) == ["four", "two"], (
        "a run that is gone is no column"
    )


def test_six_are_the_most() -> None:
    selection = Selection()
    assert all(selection.toggle(str(n)) for n in range(6))
    before = selection.revision
    assert not selection.toggle("6")
    assert (selection.revision, len(selection)) == (before, 6)
    assert selection.toggle("3")
    assert selection.toggle("6")
    assert selection.place("6") == 3


def run_of(name: str, reward: float | None = None, last: float | None = None) -> Run:
    point = SimpleNamespace(value=reward)
    series = (
        SimpleNamespace(key="critic/score/mean", last_finite=point)
        if reward is not None
        else None
    )
    indicators = {"reward": "critic/score/mean"}
    run = SimpleNamespace(name=name, last_record=last, indicators=indicators, step=1)
    run.present = lambda _: series
    return cast("Run", run)


def names(runs: list[Run]) -> str:
    return " ".join(run.name for run in runs)


def test_orders() -> None:
    runs = [
        run_of("run-10", 0.5, 30.0),
        run_of("Run-9", 0.9, 10.0),
        run_of("run-2", None, None),
        run_of("a", 0.5, 20.0),
    ]
    assert names(ordered(runs, "as found", 0.0)) == "run-10 Run-9 run-2 a"
    assert names(ordered(runs, "name", 0.0)) == "a run-2 Run-9 run-10"
    assert names(ordered(runs, "reward", 0.0)) == "Run-9 run-10 a run-2"
    assert names(ordered(runs, "activity", 0.0)) == "run-10 a Run-9 run-2"
    assert set(ORDERS) == {"as found", "name", "reward", "activity", "state"}


def test_a_filter_that_names_no_run_is_meant_for_metrics() -> None:
    runs = [run_of("GRPO"), run_of("ppo")]
    assert names(matching(runs, "gr")) == "GRPO"
    assert names(matching(runs, "kl")) == names(matching(runs, "")) == "GRPO ppo"
