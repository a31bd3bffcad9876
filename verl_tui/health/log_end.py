"""The health that the end of a run's logs shows before they have been read whole.

Only rules that the guide marks as `of_the_end` are judged: those that look at nothing but their
window. A rule that compares with the run's past could find something in a part of a log that the
whole log refutes. A finding may be older than the part, so none says since when.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.health.finding import Verdict

if TYPE_CHECKING:
    from verl_tui.health.guide import Guide


def at_the_end(guide: Guide) -> Guide:
    """Return the rules of a guide that can be judged from the end of a log."""
    return replace(
        guide, rules=tuple([rule for rule in guide.rules if rule.of_the_end])
    )


def without_beginnings(verdict: Verdict) -> Verdict:
    """Return the findings at the end of a log without the steps at which they began."""
    return Verdict(
        tuple([replace(finding, since_step=None) for finding in verdict.findings])
    )
