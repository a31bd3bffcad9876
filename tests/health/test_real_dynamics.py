"""Judging real trainings by their scalars: what has been reached stays reached.

The trainings and the truth about them are in `tests/producers/pathologies`, figures of whole runs
in `tests/scenarios/README.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from producers.pathologies import extracts
from producers.pathologies.judge import Outcome, judge, warnings
from producers.pathologies.measure import EXTRACTS
from producers.pathologies.training import halves

if TYPE_CHECKING:
    from pathlib import Path

    from producers.pathologies.judge import Judged
    from producers.pathologies.training import Half, Training

NOT_IN_TIME: dict[str, str] = {
    "shouts": "late (component-imbalance at 100)",
    "loops": "late (reward-hacking at 51)",
    "proxy-and-evaluation": "late (component-imbalance at 100)",
    "tied-down": "missed in verl's file logger",
}
"""Sick trainings that are known to be missed, or named late, by their scalars alone -> what is said
of them.
"""
WARNED: dict[str, str] = {
    "to-the-point": "no-signal",
}
"""Healthy trainings that are known to be warned -> of what."""
KNOWN = {**NOT_IN_TIME, **WARNED}
IN_THESE_FORMS = {
    "tied-down": ("verl's file logger",),
    "to-the-point": ("verl's console", "verl's file logger"),
}
"""Those of them that are judged right where other forms have their scalars."""


def listed(*, sick: bool) -> list[object]:
    """Return the trainings whose scalars are here, each in one of the forms that logs may have,
    with --thorough in all.
    """
    trainings = [
        (half, training)
        for half, of_half in halves().items()
        for training in of_half
        if (training.fault is not None) == sick
        and (EXTRACTS / half / f"{training.name}.json").exists()
    ]
    return [
        pytest.param(
            half,
            training,
            form,
            id=f"{training.name}-{form}",
            marks=[
                *known_to_fail(training, form),
                *([] if at % len(extracts.FORMS) == turn else [pytest.mark.thorough]),
            ],
        )
        for at, (half, training) in enumerate(trainings)
        for turn, form in enumerate(extracts.FORMS)
    ]


def known_to_fail(training: Training, form: str) -> list[pytest.MarkDecorator]:
    """Return the mark of a training that is not judged right where a form has its scalars."""
    fails = training.name in KNOWN
    if not fails or form not in IN_THESE_FORMS.get(training.name, extracts.FORMS):
        return []
    return [pytest.mark.xfail(reason=KNOWN[training.name])]


def judged(half: Half, training: Training, form: str, scratch: Path) -> Judged:
    """Return what becomes of a training whose scalars a form has."""
    made = extracts.read(EXTRACTS / half / f"{training.name}.json")
    return judge(training, warnings(extracts.replay(made, form, scratch)))


@pytest.mark.parametrize(("half", "training", "form"), listed(sick=True))
def test_a_fault_is_named_in_time(half, training, form, tmp_path):
    found = judged(half, training, form, tmp_path / "run")
    assert found.outcome is Outcome.IN_TIME, (found.named, found.others)


@pytest.mark.parametrize(("half", "training", "form"), listed(sick=False))
def test_a_healthy_training_is_left_in_peace(half, training, form, tmp_path):
    found = judged(half, training, form, tmp_path / "run")
    assert found.outcome is Outcome.QUIET, found.others


def test_only_trainings_of_the_bench_are_known_to_fail():
    every = {
        training.name: training
        for trainings in halves().values()
        for training in trainings
    }
    assert all(every[name].fault for name in NOT_IN_TIME)
    assert all(every[name].fault is None for name in WARNED)
