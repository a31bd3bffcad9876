"""Lays the findings about a run out as the rows of a panel: all of them worst first, and below them
the rules that were not judged, where the caption does not count those; their messages are cut, or
they are badges, where so little room is left that they do not fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.health_rows import (
    FindingWriter,
    finding_counts,
    found_at_the_end,
    name_of,
)
from verl_tui.rendering.last_result import LastResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces

    FindingName = tuple[str, str | None]
    """Rule and metric of a finding: its numbers change with every step."""

_BADGE_ROWS = 4
"""Up to this height findings without room are badges, as long as nothing is unfolded: in more rows
a list can be scrolled.
"""
_BADGES_ONLY = 2
"""Up to this height they are badges even then."""


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
    _last_written: LastResult[_WrittenFindings] = field(default_factory=LastResult)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The listed findings, worst first, acknowledged ones last.

        Consequences follow their cause, and only while that is unfolded.
        """
        view = self.view
        if view is None:
            return ()
        listed: list[Finding] = []
        for finding in sorted(
            view.verdict.primary, key=lambda one: _acknowledged(view, one)
        ):
            listed.append(finding)
            if name_of(finding) in self.unfolded:
                listed += view.verdict.consequences(finding)
        return tuple(listed)

    @property
    def at(self) -> int | None:
        """Index of the chosen finding, None where none is chosen."""
        names = [name_of(finding) for finding in self.findings]
        if self.chosen_name not in names:
            return None
        return names.index(self.chosen_name)

    @property
    def chosen(self) -> Finding | None:
        """The chosen finding."""
        if self.at is None:
            return None
        return self.findings[self.at]

    def forget_choices(self) -> None:
        """Fold everything and choose nothing: another run is shown."""
        self.chosen_name = None
        self.unfolded.clear()

    def choose(self, finding: Finding) -> None:
        """Choose a finding."""
        self.chosen_name = name_of(finding)

    def choose_next(self, by: int) -> Finding | None:
        """Choose the next (1) or previous (-1) finding, in a circle; None where there is none."""
        findings = self.findings
        at = self.at
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

    def needed(self, view: View, width: int) -> int:
        """Return the rows that the findings take, with the reasons where those are shown; one where
        nothing was found and nothing more is asked for.
        """
        written = self._written(view, width, counted=True)
        if not written.findings and not self.reasons:
            return 1
        return len(written.all_rows().rows)

    def lay_out(
        self, view: View, width: int, height: int, *, counted: bool = False
    ) -> HealthLayout:
        """Return the rows of a panel of this size; those that must scroll are a cell narrower.

        Args:
            view: The state to show.
            width: Cells of a row.
            height: Rows of the panel.
            counted: Whether a caption counts the rules that were not judged: no row repeats the
                count.
        """
        written = self._written(view, width, counted=counted)
        if height > 1 or written.findings:
            for layout in written.forms():
                if len(layout.rows) <= height:
                    return layout
        if self._shows_badges(height):
            return HealthLayout(written.badge_rows(height, self.chosen_name))
        if (
            not self._is_detailed
            and (shortened := written.shortened(height)) is not None
        ):
            return shortened
        beside_scroll_bar = self._written(view, width - 1, counted=counted)
        return beside_scroll_bar.all_rows(gap=0)

    def _written(self, view: View, width: int, *, counted: bool) -> _WrittenFindings:
        """Return the findings in rows of a width: those that were measured are drawn."""
        acknowledged = view.acknowledgements.revision
        subject = (view, view.verdict, acknowledged, {*self.unfolded}, self.reasons)
        return self._last_written.of(
            (*subject, width, counted),
            lambda: _WrittenFindings(self, view, width, counted=counted),
        )

    def _shows_badges(self, height: int) -> bool:
        """Return whether a panel of this height shows badges where not all findings have room."""
        return height <= (_BADGES_ONLY if self._is_detailed else _BADGE_ROWS)

    @property
    def _is_detailed(self) -> bool:
        """True if more than messages is shown: reasons, or the evidence of a finding."""
        return self.reasons or any(
            name_of(finding) in self.unfolded for finding in self.findings
        )


