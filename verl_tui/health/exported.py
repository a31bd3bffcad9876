"""Findings that verl-tui's own exporter states of a run: it has judged the log, whose newest values
are all that its metrics are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.finding import SEVERITIES, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from verl_tui.health.guide import Guide
    from verl_tui.runs.run import Run


def exported(run: Run, guide: Guide, known: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that an exporter states and that were not found here.

    Args:
        run: The run.
        guide: The rules, which say what a finding means.
        known: What was found in its metrics.
    """
    found = {one.id for one in known} | guide.silenced
    stated = [one for source in run.sources.values() for one in source.status.findings]
    for id, word in dict.fromkeys(stated):
        if id in found or word not in SEVERITIES:
            continue
        rule = guide.rule(id)
        yield Finding(
            id,
            SEVERITIES[word],
            "stated by verl-tui's exporter, which reads the log itself"
            + (f": {rule.meaning}" if rule is not None else ""),
            advice=(rule.advice if rule is not None else "")
            or "Look at the log with `verl-tui check` where the exporter runs.",
            source="verl_finding_active",
        )
