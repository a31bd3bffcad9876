"""One cause, one finding: names the cause of each finding, by its rule and when it began."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from verl_tui.health.finding import Finding
    from verl_tui.health.guide import Guide, Rule
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
    explaining = _explaining(found, guide)
    if not explaining:
        return tuple(found)
    direct: dict[int, int] = {}
    for at, one in enumerate(found):
        own = guide.rule(one.id)
        for cause_at, rule in explaining:
            cause = found[cause_at]
            if own is not None and _moved_first(one, cause, own, earlier):
                continue
            if _follows(one, cause, rule, earlier) and _first(direct, cause_at) != at:
                direct[at] = cause_at
                break
    folded = [*found]
    for at in direct:
        cause_at = _first(direct, at)
        cause = folded[cause_at]
        worst = max(cause.severity, found[at].severity)
        folded[cause_at] = replace(cause, severity=worst)
        folded[at] = replace(folded[at], consequence_of=cause.id)
    return tuple(folded)


def _explaining(findings: Iterable[Finding], guide: Guide) -> list[tuple[int, Rule]]:
    """Return the places of the findings whose rules explain others, with these rules."""
    ruled = ((at, guide.rule(one.id)) for at, one in enumerate(findings))
    known = [(at, rule) for at, rule in ruled if rule]
    return [one for one in known if one[1].explains or one[1].signs or one[1].if_first]


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
