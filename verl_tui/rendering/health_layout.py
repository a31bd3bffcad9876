"""Lays the findings about a run out as the rows of a panel: badges where there is little room, else
all of them worst first, and below them the rules that were not judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.health_rows import FindingWriter, counts, name_of, symbols

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces

    FindingName = tuple[str, str | None]
    """Rule and metric of a finding: its numbers change with every step."""

_BADGE_ROWS = 4
"""Up to this height there is one row of badges, as long as nothing is unfolded."""
_BADGES_ONLY = 2
"""Up to this height there are badges even then."""


class HealthLayout(NamedTuple):
    """All rows of the panel, and where its parts begin."""

    rows: list[Pieces]
    starts: Sequence[int] = ()
    """Row that each finding begins at; none of badges."""
    not_judged: int | None = None
    """Row that the rules not judged begin at, None where they are not listed."""


@dataclass
class FindingList:
    """The findings about the shown run, which one is chosen, and what is unfolded."""

    view: View | None = None
    chosen_name: FindingName | None = None
    unfolded: set[FindingName] = field(default_factory=set)
    reasons: bool = False
    """True to show why rules were not judged."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The listed findings, worst first, acknowledged ones last.

        Consequences follow their cause, and only while that is unfolded.
        """
        view = self.view
        if view is None:
            return ()
        listed: list[Finding] = []
        for finding in sorted(view.verdict.primary, key=lambda one: _acknowledged(view, one)):
            listed.append(finding)
            if name_of(finding) in self.unfolded:
                listed += view.verdict.consequences(finding)
        return tuple(listed)

    @property
    def at(self) -> int | None:
        """Index of the chosen finding, None where none is chosen."""
        names = [name_of(finding) for finding in self.findings]
        return names.index(self.chosen_name) if self.chosen_name in names else None

    @property
    def chosen(self) -> Finding | None:
        """The chosen finding."""
        return None if self.at is None else self.findings[self.at]

    def forget_choices(self) -> None:
        """Fold everything and choose nothing: another run is shown."""
        self.chosen_name = None
        self.unfolded.clear()

    def choose(self, finding: Finding) -> None:
        """Choose a finding."""
        self.chosen_name = name_of(finding)

    def choose_next(self, by: int) -> Finding | None:
        """Choose the next (1) or previous (-1) finding, in a circle; None where there is none."""
        findings, at = self.findings, self.at
        if not findings:
            return None
        start = 0 if by > 0 else -1
        finding = findings[start if at is None else (at + by) % len(findings)]
        self.choose(finding)
        return finding

    def toggle(self, finding: Finding) -> None:
        """Choose a finding and unfold or fold it."""
        self.choose(finding)
        self.unfolded ^= {name_of(finding)}

    def shows_badges(self, height: int) -> bool:
        """True if a panel of this height shows badges alone."""
        unfolded = any(name_of(finding) in self.unfolded for finding in self.findings)
        return height <= (_BADGES_ONLY if self.reasons or unfolded else _BADGE_ROWS)

    def needed(self, view: View, width: int) -> int:
        """Return the rows that the findings take; one where nothing was found and nothing more is
        asked for.
        """
        if not self.findings and not self.reasons:
            return 1
        writer = self._writer(view, width)
        rows = len(self._all_rows(view, writer).rows)
        if rows <= _BADGE_ROWS and self.shows_badges(rows):
            return len(self._badge_rows(view, writer, _BADGE_ROWS))
        return rows

    def lay_out(self, view: View, width: int, height: int) -> HealthLayout:
        """Return the rows of a panel of this size; those that must scroll are a cell narrower."""
        writer = self._writer(view, width)
        if self.shows_badges(height):
            return HealthLayout(self._badge_rows(view, writer, height))
        layout = self._all_rows(view, writer, spaced=True)
        if len(layout.rows) > height:
            layout = self._all_rows(view, writer)
        if len(layout.rows) > height:
            writer.width -= 1  # the scroll bar
            layout = self._all_rows(view, writer)
        return layout

    def _writer(self, view: View, width: int) -> FindingWriter:
        acknowledged = {name_of(one) for one in self.findings if _acknowledged(view, one)}
        return FindingWriter(width, self.unfolded, acknowledged, ascii_only=view.ascii)

    def _badge_rows(self, view: View, writer: FindingWriter, height: int) -> list[Pieces]:
        """Return a row of badges, the chosen one first, with its message below them."""
        findings = sorted(self.findings, key=lambda one: name_of(one) != self.chosen_name)
        if not findings:
            return [writer.quiet_row(view)]
        message = writer.message(findings[0], with_state=True)
        return [writer.badges(findings), *writer.beginning(message, height - 1)]

    def _all_rows(self, view: View, writer: FindingWriter, *, spaced: bool = False) -> HealthLayout:
        """Return the rows of every finding, with empty ones between them if spaced."""
        rows: list[Pieces] = []
        starts: list[int] = []
        for finding in self.findings:
            if spaced and rows:
                rows.append([])
            starts.append(len(rows))
            if finding.consequence_of is None:
                rows += writer.finding(finding, view.verdict.consequences(finding))
            else:
                rows += writer.consequence(finding)
        rows = rows or writer.quiet(view)
        if not view.run or not view.verdict.not_judged:
            return HealthLayout(rows, starts)
        not_judged = writer.not_judged(view, reasons=self.reasons)
        return HealthLayout([*rows, [], *not_judged], starts, len(rows) + 1)


def caption(view: View, width: int) -> str:
    """Count the findings in at most `width` cells; empty where there is too little room."""
    if view.run is None or view.loading:
        return ""
    active = [one for one in view.verdict.primary if not _acknowledged(view, one)]
    forms = counts(view.verdict, active, symbols(ascii_only=view.ascii))
    return next((text for text in forms if cell_len(text) <= width), "")


def _acknowledged(view: View, finding: Finding) -> bool:
    run = view.run
    return run is not None and view.acknowledgements.acknowledged(run.name, finding)
