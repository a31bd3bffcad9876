"""A comparison of runs as one record, from which all its written forms are made."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from verl_tui.comparison.correlations import Association, associate
from verl_tui.comparison.differences import (
    Difference,
    differences,
    direction,
    incomparable,
)
from verl_tui.comparison.notes import notes
from verl_tui.comparison.outcomes import FIGURES, measure, usual_last, weighty
from verl_tui.comparison.seeds import RunGroup, grouped
from verl_tui.comparison.setting_differences import DifferingSetting, differing_settings
from verl_tui.health.finding import Severity, Verdict
from verl_tui.runs.views.alignment import Alignment, stops
from verl_tui.runs.views.state import state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.comparison.outcomes import MeasuredRun
    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run of a comparison."""

    measured: MeasuredRun
    state: str
    findings: int
    """Warnings and worse, without those that only follow from another."""
    worst: Severity | None
    """The worst of these."""
    group: str
    """Name of its group."""

    @property
    def run(self) -> Run:
        """The run itself."""
        return self.measured.run

    @property
    def name(self) -> str:
        """Its name."""
        return self.measured.run.name


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several runs compared with one of them."""

    runs: tuple[ComparedRun, ...]
    """The baseline first, runs of one group beside each other."""
    alignment: Alignment
    last: int
    """Number of last logged values that means are made of."""
    settings: tuple[DifferingSetting, ...]
    """With a value for each run, in the order of `runs`."""
    groups: tuple[RunGroup, ...]
    """The baseline's first."""
    differences: tuple[Difference, ...]
    """Differences of all other groups from the first one."""
    association: Association
    compared: Mapping[str, int]
    """Ids of the figures that mean the same in all runs that have them -> 1 where more is better,
    -1 where less is, 0 where neither is.
    """
    notes: tuple[str, ...]
    """Sentences on what is not compared and why, and on what to bear in mind."""

    @property
    def has_seeds(self) -> bool:
        """True if some runs differ only by their seed."""
        return len(self.groups) < len(self.runs)


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
        last: Number of last logged values that means are made of; None: the usual, see
            `usual_last`.
    """
    ends = stops(runs, alignment)
    count = usual_last(runs, ends) if last is None else last
    groups = grouped(measure(runs, ends, count, guide))
    measured = list(chain.from_iterable(group.members for group in groups))
    found: list[Difference] = []
    for group in groups[1:]:
        found += differences(groups[0], group, count)
    compared: list[ComparedRun] = []
    for group in groups:
        for one in group.members:
            verdict = verdicts.get(one.run.name, Verdict())
            compared.append(_compared(one, verdict, now, group.name))
    return Comparison(
        runs=tuple(compared),
        alignment=alignment,
        last=count,
        settings=tuple(differing_settings([member.run for member in measured])),
        groups=groups,
        differences=tuple(found),
        association=associate(groups),
        compared=_compared_figures(measured),
        notes=tuple(notes(measured, groups, alignment, count)),
    )


def _compared_figures(measured: Sequence[MeasuredRun]) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind in FIGURES:
        known = any(run.figures[kind.id].value is not None for run in measured)
        if kind.indicator and known and not incomparable(kind, measured):
            found[kind.id] = direction(kind, measured)
    return found


def _compared(
    one: MeasuredRun, verdict: Verdict, now: float, group: str
) -> ComparedRun:
    findings = weighty(verdict.primary)
    worst = max((finding.severity for finding in findings), default=None)
    return ComparedRun(one, state(one.run, now).value, len(findings), worst, group)
