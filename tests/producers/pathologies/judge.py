"""Holds what was found on a training against the truth about it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.config import Config
from verl_tui.health.finding import Severity
from verl_tui.monitor import load

if TYPE_CHECKING:
    from pathlib import Path

    from producers.pathologies.training import Training

    from verl_tui.health.finding import Episode

NOW = 1_790_000_000.0
"""The clock of all judging here: what these runs left behind has been lying there for long."""
OF_THE_MACHINE = ("slow-phase",)
"""What a busy machine may do to any training: counts only where it is the fault."""


class Outcome(Enum):
    """What a monitor made of a training."""

    IN_TIME = "in time"
    LATE = "late"
    PARTLY = "in part"
    MISSED = "missed"
    QUIET = "quiet"
    FALSE = "false warning"


class Judged(NamedTuple):
    """One training as it was judged."""

    training: Training
    outcome: Outcome
    named: Episode | None
    """The first warning that names the fault, in time or late."""
    others: tuple[Episode, ...]
    """Warnings that do not name it; those of a healthy training are false."""
    early: tuple[Episode, ...]
    """Warnings from before its fault began."""


def slack(training: Training) -> int:
    """Return how many steps after an expert a monitor is still in time: a tenth of the run, ten at
    least.
    """
    return max(10, training.steps // 10)


def warnings(path: Path) -> list[Episode]:
    """Return all warnings that the run at a path ever got, in the order in which they were
    raised.
    """
    verdicts = load([str(path)], Config(), NOW).verdicts.values()
    return [
        one
        for verdict in verdicts
        for one in verdict.history
        if one.severity > Severity.INFO
    ]


def judge(training: Training, found: list[Episode]) -> Judged:
    """Return what became of a training, given its warnings in the order in which they were
    raised.
    """
    fault = training.fault
    besides = {*training.true, *OF_THE_MACHINE} - set(fault.named if fault else ())
    found = [one for one in found if one.id not in besides]
    if fault is None:
        return Judged(
            training, Outcome.FALSE if found else Outcome.QUIET, None, tuple(found), ()
        )
    early = tuple(one for one in found if _raised(one) < fault.onset)
    later = [one for one in found if _raised(one) >= fault.onset]
    named = next((one for one in later if one.id in fault.named), None)
    others = tuple(one for one in later if one.id not in fault.named)
    if named is not None:
        in_time = _raised(named) <= fault.by + slack(training)
        return Judged(
            training, Outcome.IN_TIME if in_time else Outcome.LATE, named, others, early
        )
    return Judged(
        training, Outcome.PARTLY if others else Outcome.MISSED, None, others, early
    )


def _raised(episode: Episode) -> int:
    return episode.raised_step if episode.raised_step is not None else 0
