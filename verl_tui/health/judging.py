"""Judges several runs by one guide, and knows its healthy bands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from verl_tui.health.finding import Verdict
from verl_tui.health.guide_settings import load_guide
from verl_tui.health.judge import Judge
from verl_tui.health.limits import response_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.runs.run import Run


class Judging:
    """The guide with a user's changes, and judges by it."""

    def __init__(self, overrides: Mapping[str, Any]) -> None:
        """Read the guide.

        Raises:
            ValueError: A change makes no sense, see `load_guide`.
        """
        self.guide = load_guide(overrides)

    def judge(self, run: Run) -> Judge:
        """Return a judge for a run."""
        return Judge(self.guide, run)

    def verdict_on_end(self, end: Run, now: float) -> Verdict:
        """Judge what is known of a run whose logs have been read from near their end only.

        Only the rules of the guide that are `of_the_end` are asked, which look at nothing but their
        window: one that compares with the run's past could find something in a part of a log that
        the whole log refutes. A finding may be older than the part, so none says since when.

        Args:
            end: The run as if that were all.
            now: Seconds since the epoch.
        """
        rules = tuple([rule for rule in self.guide.rules if rule.of_the_end])
        found = Judge(replace(self.guide, rules=rules), end).verdict(now).findings
        return Verdict(tuple([replace(one, since_step=None) for one in found]))

    def band(self, run: Run, indicator: str) -> tuple[float | None, float | None]:
        """Return the healthy band of an indicator in a run, for charts; open at both ends where the
        guide knows none.
        """
        limit = None
        if indicator == "response_length":
            limit = response_limit(run, self.guide).value
        return self.guide.band(indicator, run.dialect, limit) or (None, None)
