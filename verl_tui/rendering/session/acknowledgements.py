"""Acknowledged findings, and which runs are watched so that new ones are news, for one session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.health.finding import Episode, Finding, Severity, Verdict

_Name = tuple[str, str, str | None]
"""Run, rule and metric, which identify a finding while its numbers change."""

_SETTLED = 2.0
"""Seconds after the last old record from which a run counts as read, as files follow in turn."""


_Raised = tuple[int | None, "Severity"]
"""The first step and the severity of a finding that is known."""


@dataclass(slots=True)
class _Watch:
    """State of the news of one run."""

    read: float = float("-inf")
    """Time at which the last old record was read."""
    judged: bool = False
    """True once the run was judged after its old records."""
    watched: bool = False
    """True if new findings are news."""


class Acknowledgements:
    """Acknowledged findings by run, rule and metric, with their first step and severity.

    A finding that comes again at another step, or gets worse, counts as new.
    """

    def __init__(self) -> None:
        self._acknowledged: dict[_Name, _Raised] = {}
        self._marked: set[tuple[_Name, int | None]] = set()
        """All acknowledged findings with their first step, even those that are over."""
        self._watches: dict[str, _Watch] = {}

    def acknowledged(self, run: str, finding: Finding) -> bool:
        """Return True if a finding is acknowledged."""
        known = self._acknowledged.get(_name(run, finding))
        if not known:
            return False
        since, severity = known
        return since == finding.begun and severity >= finding.severity

    def marked(self, run: str, episode: Episode) -> bool:
        """Return True if an episode of the history is acknowledged, even if it is over."""
        return any(
            (run, episode.id, episode.since_step) == (*name[:2], since)
            and episode.key in (None, name[2])
            for name, since in self._marked
        )

    def toggle(self, run: str, finding: Finding) -> bool:
        """Acknowledge a finding or undo that; return True if it is acknowledged now."""
        name, since = _name(run, finding), finding.since_step
        covered = self.acknowledged(run, finding)
        if covered:
            del self._acknowledged[name]
            self._marked.discard((name, since))
        else:
            self._acknowledged[name] = finding.begun, finding.severity
            self._marked.add((name, since))
        return not covered

    def old(self, run: str, now: float) -> None:
        """Note that old records were read, whose findings are not news."""
        watch = self._watches.setdefault(run, _Watch())
        watch.read = now
        watch.judged = False

    def watched(self, run: str) -> bool:
        """Return whether findings that are new in a run are news, as of the last look."""
        return run in self._watches and self._watches[run].watched

    def start_over(self) -> None:
        """Forget which runs were read, since everything is read again."""
        self._watches.clear()

    def note_judged(self, verdicts: Mapping[str, Verdict], now: float) -> None:
        """Note that runs were judged: those that had been read by then are watched from now on.
        Acknowledged findings that are over are forgotten, so that they show if they come back.

        Args:
            verdicts: The health of all runs.
            now: Seconds since the epoch.
        """
        for run, verdict in verdicts.items():
            watch = self._watches.setdefault(run, _Watch())
            watch.watched |= watch.judged and now - watch.read >= _SETTLED
            watch.judged = True
            present = {_name(run, finding) for finding in verdict.primary}
            over = [
                name
                for name in self._acknowledged
                if watch.watched and name[0] == run and name not in present
            ]
            for name in over:
                del self._acknowledged[name]


def _name(run: str, finding: Finding) -> _Name:
    return run, finding.id, finding.key
