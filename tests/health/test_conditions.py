"""Conditions as functions of columns: what is found up to a point depends on nothing after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from verl_tui.health.columns import COMBINATIONS, column_of
from verl_tui.health.conditions import KINDS, Kind
from verl_tui.health.conditions.changes import cliff, vanish
from verl_tui.health.conditions.column import Column, Judged
from verl_tui.health.finding import filled
from verl_tui.health.guide_settings import load_guide
from verl_tui.runs.series import Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from verl_tui.health.conditions.column import Breach

RULES = [rule for rule in load_guide().rules if rule.condition in KINDS]
CONDITIONS: dict[str, Callable[[Column, tuple[int, ...]], Judged]] = {
    **{
        rule.name: lambda one, marks, rule=rule: KINDS[rule.condition].judge(  # type: ignore[misc]
            Column(*one[:2], marks), rule, rule.threshold
        )
        for rule in RULES
    },
    "cliff of few points": lambda one, _: Kind(
        "cliff", lambda one, *_: cliff(one, 10, 2, 2, 0.6, 5.0, unlike_all=True)
    ).judge(one, RULES[0], 0.0),
    "vanish": lambda one, _: Kind(
        "vanish", lambda one, *_: vanish(one, 0.4, 0.5, 5, 40)
    ).judge(one, RULES[0], 0.0),
}


@pytest.fixture(autouse=True)
def _as_rules_are_judged() -> Iterator[None]:
    with np.errstate(over="raise", divide="ignore", invalid="ignore"):
        yield


def column(values: Any) -> Column:
    return Column(np.arange(1, len(values) + 1), np.array(values, float))


def breaches(judged: Judged) -> list[Breach]:
    return [*judged.breaches]


def hostile(seed: int) -> np.ndarray[Any, Any]:
    """Return values of one of several kinds, with what rules are there for."""
    chance = np.random.default_rng(seed)
    count = int(chance.choice([5, 60, 250, 700]))
    values = chance.choice([0.0, 0.5, 3.0]) + chance.normal(
        0, chance.choice([0.01, 0.3, 1.0]), count
    )
    for _ in range(chance.integers(1, 5)):
        at = chance.integers(0, count)
        values[at : at + chance.integers(1, 90)] *= chance.choice([0, 0.05, 5, 200])
    kind = seed % 6
    if kind == 1:
        values = np.round(chance.random(count) * 4) / 4
    elif kind == 2:
        values += np.arange(count) / count * chance.choice([-5, 5])
    elif kind == 3:
        values = np.full(count, chance.choice([0.0, 0.7, 1.0, 1e-9]))
    elif kind == 4:
        values = abs(values) * 10.0 ** chance.integers(-4, 4)
    elif kind == 5:
        values = np.where(chance.random(count) < 0.3, 0.0, abs(values))
    return values


@pytest.mark.parametrize("name", CONDITIONS)
def test_what_is_found_up_to_a_point_depends_on_nothing_after_it(name):
    for seed in range(6):
        values = hostile(seed)
        chance = np.random.default_rng(seed)
        marks = (int(chance.integers(1, len(values) + 1)),) if seed % 2 else ()
        whole = breaches(CONDITIONS[name](column(values), marks))
        for stop in chance.integers(1, len(values) + 1, 4).tolist():
            known = [one for one in whole if one.raised <= stop]
            before = breaches(CONDITIONS[name](column(values[:stop]), marks))
            assert [one[:3] for one in before] == [one[:3] for one in known]
            for one, later in zip(before, known, strict=True):
                # One that comes back soon after is the same: it is cleared later, or not at all.
                assert (
                    one.cleared is None
                    or later.cleared in {None, one.cleared}
                    or (later.cleared > stop)
                )


@pytest.mark.parametrize("name", CONDITIONS)
def test_what_holds_is_said_in_words(name):
    for seed in range(6):
        judged = CONDITIONS[name](column(hostile(seed)), ())
        if judged.facts is not None:
            names = ("title", "key", "note", "long", "last", "newest", "label")
            facts = dict.fromkeys(names, "")
            said = [judged.words["message"], *judged.words["evidence"]]
            assert all(filled(one, {**facts, **judged.facts}) for one in said)
            assert type(judged.facts["since"]) is int


FOUND = json.loads((Path(__file__).parent / "breaches.json").read_text())
"""Input in runs of values, and the breaches of each rule in it: since, raised, cleared."""


@pytest.mark.parametrize("case", FOUND, ids=[one["rule"] for one in FOUND])
def test_breaches_of_a_column(case):
    values = [value for value, count in case["values"] for _ in range(count)]
    found = breaches(CONDITIONS[case["rule"]](column(values), ()))
    assert [[one.since, one.raised, one.cleared] for one in found] == case["breaches"]


@pytest.mark.parametrize(
    "kind", ["value", "absolute", "highest", "mean of all", *COMBINATIONS]
)
def test_an_input_up_to_a_step_depends_on_nothing_after_it(kind):
    chance = np.random.default_rng(7)
    series = []
    for key, every in (("a", 1), ("b", 2)):
        one = Series(key)
        one.steps.extend(range(every, 301, every))
        values = chance.normal(0.5, 0.5, len(one.steps))
        values[chance.random(len(values)) < 0.05] = np.nan
        one.values.extend(values.tolist())
        series.append(one)
    whole = column_of(series, None, kind, limit=0.3)
    assert len(whole)
    assert np.isfinite(whole.values).all()
    for stop in (1, 2, 39, 40, 81, 200, 300):
        part = column_of(series, stop, kind, limit=0.3)
        count = int(np.searchsorted(whole.steps, stop, side="right"))
        assert part.steps.tolist() == whole.steps[:count].tolist()
        assert part.values.tolist() == whole.values[:count].tolist()
