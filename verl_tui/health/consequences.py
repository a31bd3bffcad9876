"""One cause, one finding: names the cause of each finding, by its rule and when it began.

A service that stopped answering is looked for only where the reward has fallen: it is no fault by
itself.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from verl_tui.health.finding import number
from verl_tui.health.new_lines import in_words, new_lines
from verl_tui.health.root_cause import fails_service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.health.guide import Guide, Rule
    from verl_tui.health.rule_context import RuleContext
    from verl_tui.runs.run import Run

    _Earlier: TypeAlias = Callable[[Finding, int], int | None]

_TOLERANCE = 10
"""Logged points by which a consequence may seem to begin before its cause: windows blur the
beginning of both, and diagnoses by blocks know theirs by ten points.
"""


def with_causes(
    findings: Iterable[Finding],
    guide: Guide,
    earlier: _Earlier,
) -> tuple[Finding, ...]:
    """Name in each finding the one that it follows from, where there is one; a chain of them ends
    at its first cause.

    A finding follows from another if the other's rule explains it, it is no worse, and it began no
    earlier than the other did. What its rule calls a sign may have begun before. What a rule
    explains `if_first` follows whatever its severity, which its cause then has, too.

    Args:
        findings: What was found.
        guide: The rules in force.
        earlier: Returns the step so many logged points before a finding's beginning (below 0:
            after it), None where it has no beginning.
    """
    found = list(findings)
    rules = [guide.rule(one.id) for one in found]
    direct: dict[int, int] = {}
    for at, cause_at in product(range(len(found)), repeat=2):
        own, rule, cause = rules[at], rules[cause_at], found[cause_at]
        leads = own is not None and _moved_first(found[at], cause, own, earlier)
        if at in direct or rule is None or leads:
            continue
        if _follows(found[at], cause, rule, earlier) and _first(direct, cause_at) != at:
            direct[at] = cause_at
    folded = [*found]
    for at in direct:
        cause_at = _first(direct, at)
        cause = folded[cause_at]
        worst = max(cause.severity, found[at].severity)
        folded[cause_at] = replace(cause, severity=worst)
        folded[at] = replace(folded[at], consequence_of=cause.id)
    return tuple(folded)


def _follows(
    one: Finding,
    cause: Finding,
    rule: Rule,
    earlier: _Earlier,
) -> bool:
    if _moved_first(cause, one, rule, earlier):
        return True
    if (
        one.id not in (*rule.explains, *rule.signs)
        or one.severity > cause.severity
        or one.since_step is None
    ):
        return False
    least = earlier(cause, rule.before if one.id in rule.signs else _TOLERANCE)
    return least is not None and one.since_step >= least


def _moved_first(first: Finding, later: Finding, rule: Rule, earlier: _Earlier) -> bool:
    """Return whether a finding explains a later one by having moved first."""
    if later.id not in rule.if_first or not first.leads or later.since_step is None:
        return False
    least = earlier(first, rule.lag)
    most = earlier(first, -rule.within)
    return least is not None and most is not None and least <= later.since_step <= most


def _first(direct: dict[int, int], at: int) -> int:
    """Return the place of the cause at the beginning of a chain, which is no circle."""
    while at in direct:
        at = direct[at]
    return at


def step_before(run: Run, finding: Finding, points: int) -> int | None:
    """Return the step so many logged points before a finding began (below 0: after), by the metric
    that it judged.
    """
    since = finding.since_step
    series = run.series(finding.key) if finding.key is not None else None
    if since is None or series is None or not len(series):
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
    return known if found is None else [*others, found]


def _service(context: RuleContext, fall: Finding) -> Finding | None:
    """Return that calls of a service began to fail where the reward began to fall."""
    series = context.known(fall.key)
    rule = context.guide.rule(_ERRORS)
    if series is None or rule is None or fall.since_step is None:
        return None
    for one in new_lines(context.run, series.steps, fall.since_step):
        said = fails_service(context.run, one.path, one.trouble)
        if said is not None:
            return rule.finding(
                f"{said.words}, {number(one.now)} times a step since step {one.since}; "
                f"the reward fell from step {fall.since_step} on",
                (said.line, *in_words([one])),
                since=one.since,
                step=fall.step,
                key=fall.key,
                advice=said.advice or None,
            )
    return None
