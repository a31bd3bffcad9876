"""The verdict on the shown run in a row: how it is, the cause in words, since when, what to do. Of
what has no room evidence goes first, then advice; what a row begins with stays.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.health.finding import Finding, Severity, coverage_of, weighty
from verl_tui.health.next_step import (
    ENDS,
    NOTHING,
    in_short,
    next_step,
    next_step_in_short,
)
from verl_tui.health.root_cause import waiting
from verl_tui.means import finite, mean
from verl_tui.rendering.charts.downsample import TREND_POINTS, trend, whole_trend
from verl_tui.rendering.session.snapshot import (
    Unread,
    View,
    reading,
    shown_state,
    why_no_run,
)
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import (
    Piece,
    Pieces,
    cells_of,
    fit,
    fit_words,
    fitting,
    printable,
)
from verl_tui.rendering.text.table import sized
from verl_tui.runs.views.checkpoints import best
from verl_tui.runs.views.signs_of_life import phase
from verl_tui.runs.views.state import (
    State,
    evaluated,
    is_evaluation,
    state_words,
    unread_form,
)
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.run import Run

MARKS = {"critical": "✖", "warning": "▲", "info": "•", "good": "●", "dim": "○"}
"""By roles and severities: they differ by shape as well as by colour."""
_ROLES: dict[State | Unread, str] = {
    State.RUNNING: "good",
    State.FINISHED: "good",
    State.STALLED: "warning",
    State.CRASHED: "critical",
}
"""Roles of states; others are dim."""
STANDINGS = ("critical", "warning", "good", "dim")
"""Roles of a run, the worst first."""
_WAITS = "◌"
_WAYS: dict[int | None, str] = {1: "rising", 0: "steady", -1: "falling"}
_WENT = {1: "rose", -1: "fell"}
_TALLIED = 100
"""Columns from which the count of runs has its room; below it has what is left."""
_LEAST = 20
"""Cells from which advice is cut rather than left out."""


class Headline(NamedTuple):
    """What there is to say of a run, and its role."""

    role: str
    mark: str
    cause: str
    since: str = ""
    more: Sequence[str] = ()
    """What may follow: evidence and advice, in ever fewer words."""
    others: int = 0
    """Further findings."""
    doing: str = ""
    """What the run was doing, or which process it was: it follows the cause where there is room."""

    @property
    def head(self) -> str:
        """What always stands there."""
        return f"{self.mark} {self.cause}{self.since}".lstrip()

    def in_row(self, width: int) -> str:
        """Return as much of it as fits: where there is too little room more is left out, or cut
        where much of it is seen, and of the head the cause is cut rather than since when.
        """
        full = self._replace(cause=f"{self.cause}{self.doing}").head
        forms = (head + words for head in (full, self.head) for words in self.more)
        if whole := fitting(forms, width):
            return whole
        left = width - cell_len(self.head)
        rest = fit_words("".join(self.more[-1:]), left) if left > _LEAST else ""
        cause = fit(self.cause, cell_len(self.cause) + min(0, left))
        return self._replace(cause=cause).head + rest


def verdict_rows(view: View, width: int, height: int) -> list[Pieces]:
    """Return the verdict in one row, or in two where rows are short."""
    one = headline(view)
    if width < _TALLIED:
        one = one._replace(since=one.since.replace("since step ", "since "))
    right: Pieces = [(f"  +{one.others}", one.role)] if one.others else []
    if view.run and view.loading and one.mark != _WAITS:
        right.append((f"  {reading(view)}", "dim"))
    below = []
    if height > 1:
        rest = one._replace(mark="", cause="", since="", doing="").in_row(width)
        below = [[(rest.lstrip(": "), one.role)]]
        one = one._replace(more=())
    elif width >= _TALLIED:
        asks = one.role in STANDINGS[2:] and bool(view.verdict.not_judged)
        right += [(f"  {view.keys['health.not_judged']}: why", "dim")] * asks
        right += tally(view)
    room = width - cells_of(right)
    left = [(one.in_row(room), one.role)]
    return [[*sized(left, room), *right] if right else left, *below]


def _more(proofs: Sequence[str], advice: Sequence[str], *, firm: bool) -> Sequence[str]:
    """Return the ways to follow a head, the fullest first; evidence stays rather than advice, or
    the other way round.
    """
    after = [f" → {one}" for one in reversed(advice)]
    first, then = [*proofs, ""], after
    if firm or not after:
        first, then = [*proofs], [*after, ""]
    return [printable(f"x{proof}{one}")[1:] for proof, one in product(first, then)]


# -- what is said ----------------------------------------------------------------------------------


def headline(view: View) -> Headline:
    """Return what there is to say of the shown run."""
    run = view.run
    if not run:
        said = [f": {printable(one)}" for one in view.monitor.sentences[:1]]
        return Headline("dim", _WAITS, why_no_run(view), "", said)
    found = open_findings(view, run)
    if view.loading and not (run.preview and found):
        shown = "; a preview is shown" * run.preview
        return Headline("dim", _WAITS, reading(view) + shown)
    if found and (found[0].severity > Severity.INFO or found[0].id in ENDS):
        return _found(run, found)
    return _quiet(view, run, found)


def open_findings(view: View, run: Run) -> Sequence[Finding]:
    """Return the findings about a run that stand for themselves and are not acknowledged, the worst
    first.
    """
    verdict = view.monitor.verdicts.get(run.name)
    known = verdict.primary if verdict else ()
    seen = view.acknowledgements.acknowledged
    unseen = (one for one in known if not seen(run.name, one))
    return sorted(unseen, key=lambda finding: -finding.severity)


def standing(view: View, run: Run) -> str:
    """Return the role of a run, the same wherever it is shown: that of its worst finding; good only
    where reward, KL, entropy and response length were judged, and it goes on or has ended in order.
    Acknowledged findings are neither.
    """
    found, verdict = open_findings(view, run), view.monitor.verdicts.get(run.name)
    if found and found[0].severity > Severity.INFO:
        return found[0].severity.word
    if not verdict or run.preview or run.step is None or verdict.severity:
        return "dim"
    broken = shown_state(view, run) in (State.CRASHED, State.STALLED, Unread.READING)
    return "good" if not broken and coverage_of(run, verdict).complete else "dim"


def state_piece(view: View, run: Run) -> Piece:
    """Return the words for a run's state and their role: good only where its standing is, too."""
    current = shown_state(view, run)
    role = _ROLES.get(current, "dim")
    good = role != "good" or standing(view, run) == "good"
    return state_words(run, current), role if good else ""


