"""A comparison of runs as one record, from which all its written forms are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.comparison.differences import (
    Association,
    Difference,
    associate,
    differences,
)
from verl_tui.comparison.outcomes import FIGURES, MeasuredRun, incomparable, measure
from verl_tui.comparison.settings import (
    DifferingSetting,
    RunGroup,
    differing_settings,
    grouped,
)
from verl_tui.health.finding import Verdict, weighty
from verl_tui.means import gathered
from verl_tui.metrics import modern, slashed
from verl_tui.patterns import NamePattern
from verl_tui.runs.time.step_clocks import Alignment, stops
from verl_tui.runs.views.state import state
from verl_tui.words import few

if TYPE_CHECKING:
    from verl_tui.comparison.run_columns import ColumnValue
    from verl_tui.health.guide import Guide
    from verl_tui.plain_data import Data
    from verl_tui.runs.run import Run

_LONGER = 1.25
"""Ratio of steps from which runs count as unlike in length: heuristic."""
_SUCCESSFUL = NamePattern(r"val-(?:core|aux)/.+/acc_success_only/.+")
"""verl 0.9.1 counts failed sessions of a validation as 0 in `acc`
(`trainer/ppo/metric_utils.py`).
"""
_ACCURACY = NamePattern(r"val-core/.+/acc/.+")


class Comparison(NamedTuple):
    """Several runs compared with one of them."""

    runs: Sequence[MeasuredRun]
    """The baseline first, runs of one group beside each other."""
    heads: Sequence[Data]
    """What is said of each run beside its figures: name, group, state, steps, warnings and worse
    without those that only follow from another, and the worst of these.
    """
    alignment: Alignment
    settings: Sequence[DifferingSetting]
    """With a value for each run, in the order of `runs`."""
    groups: Sequence[RunGroup]
    """The baseline's first."""
    differences: Sequence[Difference]
    """Differences of all other groups from the first one."""
    association: Association
    notes: Sequence[str]
    """Sentences on what is not compared and why, and on what to bear in mind."""
    asked: Mapping[str, Mapping[str, ColumnValue]] = {}
    """Run -> column that was asked for -> value, in the order that was asked for."""


def compare(
    runs: Sequence[Run],
    verdicts: Mapping[str, Verdict],
    guide: Guide,
    now: float,
    *,
    alignment: Alignment = Alignment.END,
    last: int | None = None,
) -> Comparison:
    """Return a comparison of runs.

    Args:
        runs: The runs, the baseline first.
        verdicts: The health of runs, by name.
        guide: Knows the healthy bands.
        now: Seconds since the epoch.
        alignment: The point up to which each run counts.
        last: Number of last logged values that means are made of; None: the usual, see `measure`.
    """
    base, *others = groups = grouped(measure(runs, stops(runs, alignment), guide, last))
    members = [(group, one) for group in groups for one in group.members]
    compared = [one for _, one in members]
    return Comparison(
        runs=compared,
        heads=[_head(group.name, one, verdicts, now) for group, one in members],
        alignment=alignment,
        settings=differing_settings([one.run for one in compared]),
        groups=groups,
        differences=[*chain(*(differences(base, group) for group in others))],
        association=associate(groups),
        notes=[*_notes(compared, groups, alignment)],
    )


def _head(
    group: str, one: MeasuredRun, verdicts: Mapping[str, Verdict], now: float
) -> Data:
    found = weighty(verdicts.get(one.run.name, Verdict()).primary)
    worst = max((finding.severity for finding in found), default=None)
    return {
        "name": one.run.name,
        "group": group,
        "state": state(one.run, now).value,
        "step": one.stop.step,
        "total_steps": one.run.total_steps,
        "findings": len(found),
        "worst": worst and worst.word,
    }


# -- notes -----------------------------------------------------------------------------------------


def _notes(
    measured: Sequence[MeasuredRun], groups: Sequence[RunGroup], alignment: Alignment
) -> Iterator[str]:
    """Yield a sentence for each thing that is not compared, or only with care."""
    if len(measured) == 1:
        yield (
            "a single run: there is nothing to compare it with; name several paths, or a "
            "directory of runs"
        )
    yield from _on_steps(measured, alignment)
    yield from _on_rewards([one for one in measured if one.stop.step is not None])
    yield from measured_differently([one.run for one in measured])
    yield from _on_settings(measured, groups)
    reasons = (incomparable(kind, measured) for kind in FIGURES if kind.indicator)
    for reason in dict.fromkeys(filter(None, reasons)):
        yield f"{reason}; runs that differ in this are not compared"


def _on_settings(
    measured: Sequence[MeasuredRun], groups: Sequence[RunGroup]
) -> Iterator[str]:
    by_names = [group.name for group in groups if group.by == "names"]
    if by_names:
        yield (
            f"the settings of {few(by_names)} are not known: its runs are taken "
            "together because their names differ only by the seed"
        )
    unknown = [one for one in measured if not one.run.settings]
    if unknown and len(measured) > 1:
        yield f"no settings are known of {_names(unknown)}"


def _on_steps(measured: Sequence[MeasuredRun], alignment: Alignment) -> Iterator[str]:
    """Yield which runs have no step, and whether the others are of unlike length."""
    empty = [one for one in measured if one.stop.step is None]
    if empty:
        what = "time" if alignment is Alignment.TIME else "step"
        yield f"not compared, as no {what} is known: {_names(empty)}"
    steps = sorted(one.stop.step for one in measured if one.stop.step is not None)
    if alignment is Alignment.END and steps and steps[-1] > _LONGER * max(1, steps[0]):
        yield (
            f"the runs end at steps {steps[0]:,} to {steps[-1]:,}, so that their last values are "
            "not of equally long trainings; --align step compares all at the same step"
        )


def _names(measured: Sequence[MeasuredRun]) -> str:
    return few(one.run.name for one in measured)


def _on_rewards(measured: Sequence[MeasuredRun]) -> Iterator[str]:
    """Yield a note on runs without a reward, on rewards that are left out, and on those of several
    metrics.
    """
    for one in measured:
        final, name = one.figures["final_reward"], one.run.name
        if final.not_finite:
            yield (
                f"{final.not_finite} of the last {final.n + final.not_finite} rewards of {name} "
                f"are not finite{' and are left out' if final.n else ': it has no final reward'}"
            )
    by_key = gathered((modern(one.key("reward") or ""), one) for one in measured)
    if none := by_key.pop("", ()):
        yield f"{_names(none)} {'logs' if len(none) == 1 else 'log'} no reward"
    if len(by_key) > 1:
        listed = (f"{key} of {_names(found)}" for key, found in by_key.items())
        yield f"rewards are taken from several metrics: {'; '.join(listed)}"


def measured_differently(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a sentence on what versions of verl measure in two ways, as far as logs tell."""
    new, old = [], []
    for run in runs:
        keys = list(map(slashed, run.keys))
        if any(map(_SUCCESSFUL.fullmatch, keys)):
            new.append(run.name)
        elif any(map(_ACCURACY.fullmatch, keys)):
            old.append(run.name)
    if new and old:
        yield (
            f"validation: acc of {', '.join(new)} counts failed sessions as 0 (verl 0.9.1, as its "
            f"key acc_success_only shows); {', '.join(old)} {'have' if len(old) > 1 else 'has'} "
            "no such key: there acc is of the sessions that succeeded"
        )