class _WrittenFindings:
    """The findings of a list, each written once, in rows of one width; they are put together in
    several ways until they fit.
    """

    def __init__(
        self, shown: FindingList, view: View, width: int, *, counted: bool
    ) -> None:
        self.findings = shown.findings
        acknowledged = {
            name_of(one) for one in self.findings if _acknowledged(view, one)
        }
        self._view = view
        self._reasons = shown.reasons
        self._writer = FindingWriter(width, shown.unfolded, acknowledged)
        self._blocks = [self._block(finding) for finding in self.findings]
        """The rows of each finding."""
        self._not_judged = (
            [] if counted and not shown.reasons else self._rules_not_judged()
        )
        """The rows of the rules that were not judged."""

    def _block(self, finding: Finding) -> list[Pieces]:
        if finding.consequence_of is not None:
            return self._writer.consequence(finding)
        return self._writer.finding(finding, self._view.verdict.consequences(finding))

    def _rules_not_judged(self) -> list[Pieces]:
        view = self._view
        if view.run is None or not view.verdict.not_judged:
            return []
        return self._writer.not_judged(view, reasons=self._reasons)

    def forms(self) -> Iterator[HealthLayout]:
        """Yield all findings from airy to tight, at last without the number of rules that were not
        judged.
        """
        yield self.all_rows(spaced=True)
        yield self.all_rows()
        yield self.all_rows(gap=0)
        if self.findings and not self._reasons:
            yield self._finding_rows()

    def shortened(self, height: int) -> HealthLayout | None:
        """Return all findings with their messages cut until they fit, the first ones least; None
        where not even a row of each message does.
        """
        messages = [self._writer.message(finding) for finding in self.findings]
        spare = height - sum(map(len, self._blocks))
        spare += sum(len(message) - 1 for message in messages)
        if spare < 0:
            return None
        rows: list[Pieces] = []
        starts: list[int] = []
        for message, (head, *below) in zip(messages, self._blocks, strict=True):
            kept = 1 + min(spare, len(message) - 1)
            spare -= kept - 1
            starts.append(len(rows))
            rows += [
                head,
                *self._writer.beginning(message, kept),
                *below[len(message) :],
            ]
        return HealthLayout(rows, starts)

    def all_rows(self, *, spaced: bool = False, gap: int = 1) -> HealthLayout:
        """Return the rows of every finding, with empty ones between them if spaced, and below a gap
        those of the rules that were not judged.
        """
        rows, starts, _ = layout = self._finding_rows(spaced=spaced)
        if not self._not_judged:
            return layout
        between: list[Pieces] = [[] for _ in range(gap)]
        return HealthLayout(
            [*rows, *between, *self._not_judged], starts, len(rows) + gap
        )

    def _finding_rows(self, *, spaced: bool = False) -> HealthLayout:
        rows: list[Pieces] = []
        starts: list[int] = []
        for block in self._blocks:
            if spaced and rows:
                rows.append([])
            starts.append(len(rows))
            rows += block
        return HealthLayout(rows or self._writer.quiet(self._view), starts)

    def badge_rows(self, height: int, chosen: FindingName | None) -> list[Pieces]:
        """Return a row of badges, the chosen one first, and as many messages as fit below them."""
        writer = self._writer
        findings = sorted(self.findings, key=lambda finding: name_of(finding) != chosen)
        if not findings:
            return [writer.quiet_row(self._view)]
        rows = [writer.badges(findings)]
        first = writer.message(findings[0])
        several = len(findings) > 1 and height > len(first) + 1
        for finding in findings:
            message = writer.message(finding, with_state=True, marked=several)
            rows += writer.beginning(message, height - len(rows))
        return rows


def caption(view: View, width: int, *, reasons: bool = False) -> str:
    """Count the findings in at most `width` cells, or say that they cover the log's end alone;
    empty where there is too little room.

    Args:
        view: The state to show.
        width: Cells for the caption.
        reasons: Whether the rows name the rules that were not judged: else the caption counts them,
            and names the key.
    """
    forms = _captions(view, reasons=reasons)
    if forms and view.verdict.not_judged and not (reasons or view.loading):
        why = f" ({view.keys['health.not_judged']}: why)"
        forms = (forms[0] + why, forms[0], forms[1] + why, *forms[1:])
    return next((text for text in forms if cell_len(text) <= width), "")


def _captions(view: View, *, reasons: bool) -> Sequence[str]:
    """Return what the caption may say, from long to short."""
    if view.run is None:
        return ()
    if view.loading:
        if view.run.preview and view.verdict.findings:
            return found_at_the_end(view)
        return ()
    active = [
        finding for finding in view.verdict.primary if not _acknowledged(view, finding)
    ]
    verdict = view.verdict._replace(not_judged=()) if reasons else view.verdict
    return finding_counts(verdict, active)


def _acknowledged(view: View, finding: Finding) -> bool:
    run = view.run
    return run is not None and view.acknowledgements.acknowledged(run.name, finding)
