"""The findings about a run as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.health.finding import Severity
from verl_tui.health.judge import Judge
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from verl_tui.answers.run_reading import Reading
    from verl_tui.health.guide import Guide


def findings_of(
    reading: Reading, guide: Guide, now: float, least: str = "info"
) -> dict[str, Any]:
    """Return the findings on a run, the worst first.

    Args:
        reading: The run, all of it read.
        guide: The rules in force.
        now: Seconds since the epoch.
        least: The lowest severity to include.
    """
    verdict = Judge(guide, reading.run).verdict(now)
    listed = [
        one for one in verdict.findings if one.severity >= Severity[least.upper()]
    ]
    return {
        "run": reading.run.name,
        **reading.part,
        "total": len(verdict.findings),
        "left_out": len(verdict.findings) - len(listed),
        "not_judged": len(verdict.not_judged),
        "findings": [finding.as_data() for finding in listed],
    }


def findings_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the answer as lines of text."""
    if not found["findings"]:
        if found["left_out"]:
            of = f" ({counted(found['left_out'], 'finding')} of less weight)"
        else:
            of = ""
        yield f"{one_line(found['run'])}: no findings{of}"
    for one in found["findings"]:
        since = "" if one["since_step"] is None else f" since step {one['since_step']}"
        follows = (
            f", follows from {one['consequence_of']}" if one["consequence_of"] else ""
        )
        yield f"{one['severity']} {one['id']}{since}{follows}: {one_line(one['message'], 1000)}"
        yield from (f"  - {one_line(evidence, 1000)}" for evidence in one["evidence"])
        if one["advice"]:
            yield f"  advice: {one_line(one['advice'], 1000)}"
