"""What the user has acknowledged, and what is news to them; for one session only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from verl_tui.health.finding import Episode, Finding, Severity

_Name = tuple[str, str, str | None]
"""Run, rule and metric: a finding's numbers change with every step, these do not."""

_SETTLED = 2.0
"""Seconds after the last old record from which on a run counts as read: its files come one after
the other.
"""


class News(NamedTuple):
    """Something that happened while the user watched."""

    run: str
    what: str
    """Public name of the rule; `finished` where the run came to its end."""
    message: str = ""
    severity: Severity | None = None
    """How bad it is, None where it is not bad at all."""


class _Known(NamedTuple):
    since: int | None
    severity: Severity


@dataclass(slots=True)
class _Watch:
    """How far the user knows a run."""

    read: float = float("-inf")
    """When the last record came that had lain there before."""
    looked: bool = False
    """Whether the run was judged since then: so much lay on disk."""
    watched: bool = False
    """Whether what is found is news."""
    finished: bool = False

    def look(self, now: float) -> bool:
        """Look again; return whether what is found now, and was not before, is news."""
        self.watched = self.watched or (self.looked and now - self.read >= _SETTLED)
        self.looked = True
        return self.watched


class Acknowledgements:
    """Remembers findings by run, rule and metric, with the step they are known since and how bad
    they were.

    What is raised anew, at another step, or has become worse, is no longer what was acknowledged.
    """

    def __init__(self) -> None:
        self.revision = 0
        """Grows with every change."""
        self._acknowledged: dict[_Name, _Known] = {}
        self._marked: set[tuple[_Name, int | None]] = set()
        """With its first step, what was acknowledged, even if it is over by now."""
        self._heard: dict[_Name, _Known] = {}
        self._watches: dict[str, _Watch] = {}

    def acknowledged(self, run: str, finding: Finding) -> bool:
        """Return whether the user knows of this finding already."""
        return _covers(self._acknowledged.get(_name(run, finding)), finding)

    def marked(self, run: str, episode: Episode) -> bool:
        """Return whether the user knows of what the history tells, even if it is over by now."""
        return any(
            (run, episode.id, episode.since_step) == (*name[:2], since)
            and episode.key in (None, name[2])
            for name, since in self._marked
        )

    def toggle(self, run: str, finding: Finding) -> bool:
        """Acknowledge a finding, or take that back; return whether it is acknowledged now."""
        name = _name(run, finding)
        covered = _covers(self._acknowledged.get(name), finding)
        if covered:
            del self._acknowledged[name]
            self._marked.discard((name, finding.since_step))
        else:
            self._acknowledged[name] = _Known(finding.since_step, finding.severity)
            self._marked.add((name, finding.since_step))
        self.revision += 1
        return not covered

    def open(self, run: str, findings: Iterable[Finding]) -> Sequence[Finding]:
        """Return the findings that are not acknowledged."""
        return [finding for finding in findings if not self.acknowledged(run, finding)]

    def old(self, run: str, now: float) -> None:
        """Note that records came that had lain on disk before: what they show is no news."""
        watch = self._watches.setdefault(run, _Watch())
        watch.read, watch.looked = now, False

    def start_over(self) -> None:
        """Watch as if from the beginning: everything is read again."""
        self._watches.clear()

    def news(
        self, found: Mapping[str, Sequence[Finding]], finished: Collection[str], now: float
    ) -> Sequence[News]:
        """Return what has happened since the last look; nothing of a run whose logs are still being
        read.

        Args:
            found: All present findings of all runs.
            finished: The runs that have come to their end.
            now: Seconds since the epoch.
        """
        told: list[News] = []
        for run, findings in found.items():
            watch = self._watches.setdefault(run, _Watch())
            watched = watch.look(now)
            fresh = [
                News(run, one.id, one.message, one.severity) for one in self._unheard(run, findings)
            ]
            ended, watch.finished = run in finished and not watch.finished, run in finished
            fresh += [News(run, "finished")] if ended else []
            if watched:
                self._forget_cleared(run, findings)
                told += fresh
        return told

    def _unheard(self, run: str, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Return what was not heard of before and is not acknowledged; from now on all is heard
        of.
        """
        fresh = [one for one in findings if not _covers(self._heard.get(_name(run, one)), one)]
        self._heard |= {_name(run, one): _Known(one.since_step, one.severity) for one in fresh}
        return self.open(run, fresh)

    def _forget_cleared(self, run: str, findings: Sequence[Finding]) -> None:
        """Let go of what was acknowledged and is over: should it come back, it is to be seen,
        whatever its step.
        """
        present = {_name(run, one) for one in findings}
        self._acknowledged = {
            name: known
            for name, known in self._acknowledged.items()
            if name[0] != run or name in present
        }


def _name(run: str, finding: Finding) -> _Name:
    return run, finding.id, finding.key


def _covers(known: _Known | None, finding: Finding) -> bool:
    return (
        known is not None
        and known.since == finding.since_step
        and known.severity >= finding.severity
    )
