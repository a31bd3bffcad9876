"""The log started over: information, not a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.health.conditions.condition import Breach
from verl_tui.health.diagnoses.diagnosis import Diagnosis

if TYPE_CHECKING:
    from verl_tui.health.finding import Finding
    from verl_tui.health.rule_context import RuleContext


class RestartNotice(Diagnosis):
    """Steps went back, or the file was rewritten."""

    def judge(self, context: RuleContext) -> Finding | None:
        """Report where the run's sources started over."""
        marks = context.run.restarts
        self.breaches.clear()
        for mark in marks:
            self._end(mark.step)
            breach = Breach(mark.step, mark.step, f"started over: {mark.reason}")
            self._begin(breach, goes_on=False)
        if not marks:
            return None
        # They go by step: those beyond the step that the run has reached anew are of segments
        # before.
        end = context.end
        reached = [mark for mark in marks if end is None or mark.step <= end]
        newest = reached[-1] if reached else marks[-1]
        often = f" for the {_nth(len(marks))} time" if len(marks) > 1 else ""
        return self.finding(
            f"the log started over at step {newest.step}{often}: {newest.reason}",
            [f"step {mark.step}: {mark.reason} ({mark.path})" for mark in marks[-5:]],
            since=newest.step,
            advice="Points after that step from before the restart belong to the old segment.",
        )


def _nth(count: int) -> str:
    return {2: "second", 3: "third"}.get(count, f"{count}th")
