"""Content of the run list: state, progress, age, findings and last figures of each run."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.coverage import coverage_of
from verl_tui.health.finding import Severity
from verl_tui.indicators import factor
from verl_tui.rendering.run_list.entry_rows import RunEntry, RunFigures
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.session.shown_state import Unread, shown_state
from verl_tui.rendering.text import run_colours
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.views.provenance import KL_INDICATORS, shown_kl
from verl_tui.runs.views.state import ahead, remaining, silence, state
from verl_tui.times import age, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Finding, Verdict
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

_MOST = 9
"""Largest count of findings shown: names stand in one column whatever is found."""
_LOGGED = {"KL": KL_INDICATORS, "throughput": ("throughput",)}
_STATE = 8
"""Cells of the usual states, of which `finished` is the longest."""
_OPTIONAL = frozenset({"done", "ETA", *_LOGGED})
"""Columns of the table that may be empty for all runs."""


class HealthBadge(NamedTuple):
    """The health of a run."""

    badge: str = "nothing"
    """Role of the badge; `nothing` if no rule could judge the run."""
    found: str = " "
    """Number of findings that give the badge its colour, `+` for many; a space for none."""


@cached_by_revision
def steps_text(run: Run) -> str:
    """Write the steps of a run: reached, and in total."""
    if run.step is None:
        return ""
    return exact_step(run.step) + (
        f"/{exact_step(run.total_steps)}" if run.total_steps else ""
    )


def _figures(view: View, run: Run) -> RunFigures:
    found = sorted(_trouble(view, run), key=lambda finding: -finding.severity)
    return RunFigures(
        reward=_last(run, "reward"),
        kl=_last(run, shown_kl(run)),
        throughput=_last(run, "throughput"),
        finding=found[0].id if found else "",
        more=max(0, len(found) - 1),
    )


def state_cells(runs: Sequence[Run], now: float) -> int:
    """Return the cells for the states of runs; those that take more are of runs without steps."""
    others = (state(run, now) for run in runs if run.step is None)
    return max([_STATE, *(len(one.value) for one in others)])


def wordless(runs: Sequence[Run]) -> frozenset[str]:
    """Return the columns of the table that are empty for all runs."""
    return _OPTIONAL.difference(*map(_filled, runs))


@cached_by_revision
def _filled(run: Run) -> frozenset[str]:
    """Return the columns of `_OPTIONAL` that have a value for a run."""
    logged = {
        name
        for name, ids in _LOGGED.items()
        if not run.indicators.keys().isdisjoint(ids)
    }
    return frozenset(logged | ({"done", "ETA"} if run.total_steps else set()))


def _letter(view: View, run: Run) -> tuple[str, str]:
    place = view.selection.place(run.name)
    if place is None:
        return ("  " if view.selected else "", "")
    return f"{LETTERS[place]} ", run_colours.RUNS[place]


def _last(run: Run, indicator: str) -> tuple[str, str]:
    """Write the newest value of an indicator with its role."""
    series = run.present(run.indicators.get(indicator))
    if series is None:
        return "", ""
    value = series.values[-1] * factor(indicator, series.key)
    return compact(value), "name" if isfinite(value) else "odd"


def run_entry(view: View, run: Run) -> RunEntry:
    """Return the content of a run's row, without its place in the list."""
    badge = health_badge(view, run)
    step, total = run.step, run.total_steps
    current = shown_state(view, run)
    left = remaining(run, view.now) if current is not Unread.READING else None
    return RunEntry(
        name=run.name,
        badge=badge.badge,
        count=badge.found,
        state=current,
        steps=steps_text(run),
        share=min(1.0, max(0.0, step / total)) if step is not None and total else None,
        eta="" if left is None else duration(left),
        age=_age(run, view.now),
        reward=run.present(run.indicators.get("reward")),
        figures=_figures(view, run),
        mark=_letter(view, run),
    )


def _age(run: Run, now: float) -> str:
    """Return the age of the newest record, or that it is dated ahead of the clock."""
    if ahead(run, now) is not None:
        return "ahead"
    quiet = silence(run, now)
    return "" if quiet is None else age(quiet)


def health_badge(view: View, run: Run) -> HealthBadge:
    """Return the health of a run."""
    verdict = view.monitor.verdicts.get(run.name)
    if verdict is None or (run.step is None and not verdict.findings):
        return HealthBadge()
    if bad := _trouble(view, run):
        worst = max(finding.severity for finding in bad)
        role = "critical" if worst is Severity.CRITICAL else "warning"
        return HealthBadge(role, str(len(bad)) if len(bad) <= _MOST else "+")
    if not _is_judged(view, run, verdict):
        return HealthBadge()
    return HealthBadge("ok" if coverage_of(run, verdict).complete else "dim")


def _is_judged(view: View, run: Run, verdict: Verdict) -> bool:
    """True if a rule could judge an indicator of the run, and not only its end, or if the rules are
    unknown.
    """
    if run.preview or not run.indicators:
        return False
    if view.acknowledgements.open(run.name, verdict.primary):
        return True
    guide = getattr(view.monitor, "guide", None)
    skipped = {rule.id for rule in verdict.not_judged}
    return guide is None or not {rule.id for rule in guide.rules} <= skipped


def _trouble(view: View, run: Run) -> Sequence[Finding]:
    """Return the warnings and criticals of a run that are not acknowledged."""
    verdict = view.monitor.verdicts.get(run.name)
    open_ = (
        view.acknowledgements.open(run.name, verdict.primary)
        if verdict is not None
        else ()
    )
    return [finding for finding in open_ if finding.severity > Severity.INFO]
