"""The health that the end of a run's logs shows before they have been read whole.

Only rules are asked that the guide marks as `of_the_end`: those that look at nothing but their
window. One that compares with the run's past could find in a part of a log what the whole log
denies. A finding may be older than the part, so that none says since when.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from verl_tui.health.finding import Verdict

if TYPE_CHECKING:
    from verl_tui.health.guide import Guide


def at_the_end(guide: Guide) -> Guide:
    """Return the rules of a guide that can be judged from the end of a log."""
    return replace(guide, rules=tuple([rule for rule in guide.rules if rule.of_the_end]))


def without_beginnings(verdict: Verdict) -> Verdict:
    """Return the findings at the end of a log without the steps at which they began."""
    return Verdict(tuple([replace(finding, since_step=None) for finding in verdict.findings]))
