"""Acknowledged findings, and news since the last look, for one session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from verl_tui.health.finding import Episode, Finding, Severity

_Name = tuple[str, str, str | None]
"""Run, rule and metric, which identify a finding while its numbers change."""

_SETTLED = 2.0
"""Seconds after the last old record from which on a run counts as read, as files follow in turn."""


class Occurrence(NamedTuple):
    """Something that happened while the user watched."""

    run: str
    what: str
    """Id of the rule, or `finished` at the end of the run."""
    message: str = ""
    severity: Severity | None = None
    """Severity, None for good news."""


_Raised = tuple[int | None, "Severity"]
"""The first step and the severity of a finding that is known."""


@dataclass(slots=True)
class _Watch:
    """State of the news of one run."""

    read: float = float("-inf")
    """Time at which the last old record was read."""
    looked: bool = False
    """True once the run was judged after its old records."""
    watched: bool = False
    """True if new findings are news."""
    finished: bool = False

    def look(self, now: float) -> bool:
        """Note that the run was judged; return True if findings that are new now are news."""
        self.watched = self.watched or (self.looked and now - self.read >= _SETTLED)
        self.looked = True
        return self.watched


class Acknowledgements:
    """Acknowledged findings by run, rule and metric, with their first step and severity.

    A finding that comes again at another step, or gets worse, counts as new.
    """

    def __init__(self) -> None:
        self._acknowledged: dict[_Name, _Raised] = {}
        self._marked: set[tuple[_Name, int | None]] = set()
        """All acknowledged findings with their first step, even those that are over."""
        self._heard: dict[_Name, _Raised] = {}
        self._watches: dict[str, _Watch] = {}

    def acknowledged(self, run: str, finding: Finding) -> bool:
        """Return True if a finding is acknowledged."""
        return _covers(self._acknowledged.get(_name(run, finding)), finding)

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

    def open(self, run: str, findings: Iterable[Finding]) -> Sequence[Finding]:
        """Return the findings that are not acknowledged."""
        return [finding for finding in findings if not self.acknowledged(run, finding)]

    def old(self, run: str, now: float) -> None:
        """Note that old records were read, whose findings are not news."""
        watch = self._watches.setdefault(run, _Watch())
        watch.read = now
        watch.looked = False

    def watched(self, run: str) -> bool:
        """Return whether findings that are new in a run are news, as of the last call of `news`."""
        watch = self._watches.get(run)
        return watch is not None and watch.watched

    def start_over(self) -> None:
        """Forget which runs were read, since everything is read again."""
        self._watches.clear()

    def news(
        self,
        found: Mapping[str, Sequence[Finding]],
        finished: Collection[str],
        now: float,
    ) -> Sequence[Occurrence]:
        """Return the news since the last call, without those of runs that are still being read.

        Args:
            found: The current findings of all runs.
            finished: The runs that are finished.
            now: Seconds since the epoch.
        """
        news: list[Occurrence] = []
        for run, findings in found.items():
            watch = self._watches.setdefault(run, _Watch())
            watched = watch.look(now)
            fresh = [
                Occurrence(run, one.id, one.message, one.severity)
                for one in self._unheard(run, findings)
            ]
            if run in finished and not watch.finished:
                fresh.append(Occurrence(run, "finished"))
            watch.finished = run in finished
            if watched:
                self._forget_cleared(run, findings)
                news += fresh
        return news

    def _unheard(self, run: str, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Return new findings that are not acknowledged, and remember all of them."""
        heard = self._heard
        fresh = [
            one for one in findings if not _covers(heard.get(_name(run, one)), one)
        ]
        heard.update((_name(run, one), (one.begun, one.severity)) for one in fresh)
        return self.open(run, fresh)

    def _forget_cleared(self, run: str, findings: Sequence[Finding]) -> None:
        """Drop acknowledged findings that are over, so that they show if they come back."""
        present = {_name(run, finding) for finding in findings}
        self._acknowledged = {
            name: known
            for name, known in self._acknowledged.items()
            if name[0] != run or name in present
        }


def _name(run: str, finding: Finding) -> _Name:
    return run, finding.id, finding.key


def _covers(known: _Raised | None, finding: Finding) -> bool:
    return (
        known is not None and known[0] == finding.begun and known[1] >= finding.severity
    )
