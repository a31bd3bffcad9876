"""A report as one record, from which all its written forms are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verl_tui.check import report as check_report
from verl_tui.check.opening import no_verdict, opening
from verl_tui.comparison.compare import Comparison, compare
from verl_tui.report.run_charts import COLOURED, charts_of, drawn_runs
from verl_tui.runs.views.checkpoints import best, checkpoints
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from verl_tui.monitor import Monitor
    from verl_tui.report.reported_samples import ReportedSamples
    from verl_tui.report.run_charts import DrawnRuns, ReportChart
    from verl_tui.runs.run import Run
    from verl_tui.runs.views.checkpoints import Best

MOST_DETAILED = 20
"""Runs whose findings are written out: the worst of many."""
_ORDER = ("critical", "warning", "healthy", "no warning", None)
"""Verdicts from the worst on."""


@dataclass(frozen=True, slots=True)
class Origin:
    """How a report was made."""

    version: str
    command: str
    """The command line, without what gives access."""
    made: str
    """Date and time with its zone."""
    sentences: tuple[str, ...]
    """Files that were not read, and why."""


@dataclass(frozen=True, slots=True)
class BestStep:
    """The step at which a run was best by one metric, and the checkpoint saved there."""

    label: str
    best: Best


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """One run of a report."""

    name: str
    place: int | None
    """Its place among those with a colour."""
    verdict: str
    """`critical`, `warning`, `healthy`, `no warning`, or empty without one."""
    condition: str
    """Step, state and age, as `check` says them."""
    why: str
    next: str
    """The advice."""
    described: Mapping[str, Any]
    """Everything else, as `check --json` has it."""
    bests: tuple[BestStep, ...]
    checkpoints: int
    """How many checkpoints are known."""
    excerpts: ReportedSamples | None
    """None where they are left out."""
    detailed: bool
    """True if its findings are written out."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a report says."""

    title: str
    runs: tuple[ReportedRun, ...]
    """The baseline first."""
    comparison: Comparison
    charts: tuple[ReportChart, ...]
    drawn: DrawnRuns
    left_out: tuple[str, ...]
    """Sentences on parts that are left out to keep the report short."""
    origin: Origin

    @property
    def alone(self) -> bool:
        """True if it is on a single run."""
        return len(self.runs) == 1


def make_report(
    monitor: Monitor,
    runs: Sequence[Run],
    now: float,
    origin: Origin,
    excerpts: Callable[[Run], ReportedSamples],
) -> Report:
    """Return the report on runs.

    Args:
        monitor: Has read and judged.
        runs: Those that hold a training, the baseline first.
        now: Seconds since the epoch.
        origin: How it is made.
        excerpts: Reads the samples of a run; called for the few whose samples are shown.
    """
    comparison = compare(runs, monitor.verdicts, monitor.guide, now)
    drawn = drawn_runs(runs, _finals(comparison))
    described = {one["name"]: one for one in check_report(monitor, now)["runs"]}
    worst = sorted(runs, key=lambda run: _ORDER.index(described[run.name]["verdict"]))
    detailed = {run.name for run in worst[:MOST_DETAILED]}
    sampled = {run.name for run in drawn.coloured}
    reported = []
    for run in runs:
        samples = excerpts(run) if run.name in sampled else None
        reported.append(
            _run(
                run,
                described[run.name],
                now,
                drawn.place(run.name),
                samples,
                detailed=run.name in detailed,
            )
        )
    return Report(
        title=_title(runs),
        runs=tuple(reported),
        comparison=comparison,
        charts=charts_of(monitor, drawn, now),
        drawn=drawn,
        left_out=(*_without_training(monitor, runs), *_left_out(reported, drawn)),
        origin=origin,
    )


def _without_training(monitor: Monitor, runs: Sequence[Run]) -> Iterator[str]:
    """Yield a sentence on files that hold no training."""
    known = {run.name for run in runs}
    left = [one_line(name) for name in monitor.runs if name not in known]
    if left:
        yield f"There is no training in {', '.join(left)}."


def _title(runs: Sequence[Run]) -> str:
    first = one_line(runs[0].name, 80)
    if len(runs) == 1:
        return first
    second = one_line(runs[1].name, 80)
    return f"{first} and {second if len(runs) == 2 else counted(len(runs) - 1, 'other run')}"


def _finals(comparison: Comparison) -> dict[str, float]:
    """Return how far each run got, more is better: its final reward, without one its loss."""
    found = {}
    for one in comparison.runs:
        reward, loss = (
            one.measured.figures[id].value for id in ("final_reward", "final_loss")
        )
        if reward is not None:
            found[one.name] = reward
        elif loss is not None:
            found[one.name] = -loss
    return found


def _run(
    run: Run,
    described: Mapping[str, Any],
    now: float,
    place: int | None,
    excerpts: ReportedSamples | None,
    *,
    detailed: bool,
) -> ReportedRun:
    headline = next(opening(described, run, now)).plain
    head = described["verdict"] or no_verdict(described)
    condition = (
        headline.removeprefix(f"{run.name}: ")
        .removeprefix(head)
        .removeprefix(",")
        .strip()
    )
    return ReportedRun(
        name=run.name,
        place=place,
        verdict=described["verdict"] or "",
        condition=condition,
        why=described["why"] or "",
        next=described["next"] or "",
        described=described,
        bests=tuple(_bests(run)),
        checkpoints=len(checkpoints(run)),
        excerpts=excerpts,
        detailed=detailed,
    )


def _bests(run: Run) -> Iterator[BestStep]:
    for metric in ("reward", "validation"):
        found = best(run, metric)
        if found is not None:
            yield BestStep(metric, found)


def _left_out(runs: Sequence[ReportedRun], drawn: DrawnRuns) -> Iterator[str]:
    """Yield what is left out to keep the report short."""
    if drawn.grey:
        chosen = (
            f"{COLOURED} have a colour: the baseline "
            "and those with the best final reward or loss"
        )
        yield f"Of {counted(len(drawn.all) + drawn.left_out, 'run')} {chosen}; others are grey."
    if drawn.left_out:
        yield f"The curves of {counted(drawn.left_out, 'run')} are not drawn."
    silent = sum(bool(one.described["findings"]) and not one.detailed for one in runs)
    if silent:
        yield f"The findings of {counted(silent, 'run')} are not written out, only their verdicts."
    unsampled = sum(one.excerpts is None for one in runs)
    if unsampled:
        yield f"The samples of {counted(unsampled, 'run')} are not shown."