def tally(view: View) -> Pieces:
    """Count the runs by their standing; nothing of one alone, or before all are read."""
    runs = view.monitor.runs.values()
    if len(runs) < 2 or view.loading:
        return []
    counts = Counter(standing(view, run) for run in runs)
    parts = [(f" {counts[role]} {MARKS[role]}", role) for role in STANDINGS]
    return [(f"  {len(runs)} runs:", "dim"), *(one for one in parts if counts[one[1]])]


def problems(view: View) -> list[tuple[Run, Finding]]:
    """Return the warnings and criticals of all runs that are not acknowledged, the worst runs
    first.
    """
    known = [(run, weighty(open_findings(view, run))) for run in view.listed]
    known.sort(key=lambda one: -max([found.severity for found in one[1]], default=0))
    return [(run, found) for run, findings in known for found in findings]


def _how_it_ended(cause: str) -> tuple[str, str]:
    """Return the cause of an end, and what is left out of it where there is no room."""
    mark = " while " if " while " in cause else ": "
    head, _, rest = cause.rpartition(mark)
    return (head, f"{mark}{rest}") if head else (cause, "")


def _found(run: Run, found: Sequence[Finding]) -> Headline:
    worst, advice = found[0], next_step_in_short(run, found[0])
    over = worst.id in ENDS
    cause, doing = _how_it_ended(worst.headline) if over else (worst.headline, "")
    numbers = "" if over else worst.message.partition(": ")[2]
    clauses = (numbers, numbers.partition("; ")[0])
    proofs = [f": {one}" for one in dict.fromkeys(clauses) if one]
    at = "" if worst.since_step is None else str(worst.since_step)
    return Headline(
        "dim" if worst.severity is Severity.INFO else worst.severity.word,
        MARKS[worst.severity.word],
        cause,
        at and f" {'at' if over else 'since step'} {at}",
        _more(proofs, advice, firm=False),
        len(found) - 1,
        doing,
    )


