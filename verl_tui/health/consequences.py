"""One cause, one finding: names the cause of each finding, by its rule and when it began."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.health.guide import Guide, Rule
    from verl_tui.runs.run import Run

_TOLERANCE = 10
"""Logged points by which a consequence may seem to begin before its cause: windows blur the
beginning of both, and diagnoses by blocks know theirs by ten points.
"""


def with_causes(
    findings: Iterable[Finding],
    guide: Guide,
    earlier: Callable[[Finding, int], int | None],
) -> tuple[Finding, ...]:
    """Name in each finding the one that it follows from, where there is one; a chain of them ends
    at its first cause.

    A finding follows from another if the other's rule explains it, it is no worse, and it began no
    earlier than the other did. What its rule calls a sign may have begun before.

    Args:
        findings: What was found.
        guide: The rules in force.
        earlier: Returns the step so many logged points before a finding's beginning, None where it
            has no beginning.
    """
    found = list(findings)
    explaining = _explaining(found, guide)
    if not explaining:
        return tuple(found)
    direct = {}
    for at, one in enumerate(found):
        for cause, rule in explaining:
            if _follows(one, cause, rule, earlier):
                direct[at] = cause
                break
    folded = []
    for at, finding in enumerate(found):
        if at in direct:
            cause = _first(direct, found, at)
            folded.append(replace(finding, consequence_of=cause.id))
        else:
            folded.append(finding)
    return tuple(folded)


def _explaining(
    findings: Iterable[Finding], guide: Guide
) -> list[tuple[Finding, Rule]]:
    """Return the findings whose rules explain others, with these rules."""
    ruled = ((one, guide.rule(one.id)) for one in findings)
    known = [(finding, rule) for finding, rule in ruled if rule]
    return [(finding, rule) for finding, rule in known if rule.explains or rule.signs]


def _follows(
    one: Finding,
    cause: Finding,
    rule: Rule,
    earlier: Callable[[Finding, int], int | None],
) -> bool:
    if (
        one.id not in (*rule.explains, *rule.signs)
        or one.severity > cause.severity
        or one.since_step is None
    ):
        return False
    least = earlier(cause, rule.before if one.id in rule.signs else _TOLERANCE)
    return least is not None and one.since_step >= least


def _first(direct: dict[int, Finding], found: Sequence[Finding], at: int) -> Finding:
    """Return the cause at the beginning of a chain; rules never explain one another in a circle."""
    cause = direct[at]
    while (above := direct.get(found.index(cause))) is not None:
        cause = above
    return cause


def step_before(run: Run, finding: Finding, points: int) -> int | None:
    """Return the step so many logged points before a finding began, by the metric that it
    judged.
    """
    since = finding.since_step
    series = run.series(finding.key) if finding.key is not None else None
    if since is None or series is None or not len(series):
        return since
    return min(since, series.steps[max(0, bisect_left(series.steps, since) - points)])
