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
    for finding in found["findings"]:
        words = f"{finding['severity']} {finding['id']}"
        if finding["since_step"] is not None:
            words += f" since step {finding['since_step']}"
        if finding["consequence_of"]:
            words += f", follows from {finding['consequence_of']}"
        yield f"{words}: {one_line(finding['message'], 1000)}"
        for evidence in finding["evidence"]:
            yield f"  - {one_line(evidence, 1000)}"
        if finding["advice"]:
            yield f"  advice: {one_line(finding['advice'], 1000)}"