def _quiet(view: View, run: Run, noted: Sequence[Finding]) -> Headline:
    """Return what is said of a run without a warning."""
    current, verdict, guide = shown_state(view, run), view.verdict, view.monitor.guide
    advice = _without_finding(run, current)
    every = {rule.id for rule in guide.rules} - guide.silenced
    judged = len(every - {rule.id for rule in verdict.not_judged})
    why = _why_unjudged(view, run, current, judged)
    if why:
        mark = _WAITS if current is State.WAITING else "○"
        return Headline("dim", mark, why, "", _more([], advice, firm=False))
    known = len(verdict.primary) - len(noted)
    notes = "".join(f"; noted: {one.headline}" for one in noted[:1])
    notes += f"; {known} acknowledged" * bool(known)
    if standing(view, run) == "good":
        at, ways = f" at step {run.step or 0}", course(run)
        rules = f"{counted(judged, 'rule')} found nothing"
        all_ = f": {', '.join((*ways[:1], rules))}"
        proofs = [all_ + notes, all_, *[f": {one}" for one in ways]]
        return Headline("good", "●", "healthy", at, _more(proofs, advice, firm=True))
    covered = coverage_of(run, verdict)
    lacks = covered.words.replace("; ", " (", 1)
    lacks += ")" * bool(lacks)
    said = f": {judged} of {counted(len(every), 'rule')} checked it{lacks}"
    more = _more([said + notes, said, lacks], advice, firm=True)
    found = ("no verdict", "nothing found", "nothing new")
    cause = found[2 if known else covered.most]
    return Headline("dim", "○", cause, "", more)


def _without_finding(run: Run, current: State | Unread) -> Sequence[str]:
    """Return what to do about a run without a finding, from its first clause to all of it."""
    top = best(run) if current is State.FINISHED else None
    advice = next_step(run, None, current, top)
    return [] if advice == NOTHING or current is State.WAITING else in_short(advice)


def _why_unjudged(view: View, run: Run, current: State | Unread, judged: int) -> str:
    """Return why nothing was judged; empty where something was."""
    if current is State.NO_TRAINING:
        return "no training found in it"
    if run.step is None:
        return why_no_step(view, run)
    if run.name not in view.monitor.verdicts:
        return "no verdict yet"
    if not run.indicators:
        return "no verdict: no indicator of this log is known"
    return "" if judged else "no verdict: no rule could check it yet"


def why_no_step(view: View, run: Run) -> str:
    """Return what a run without a step that can be read waits for, and for how long, as far as that
    is known, or why there will be none.
    """
    if is_evaluation(run):
        return evaluated(run)
    if unread_form(run):
        return "its steps cannot be read"
    if shown_state(view, run) in (State.FINISHED, State.CRASHED, State.ENDED):
        return "no step was logged"
    wait, doing = waiting(run), phase(run)
    if not wait:
        return "waits for the first step" + (f"; {doing}" if doing else "")
    return wait.headline


def course(run: Run) -> list[str]:
    """Say where the reward went, and where it goes, as the arrow beside it does, in ever fewer
    words.
    """
    series = run.present(run.indicators.get("reward"))
    if not series or not isfinite(series.values[-1]):
        return []
    values = series.values
    goes = whole_trend(series)
    way = _WAYS.get(goes, "")
    ends = [finite(part) for part in (values[:TREND_POINTS], values[-TREND_POINTS:])]
    if not way or len(values) < 2 * TREND_POINTS or not all(ends):
        return [f"reward {way}"] * bool(way)
    begun, now = (mean(one) for one in ends)
    went = trend((begun, begun, now, now), series.bounds)
    full = f"mean reward {way} at {compact(now)}"
    if went:
        pace = "still" if went == goes else "now"
        full = f"mean reward {_WENT[went]} from {compact(begun)} to {compact(now)}, {pace} {way}"
    return [full, f"reward {way}"]
