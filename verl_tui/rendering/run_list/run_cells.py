"""What the list of runs says of a run: state, progress, age, findings and last figures."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.health.finding import Severity, coverage_of
from verl_tui.indicators import factor
from verl_tui.rendering.charts.sparkline import gauge, sparkline
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.session.source_status import Unread, shown_state
from verl_tui.rendering.text.hues import RUNS
from verl_tui.rendering.text.numbers import compact, exact_step, percent_done
from verl_tui.rendering.text.printable import middle
from verl_tui.rendering.text.short_names import short_names
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.views.provenance import KL_INDICATORS
from verl_tui.runs.views.state import State, ahead, remaining, silence, state
from verl_tui.times import age, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Finding, Verdict
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.run import Run

_MOST = 9
"""Largest count of findings shown: names stand in one column whatever is found. Also the number of
runs with a key, which is their number in the list.
"""
_LOGGED = {"KL": KL_INDICATORS, "throughput": ("throughput",)}
_OPTIONAL = frozenset({"done", "ETA", *_LOGGED})
"""Columns of the table that may be empty for all runs."""
_STATE = 8
"""Cells of the usual states, of which `finished` is the longest."""
_INDENT = 5
"""Cells of number, badge and count of findings with the spaces after them."""
PERCENT, LABELLED_ETA = 4, 11
"""Cells of `100%`, and of `ETA 23h 59m`."""
_BADGES = {
    "ok": ("●", "nothing found"),
    "warning": ("▲", "warning"),
    "critical": ("✖", "critical"),
    "dim": ("●", "nothing found, not all judged"),
    "nothing": ("○", "no verdict yet"),
}
"""Marks of the badges, which differ by shape as well as by colour, and their meanings; by their
roles.
"""
_STATES: dict[State | Unread, tuple[str, str]] = {
    State.RUNNING: (" ", "ok"),
    State.FINISHED: ("✓", "ok"),
    State.CRASHED: ("†", "critical"),
    State.STALLED: ("‖", "warning"),
    State.ENDED: ("?", "dim"),
}
"""Signs of states if a name needs the room, and roles; others have none, and are dim. A running run
has its badge only.
"""


class ListedRun(NamedTuple):
    """One run of the list."""

    view: View
    run: Run
    names: tuple[str, ...]
    """Those of all runs, from which its own differs however short."""
    at: int
    """Its place in the list."""
    trouble: Sequence[Finding]
    """Its warnings and criticals that are not acknowledged, the worst first."""
    badge: str
    """Role of the badge; `nothing` if no rule could judge the run."""

    @property
    def state(self) -> State | Unread:
        """Its state."""
        return shown_state(self.view, self.run)

    @property
    def number_of_findings(self) -> str:
        """How many findings give the badge its colour, `+` for many; a space for none."""
        count = len(self.trouble) if self.badge in ("warning", "critical") else 0
        return ("+" if count > _MOST else str(count)) if count else " "

    def name(self, cells: int) -> str:
        """Return its name in at most so many cells."""
        return short_names(self.names, cells)[self.run.name]


def listed_run(view: View, runs: Sequence[Run], at: int) -> ListedRun:
    """Return the run at an index of the list."""
    run, names = runs[at], tuple(run.name for run in runs)
    verdict = view.monitor.verdicts.get(run.name)
    known = verdict.primary if verdict is not None else ()
    found = view.acknowledgements.open(run.name, known)
    trouble = [one for one in found if one.severity > Severity.INFO]
    trouble.sort(key=lambda finding: -finding.severity)
    badge = _badge(view, run, verdict, trouble) if verdict is not None else "nothing"
    return ListedRun(view, run, names, at, trouble, badge)


def _badge(view: View, run: Run, verdict: Verdict, trouble: Sequence[Finding]) -> str:
    """Return the role of a run's badge."""
    if run.step is None and not verdict.findings:
        return "nothing"
    if trouble:
        return "critical" if trouble[0].severity is Severity.CRITICAL else "warning"
    if not _is_judged(view, run, verdict):
        return "nothing"
    return "ok" if coverage_of(run, verdict).complete else "dim"


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


