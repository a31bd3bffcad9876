"""Which runs are selected, in which places and colours, in which order all are listed."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from textual.color import Color

from verl_tui.rendering.session.run_order import ORDERS, matching, ordered
from verl_tui.rendering.session.selection import (
    Selection,
)
from verl_tui.rendering.text.hues import DARK, LIGHT

if TYPE_CHECKING:
    from verl_tui.runs.run import Run

# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", 2009: matrices for full protanopia, deuteranopia and tritanopia on linear RGB.
SIGHT = {
    "usual": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def linear(colour: str) -> list[float]:
    parts = (part / 255 for part in Color.parse(colour).rgb)
    return [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    ]


def lab(colour: str, sight: str) -> tuple[float, float, float]:
    """Return CIE L*a*b* of a colour as somebody sees it."""
    seen = linear(colour)
    r, g, b = (
        min(1.0, max(0.0, sum(m * c for m, c in zip(row, seen, strict=True))))
        for row in SIGHT[sight]
    )
    parts = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
    )
    x, y, z = (
        part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116
        for part in (*parts, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("colours", [DARK, LIGHT])
def test_no_two_colours_look_alike_to_anybody(
    colours: tuple[str, ...], sight: str
) -> None:
    for one, other in combinations(colours, 2):
        apart_by = (
            sum(
                (a - b) ** 2
                for a, b in zip(lab(one, sight), lab(other, sight), strict=True)
            )
            ** 0.5
        )
        assert apart_by > 15, (one, other)  # a difference of 2.3 can just be seen


def test_a_run_keeps_its_place_while_it_is_selected_and_gets_it_back() -> None:
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
    selection.toggle("four")
    selection.toggle("one")
    selection.toggle("four")
    assert selection.place("four") == 0
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
    selection.clear()
    assert not len(selection)


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
