"""Content of the run list: state, progress, age, findings and last figures of each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.health.finding import Severity, coverage_of
from verl_tui.indicators import factor
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.session.source_status import Unread, shown_state
from verl_tui.rendering.text import hues
from verl_tui.rendering.text.numbers import compact, exact_step, percent_done
from verl_tui.rendering.text.short_names import short_names
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.views.provenance import KL_INDICATORS, shown_kl
from verl_tui.runs.views.state import State, ahead, remaining, silence, state
from verl_tui.times import age, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Finding, Verdict
    from verl_tui.rendering.charts.chart_data import Points
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
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
    return f"{LETTERS[place]} ", hues.RUNS[place]


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


_BADGES = {"ok": "●", "dim": "●", "warning": "▲", "critical": "✖", "nothing": "○"}
_HEALTH = {
    "ok": "nothing found",
    "warning": "warning",
    "critical": "critical",
    "dim": "nothing found, not all judged",
    "nothing": "no verdict yet",
}
"""Meanings of the badges, which are named by their roles."""
_STATE_ROLES: dict[State | Unread, str] = {
    State.RUNNING: "ok",
    State.FINISHED: "ok",
    State.STALLED: "warning",
    State.CRASHED: "critical",
}
"""Roles of states; others are dim."""
_SIGNS: dict[State | Unread, str] = {
    State.FINISHED: "✓",
    State.CRASHED: "†",
    State.STALLED: "‖",
    State.ENDED: "?",
}
"""Signs of states if a name needs the room; a running run has its badge only."""
_INDENT = 4
"""Cells of number and badge with the spaces after them, without the count of findings."""


class RunFigures(NamedTuple):
    """The last values of a run, each with its role, and its worst finding."""

    reward: tuple[str, str] = ("", "")
    kl: tuple[str, str] = ("", "")
    throughput: tuple[str, str] = ("", "")
    finding: str = ""
    """Rule of the worst finding."""
    more: int = 0
    """Number of further findings."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """The content of one run's row."""

    name: str
    badge: str
    """Role of the badge."""
    count: str
    """Number of findings not acknowledged, in one cell."""
    state: State | Unread
    steps: str
    share: float | None
    """Share of the run that is done, 0..1."""
    eta: str
    age: str
    reward: Points | None
    figures: RunFigures
    number: str = " "
    shown: bool = False
    mark: tuple[str, str] = ("", "")
    """Letter of a selected run with its role, padded to the same width in all entries."""

    @property
    def indent(self) -> int:
        """Cells before the name."""
        return _INDENT + len(self.count) + len(self.mark[0])

    @property
    def percent(self) -> str:
        """Percentage that is done, never 100% before the end."""
        return "" if self.share is None else percent_done(self.share)


def glyph(badge: str) -> str:
    """Return the mark of a badge; marks differ by shape as well as by colour."""
    return _BADGES[badge]


def signs() -> str:
    """Explain the signs of states."""
    return ", ".join(f"{sign} {state.value}" for state, sign in _SIGNS.items())


def badges() -> str:
    """Explain the marks of badges."""
    return ", ".join(f"{glyph(badge)} {means}" for badge, means in _HEALTH.items())


NameWriter = Callable[["RunEntry", int], str]
"""Writes the name of a run in at most so many cells, different from other names."""


def naming(names: Sequence[str]) -> NameWriter:
    """Return a function that writes the names of runs."""
    every = tuple(names)
    return lambda entry, cells: short_names(every, cells)[entry.name]


def head_of(entry: RunEntry, cells: int, named: NameWriter) -> Pieces:
    """Write the start of a row in so many cells: number, badge, letter and name."""
    name = named(entry, max(0, cells - entry.indent))
    return [
        (f"{entry.number} ", "dim"),
        (f"{glyph(entry.badge)}{entry.count} ", entry.badge),
        entry.mark,
        (name, "shown" if entry.shown else "name"),
        (" " * max(0, cells - entry.indent - cell_len(name)), ""),
    ]


def state_word(entry: RunEntry, cells: int) -> tuple[str, str]:
    """Write the state, as a sign in one cell."""
    word = _SIGNS.get(entry.state, " ") if cells == 1 else entry.state.value
    return word, _STATE_ROLES.get(entry.state, "dim")
