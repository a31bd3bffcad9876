"""A report as one record, from which all its written forms are made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from verl_tui import __version__
from verl_tui.check.data import report as check_report
from verl_tui.check.note import (
    FOLDED,
    VERDICTS,
    finding_lines,
    no_verdict,
    opening,
    source_lines,
)
from verl_tui.comparison.compare import Comparison, compare
from verl_tui.ledger import ledger
from verl_tui.patterns import pattern
from verl_tui.report.reported_samples import ReportedSamples, excerpts_of, masked
from verl_tui.report.run_charts import (
    COLOURED,
    ChartMaker,
    DrawnRuns,
    ReportChart,
    drawn_runs,
)
from verl_tui.runs.views.checkpoints import Best, best
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.text import Text

    from verl_tui.monitor import Monitor
    from verl_tui.plain_data import Data
    from verl_tui.rendering.session.notes import NoteBook
    from verl_tui.runs.run import Run

_BESTS = ("reward", "validation")
_NOTED = pattern(r"^(?:- |read )")
MOST_DETAILED = 20
"""Runs whose findings are written out: the worst of many."""


IndentedLines: TypeAlias = "tuple[tuple[int, str], ...]"
"""Lines, each behind a number: how far it is indented, or its step."""


class ReportedRun(NamedTuple):
    """One run of a report."""

    name: str
    place: int | None
    """Its place among those with a colour."""
    condition: str
    """Step, state and age, as `check` says them."""
    described: Data
    """Verdict, findings and everything else, as `check --json` has it."""
    bests: tuple[Best, ...]
    """Where reward and validation were best."""
    excerpts: ReportedSamples | None
    """None where they are left out."""
    findings: IndentedLines
    """Lines on its findings as `check` writes them, each with its indentation; none where they are
    not written out.
    """
    read: IndentedLines
    """The same on the files read."""
    notes: IndentedLines
    """The user's notes, each with its step."""
    hours: Data | None
    """Where its hours went, None where that is not known; written out where samples are."""


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
    command: str
    """The command line, without what gives access."""
    made: str
    """Date and time with its zone."""
    unread: tuple[str, ...]
    """Files that were not read, and why."""
    version: str = __version__

    @property
    def alone(self) -> bool:
        """True if it is on a single run."""
        return len(self.runs) == 1


def make_report(
    monitor: Monitor,
    runs: Sequence[Run],
    now: float,
    command: str,
    notebook: NoteBook,
) -> Report:
    """Return the report on runs; the samples of those with a colour are read for it.

    Args:
        monitor: Has read and judged.
        runs: Those that hold a training, the baseline first.
        now: Seconds since the epoch.
        command: How it is made, without what gives access.
        notebook: The user's notes.
    """
    comparison = compare(runs, monitor.verdicts, monitor.guide, now)
    drawn = drawn_runs(runs, _finals(comparison))
    described = {one["name"]: one for one in check_report(monitor, now)["runs"]}
    worst = worst_first([described[run.name] for run in runs])
    detailed = {one["name"] for one in worst[:MOST_DETAILED]}
    reported = [
        ReportedRun(
            name=run.name,
            place=drawn.place(run),
            condition=_condition(described[run.name], run, now),
            described=described[run.name],
            bests=tuple(filter(None, (best(run, metric) for metric in _BESTS))),
            excerpts=excerpts_of(run) if run in drawn.coloured else None,
            findings=_lines(finding_lines(described[run.name]))
            if run.name in detailed
            else (),
            read=_lines(source_lines(described[run.name]["sources"], run)),
            notes=tuple((at, masked(text)) for at, text in notebook.of(run).items()),
            hours=ledger(run, monitor.verdicts[run.name], monitor.guide, now),
        )
        for run in runs
    ]
    return Report(
        title=_title(runs),
        runs=tuple(reported),
        comparison=comparison,
        charts=tuple(ChartMaker(monitor, drawn, now, notebook).charts()),
        drawn=drawn,
        left_out=(*_without_training(monitor, runs), *_left_out(reported, drawn)),
        command=command,
        made=f"{datetime.fromtimestamp(now).astimezone():%Y-%m-%d %H:%M:%S %z}",
        unread=monitor.sentences,
    )


def worst_first(runs: Iterable[Data]) -> list[Data]:
    """Return runs, as `check --json` has them, by their verdicts."""
    return sorted(runs, key=lambda run: [*VERDICTS].index(run["verdict"]))


def _lines(noted: Iterable[tuple[int, Text]]) -> IndentedLines:
    """Return lines of `check` without what only it needs."""
    return tuple(
        (indent, _NOTED.sub("", text.plain).replace(FOLDED, ""))
        for indent, text in noted
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
        reward, loss = (one.figures[id].value for id in ("final_reward", "final_loss"))
        if reward is not None:
            found[one.run.name] = reward
        elif loss is not None:
            found[one.run.name] = -loss
    return found


def _condition(described: Data, run: Run, now: float) -> str:
    """Return what stands behind the verdict in the first line of `check`."""
    head = described["verdict"] or no_verdict(described)
    headline = next(opening(described, run, now)).plain.removeprefix(f"{run.name}: ")
    return headline.removeprefix(head).removeprefix(",").strip()


def _left_out(runs: Sequence[ReportedRun], drawn: DrawnRuns) -> Iterator[str]:
    """Yield what is left out to keep the report short."""
    if drawn.grey:
        chosen = (
            f"{COLOURED} have a colour: the baseline "
            "and those with the best final reward or loss"
        )
        yield f"Of {counted(len(runs), 'run')} {chosen}; others are grey."
    if left_out := len(runs) - len(drawn.all):
        yield f"The curves of {counted(left_out, 'run')} are not drawn."
    silent = sum(bool(one.described["findings"]) and not one.findings for one in runs)
    if silent:
        yield f"The findings of {counted(silent, 'run')} are not written out, only their verdicts."
    unsampled = sum(one.excerpts is None for one in runs)
    if unsampled:
        yield f"The samples and hours of {counted(unsampled, 'run')} are not shown."