# -- of all runs -----------------------------------------------------------------------------------


def indent(view: View) -> int:
    """Return the cells before a name."""
    return _INDENT + 2 * bool(view.selected)


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


@cached_by_revision
def steps_text(run: Run) -> str:
    """Write the steps of a run: reached, and in total."""
    if run.step is None:
        return ""
    total = f"/{exact_step(run.total_steps)}" if run.total_steps else ""
    return exact_step(run.step) + total


def signs() -> str:
    """Explain the signs of states."""
    known = ((sign, state) for state, (sign, _) in _STATES.items() if sign != " ")
    return ", ".join(f"{sign} {state.value}" for sign, state in known)


def badges() -> str:
    """Explain the marks of badges."""
    return ", ".join(f"{mark} {means}" for mark, means in _BADGES.values())


# -- cells -----------------------------------------------------------------------------------------


def badge_of(one: ListedRun, *, padded: bool) -> Piece:
    """Write the badge with the number of findings."""
    count = one.number_of_findings if padded else one.number_of_findings.strip()
    return f"{_BADGES[one.badge][0]}{count} ", one.badge


def head(one: ListedRun, cells: int) -> Pieces:
    """Write the start of a row: number, badge, letter and name."""
    place = one.view.selection.place(one.run.name)
    letter = ("  " * bool(one.view.selected), "")
    if place is not None:
        letter = (f"{LETTERS[place]} ", RUNS[place])
    number = str(one.at + 1) if one.at < _MOST else " "
    name = one.name(max(0, cells - indent(one.view)))
    shown = "shown" if one.view.run is one.run else "name"
    return [(f"{number} ", "dim"), badge_of(one, padded=True), letter, (name, shown)]


def state_word(one: ListedRun, cells: int) -> Piece:
    """Write the state, as a sign in one cell."""
    sign, role = _STATES.get(one.state, (" ", "dim"))
    return sign if cells == 1 else one.state.value, role


def last_value(one: ListedRun, indicator: str) -> Piece:
    """Write the newest value of an indicator with its role."""
    series = one.run.present(one.run.indicators.get(indicator))
    if series is None:
        return "", ""
    value = series.values[-1] * factor(indicator, series.key)
    return compact(value), "name" if isfinite(value) else "odd"


def done(one: ListedRun, cells: int) -> Pieces:
    """Write the share that is done, with a bar where that has room."""
    step, total = one.run.step, one.run.total_steps
    share = min(1.0, max(0.0, step / total)) if step is not None and total else None
    percent = "" if share is None else percent_done(share)
    bar = cells - PERCENT - 1
    words: Pieces = [(percent.rjust(PERCENT), "dim")]
    if bar < PERCENT:
        return words
    drawn = (" " * bar, "") if share is None else (gauge(share, bar), "bar")
    return [drawn, (" ", ""), *words]


def time_left(one: ListedRun, cells: int) -> Piece:
    """Write the time that a run will still take."""
    left = remaining(one.run, one.view.now)
    if left is None or one.state is Unread.READING:
        return "", "dim"
    return "ETA " * (cells >= LABELLED_ETA) + duration(left), "dim"


def last_activity(one: ListedRun) -> Piece:
    """Write the age of the newest record, or that it is dated ahead of the clock."""
    if ahead(one.run, one.view.now) is not None:
        return "ahead", "dim"
    quiet = silence(one.run, one.view.now)
    return "" if quiet is None else age(quiet), "dim"


def reward_trend(one: ListedRun, cells: int) -> Pieces:
    """Draw the reward."""
    reward = one.run.present(one.run.indicators.get("reward"))
    return [] if reward is None else sparkline(reward, cells, "reward")


def worst_finding(one: ListedRun, cells: int) -> Pieces:
    """Write the rule of the worst finding, and the number of others."""
    if not one.trouble:
        return []
    more = f" +{len(one.trouble) - 1}" if one.trouble[1:] else ""
    name = middle(one.trouble[0].id, cells - cell_len(more))
    return [(name, one.badge), (more, "dim")]
