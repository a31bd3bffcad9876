"""What the user has acknowledged, and what is news to them; for one session only."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from verl_tui.health.finding import Finding, Severity

_Name = tuple[str, str, str | None]
"""Run, rule and metric: a finding's numbers change with every step, these do not."""


class _Known(NamedTuple):
    since: int | None
    severity: Severity


class Attention:
    """Remembers findings by run, rule and metric, with the step they are known since and how bad they were.

    What is raised anew, at another step, or has become worse, is no longer what was acknowledged.
    """

    def __init__(self) -> None:
        self.revision = 0
        """Grows with every change."""
        self._acknowledged: dict[_Name, _Known] = {}
        self._heard: dict[_Name, _Known] | None = None

    def acknowledged(self, run: str, finding: Finding) -> bool:
        """Return whether the user knows of this finding already."""
        return _covers(self._acknowledged.get(_name(run, finding)), finding)

    def toggle(self, run: str, finding: Finding) -> None:
        """Acknowledge a finding, or take that back."""
        name = _name(run, finding)
        if _covers(self._acknowledged.get(name), finding):
            del self._acknowledged[name]
        else:
            self._acknowledged[name] = _Known(finding.since_step, finding.severity)
        self.revision += 1

    def open(self, run: str, findings: Iterable[Finding]) -> Sequence[Finding]:
        """Return the findings that are not acknowledged."""
        return [finding for finding in findings if not self.acknowledged(run, finding)]

    def news(self, found: Iterable[tuple[str, Finding]]) -> Sequence[tuple[str, Finding]]:
        """Return the findings that were not there before, with their runs; of the first look none is news.

        Args:
            found: All present findings of all runs.
        """
        heard, self._heard = self._heard, self._heard or {}
        fresh = []
        for run, finding in found:
            name = _name(run, finding)
            if not _covers(self._heard.get(name), finding):
                self._heard[name] = _Known(finding.since_step, finding.severity)
                fresh.append((run, finding))
        return [] if heard is None else [(run, one) for run, one in fresh if not self.acknowledged(run, one)]


def _name(run: str, finding: Finding) -> _Name:
    return run, finding.id, finding.key


def _covers(known: _Known | None, finding: Finding) -> bool:
    return known is not None and known.since == finding.since_step and known.severity >= finding.severity
