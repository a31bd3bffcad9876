"""What the list says of each run: state, progress, age, what was found, and its last figures."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from verl_tui.health.finding import Severity
from verl_tui.indicators import factor
from verl_tui.rendering.run_list.entry_rows import RunEntry
from verl_tui.rendering.run_list.table import RunFigures
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.text import run_colours
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.runs.cached import cached_by_revision
from verl_tui.runs.views.state import remaining, silence, state
from verl_tui.times import age, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run

_MOST = 99
"""Findings that are counted: more digits would take the room of names."""
_KL = ("policy_kl", "reference_kl")
"""Indicators that are called KL; the first that a run logs."""
_LOGGED = {"KL": _KL, "throughput": ("throughput",)}
_SOME = frozenset({"done", "ETA", *_LOGGED})
"""Columns of the table that not every run has a word for, with the indicators that they show."""


class HealthBadge(NamedTuple):
    """How a run is."""

    badge: str = "nothing"
    """Role of the badge; a run of which no rule could judge anything is not called healthy."""
    found: str = ""
    """How many findings give the badge its colour; empty for none."""


class EntryCache:
    """The entries of the list; an entry is written anew only when its run has changed."""

    def __init__(self) -> None:
        self._standings: WeakKeyDictionary[Run, tuple[object, HealthBadge]] = WeakKeyDictionary()
        self._entries: WeakKeyDictionary[Run, tuple[object, RunEntry]] = WeakKeyDictionary()

    def standing(self, view: View, run: Run) -> HealthBadge:
        """Return how a run is."""
        key = (view.monitor.verdicts.get(run.name), view.acknowledgements.revision, run.revision)
        made = self._standings.get(run)
        if made is None or made[0] != key:
            made = self._standings[run] = (key, _standing(view, run))
        return made[1]

    def entry(self, view: View, run: Run) -> RunEntry:
        """Return what is said of a run, whatever its place in the list."""
        standing = self.standing(view, run)
        key = (view.now, run.revision, standing)
        made = self._entries.get(run)
        if made is None or made[0] != key:
            made = self._entries[run] = (key, _entry(view, run, standing))
        return made[1]


@cached_by_revision
def steps_text(run: Run) -> str:
    """Write how far a run is, and of how many steps."""
    if run.step is None:
        return ""
    return exact_step(run.step) + (f"/{exact_step(run.total_steps)}" if run.total_steps else "")


def figures(view: View, run: Run) -> RunFigures:
    """Return the last values of a run, and the worst of what the user does not know of."""
    found = sorted(_trouble(view, run), key=lambda finding: -finding.severity)
    kl = next((name for name in _KL if name in run.indicators), _KL[0])
    return RunFigures(
        reward=_last(run, "reward"),
        kl=_last(run, kl),
        throughput=_last(run, "throughput"),
        finding=found[0].id if found else "",
        more=max(0, len(found) - 1),
    )


def ranked(run: Run, entry: RunEntry, order: str) -> str:
    """Write what a run is sorted by, where neither its name nor its state says so."""
    if order == "reward":
        return _last(run, "reward")[0]
    return entry.age if order == "activity" else ""


def wordless(runs: Sequence[Run]) -> frozenset[str]:
    """Return the columns of the table in which no run has anything to say."""
    return _SOME.difference(*map(_said, runs))


@cached_by_revision
def _said(run: Run) -> frozenset[str]:
    """Return the columns of `_SOME` in which a run has something to say."""
    found = {
        name
        for name, indicators in _LOGGED.items()
        if not run.indicators.keys().isdisjoint(indicators)
    }
    return frozenset(found | ({"done", "ETA"} if run.total_steps else set()))


def selected(view: View, run: Run) -> tuple[str, str]:
    """Return the letter that a selected run has wherever it is shown, with its colour."""
    place = view.selection.place(run.name)
    if place is None:
        return ("  " if view.selected else "", "")
    return f"{LETTERS[place]} ", run_colours.RUNS[place]


def _last(run: Run, indicator: str) -> tuple[str, str]:
    """Write the newest value of an indicator; one that is no number is called so."""
    series = run.present(run.indicators.get(indicator))
    if series is None:
        return "", ""
    value = series.values[-1] * factor(indicator, series.key)
    return compact(value), "name" if isfinite(value) else "odd"


def _entry(view: View, run: Run, standing: HealthBadge) -> RunEntry:
    step, total = run.step, run.total_steps
    now = state(run, view.now)
    left = remaining(run, view.now)
    quiet = silence(run, view.now)
    return RunEntry(
        name=run.name,
        badge=standing.badge,
        count=standing.found,
        state=now,
        steps=steps_text(run),
        share=min(1.0, max(0.0, step / total)) if step is not None and total else None,
        eta="" if left is None else duration(left),
        age="" if quiet is None else age(quiet),
        reward=run.present(run.indicators.get("reward")),
    )


def _standing(view: View, run: Run) -> HealthBadge:
    verdict = view.monitor.verdicts.get(run.name)
    if verdict is None or (run.step is None and not verdict.findings):
        return HealthBadge()
    bad = _trouble(view, run)
    if bad:
        worst = max(finding.severity for finding in bad)
        return HealthBadge(
            "critical" if worst is Severity.CRITICAL else "warning", str(min(len(bad), _MOST))
        )
    if view.acknowledgements.open(run.name, verdict.primary):
        return HealthBadge("ok")
    guide = getattr(view.monitor, "guide", None)
    skipped = {rule.id for rule in verdict.not_judged}
    return HealthBadge(
        "nothing" if guide is not None and {rule.id for rule in guide.rules} <= skipped else "ok"
    )


def _trouble(view: View, run: Run) -> Sequence[Finding]:
    """Return what is wrong with a run and not acknowledged."""
    verdict = view.monitor.verdicts.get(run.name)
    open_ = view.acknowledgements.open(run.name, verdict.primary) if verdict is not None else ()
    return [finding for finding in open_ if finding.severity > Severity.INFO]
