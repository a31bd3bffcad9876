"""One cause, one finding: names the cause of each finding, by its rule and when it began.

A service that stopped answering is looked for only where the reward has fallen: it is no fault by
itself.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.health.root_cause import fails_service
from verl_tui.patterns import pattern
from verl_tui.runs.views.signs_of_life import all_trouble
from verl_tui.text import one_line
from verl_tui.words import rounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.health.guide import Guide, Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run
    from verl_tui.runs.source_state import Trouble

_TOLERANCE = 10
"""Logged points by which a consequence may seem to begin before its cause: windows blur the
beginning of both, and diagnoses by blocks know theirs by ten points.
"""


def with_causes(
    findings: Iterable[Finding], guide: Guide, run: Run
) -> tuple[Finding, ...]:
    """Name in each finding the one that it follows from, where there is one; a chain of them ends
    at its first cause.

    A finding follows from another if the other's rule explains it, it is no worse, and it began no
    earlier than the other did. What its rule calls a sign may have begun before. What a rule
    explains `if_first` follows whatever its severity, which its cause then has, too.

    Args:
        findings: What was found.
        guide: The rules in force.
        run: Where it was found.
    """
    found = list(findings)
    rules = [guide.rule(one.id) for one in found]
    direct: dict[int, int] = {}
    for at, cause_at in product(range(len(found)), repeat=2):
        own, rule, cause = rules[at], rules[cause_at], found[cause_at]
        leads = own and _moved_first(found[at], cause, own, run)
        if at in direct or not rule or leads:
            continue
        if (
            _follows(found[at], cause, rule, run)
            and _first_cause(direct, cause_at) != at
        ):
            direct[at] = cause_at
    folded = [*found]
    for at in direct:
        cause_at = _first_cause(direct, at)
        cause = folded[cause_at]
        worst = max(cause.severity, found[at].severity)
        folded[cause_at] = replace(cause, severity=worst)
        folded[at] = replace(folded[at], consequence_of=cause.id)
    return tuple(folded)


def _follows(one: Finding, cause: Finding, rule: Rule, run: Run) -> bool:
    if _moved_first(cause, one, rule, run):
        return True
    if one.id not in (*rule.explains, *rule.signs) or one.severity > cause.severity:
        return False
    before = rule.before if one.id in rule.signs else _TOLERANCE
    least = _step_before(run, cause, before)
    return least is not None and one.begun is not None and one.begun >= least


def _moved_first(first: Finding, later: Finding, rule: Rule, run: Run) -> bool:
    """Return whether a finding explains a later one by having moved first."""
    if later.id not in rule.if_first or not first.certain or later.begun is None:
        return False
    least = _step_before(run, first, rule.lag)
    most = _step_before(run, first, -rule.within)
    return least is not None and most is not None and least <= later.begun <= most


def _first_cause(direct: dict[int, int], at: int) -> int:
    """Return the place of the cause at the beginning of a chain, which is no circle."""
    while at in direct:
        at = direct[at]
    return at


def _step_before(run: Run, finding: Finding, points: int) -> int | None:
    """Return the step so many logged points before a finding began (below 0: after), by the metric
    that it judged.
    """
    since = finding.begun
    series = run.series(finding.key or "")
    if since is None or not series:
        return since
    at = bisect_left(series.steps, since) - points
    if points < 0:
        return max(since, series.steps[min(at, len(series) - 1)])
    return min(since, series.steps[max(0, at)])


_ERRORS = "worker-errors"
_FALLS = ("reward-zero", "reward-cliff", "reward-slide")


def with_first_moves(
    known: Sequence[Finding], context: RuleContext
) -> Sequence[Finding]:
    """Return the findings with the service that stopped answering before the reward fell.

    Args:
        known: What was found so far.
        context: The run.
    """
    falls = [one for one in known if one.id in _FALLS and one.key]
    if not falls or _ERRORS in context.guide.silenced:
        return known
    found = _service(context, min(falls, key=lambda one: one.since_step or 0))
    others = [one for one in known if one.id != _ERRORS]
    return [*others, found] if found else known


def _service(context: RuleContext, fall: Finding) -> Finding | None:
    """Return the finding on a service whose calls began to fail where the reward began to fall."""
    series = context.known(fall.key)
    rule = context.guide.rule(_ERRORS)
    if not series or not rule or fall.since_step is None:
        return None
    for one in new_lines(context.run, series.steps, fall.since_step):
        said = fails_service(context.run, one.path, one.trouble)
        if said:
            facts = {"words": said.words, "title": said.title, "fall": fall.since_step}
            return rule.finding(
                {**facts, "now": one.now},
                (said.line, *in_words([one])),
                "service",
                since=one.since,
                step=fall.step,
                key=fall.key,
                advice=said.advice or None,
            )
    return None


_EARLIER, _LATER = 10, 3
"""Logged points by which they may begin before a finding, as windows blur when that began, and
after.
"""
_PAST, _LEAST = 20, 3
"""Logged points that show how many were usual, and how many there must be."""
_TIMES, _MANY = 5.0, 1.0
"""Multiple of the usual number, and lines a logged point, from which they are new: heuristic."""
_MOST = 3
NEWS = "new in the log"
"""Begins the evidence of these."""
_NAMES = pattern(
    r"(?<![\w.~-])[\w.~-]{0,60}/(?:[\w.@#+=~-]{1,100}/?){1,20}"
    r"|(?<![\w-])(?=[\w-]{0,60}[#\d])[\w-]{8,100}"
)
"""Paths, and identifiers with digits, which are blanked here as well."""


class NewLines(NamedTuple):
    """One form of line that is new since a step."""

    form: str
    """Its text, with blanks for what varies."""
    before: float
    now: float
    """Lines a logged point."""
    since: int
    """The first step with many."""
    path: str
    trouble: Trouble
    """The kind that has most of them."""

    @property
    def line(self) -> int | None:
        """The number of the first line, None if there were some long before."""
        return (
            self.trouble.first.line if self.trouble.until(self.since - 1) == 0 else None
        )


def new_lines(run: Run, steps: Sequence[int], step: int) -> list[NewLines]:
    """Return what is new in the log where a finding begins, the most frequent first.

    Args:
        run: The run.
        steps: The logged points of the metric that was judged.
        step: The finding's first step.
    """
    onset = bisect_left(steps, step)
    forms: dict[str, list[tuple[str, Trouble]]] = {}
    for path, state, one in all_trouble(run):
        later = one.step is not None and one.step >= steps[max(0, onset - 1)]
        if later and state.step is not None:
            forms.setdefault(_NAMES.sub("#", one.form), []).append((path, one))
    found = (_multiplied(form, kinds, steps, onset) for form, kinds in forms.items())
    return sorted([one for one in found if one], key=lambda one: -one.now)


def _multiplied(
    form: str, kinds: Sequence[tuple[str, Trouble]], steps: Sequence[int], onset: int
) -> NewLines | None:
    """Return how a form of line multiplied about a logged point, None if it did not."""
    first = max(0, onset - _EARLIER - _PAST)
    lines = _lines(kinds, steps, first, min(len(steps), onset + _PAST))
    newest = lines[onset - first :]
    now = sum(newest) / max(1, len(newest))
    begin = max(0, onset - first - _EARLIER)
    least = max(1, now / _LEAST)
    many = (i for i, count in enumerate(lines) if i >= begin and count >= least)
    at = next(many, len(lines))
    past = lines[max(0, at - _PAST) : at]
    if now < _MANY or at > onset - first + _LATER or len(past) < _LEAST:
        return None
    usual = sum(past) / len(past)
    if now < _TIMES * usual:
        return None
    path, most = max(kinds, key=lambda one: one[1].count)
    return NewLines(form, usual, now, steps[first + at], path, most)


def _lines(
    kinds: Sequence[tuple[str, Trouble]], steps: Sequence[int], first: int, end: int
) -> list[int]:
    """Return how many lines there were at each of some logged points."""
    counts = [
        sum(trouble.until(steps[at]) for _, trouble in kinds)
        for at in range(max(0, first - 1), end)
    ]
    lines = [after - before for before, after in pairwise(counts)]
    return lines if first else [counts[0], *lines]


def in_words(found: Sequence[NewLines]) -> Iterator[str]:
    """Yield the most frequent of them as evidence."""
    for one in found[:_MOST]:
        yield (
            f"{NEWS} since step {one.since} (heuristic): {rounded(one.before)} → "
            f"{rounded(one.now)} lines a step: {one_line(one.form, 160)}"
        )
