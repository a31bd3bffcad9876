"""Lays the findings about a run out as the rows of a panel: all of them worst first, and below them
the rules that were not judged, where the caption does not count those; their messages are cut, or
they are badges, where so little room is left that they do not fit. Also all findings ever raised,
each with the steps at which it was raised and cleared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.health_rows import (
    MARKS,
    Block,
    FindingWriter,
    is_acknowledged,
    name_of,
)
from verl_tui.rendering.text.printable import middle, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.finding import Episode, Finding
    from verl_tui.rendering.health_rows import FindingName
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces


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

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The listed findings, worst first, acknowledged ones last.

        Consequences follow their cause, and only while that is unfolded.
        """
        view = self.view
        if view is None:
            return ()
        listed: list[Finding] = []
        for finding in sorted(view.verdict.primary, key=partial(is_acknowledged, view)):
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
        if not self.findings and not self.reasons:
            return 1
        writer = FindingWriter(view, width, self.unfolded)
        return len(_stacked(self._blocks(writer), self._rules(writer)).rows)

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
        writer = FindingWriter(view, width, self.unfolded)
        findings = self.findings
        if not findings and height == 1:
            return HealthLayout([writer.quiet_row()])
        for layout in self._ways(writer, height, counted=counted):
            if len(layout.rows) <= height:
                return layout
        if findings and height <= (_BADGES_ONLY if self._is_detailed else _BADGE_ROWS):
            first = sorted(findings, key=lambda one: name_of(one) != self.chosen_name)
            messages = [_cut(writer.finding(one), writer, 1).message for one in first]
            return HealthLayout([writer.badges(first), *chain(*messages)][:height])
        beside_scroll_bar = FindingWriter(view, width - 1, self.unfolded)
        rules = self._rules(beside_scroll_bar, counted=counted)
        return _stacked(self._blocks(beside_scroll_bar), rules)

    def _ways(
        self, writer: FindingWriter, height: int, *, counted: bool
    ) -> Iterator[HealthLayout]:
        """Yield all findings in ever fewer rows: without the rules that were not judged, then with
        their messages cut.
        """
        blocks = self._blocks(writer)
        yield _stacked(blocks, self._rules(writer, counted=counted))
        if self.findings and not self.reasons:
            yield _stacked(blocks, [])
            for most in range(0 if self._is_detailed else height, 0, -1):
                yield _stacked([_cut(one, writer, most) for one in blocks], [])

    @property
    def _is_detailed(self) -> bool:
        """True if more than messages is shown: reasons, or the evidence of a finding."""
        return self.reasons or any(
            name_of(one) in self.unfolded for one in self.findings
        )

    def _blocks(self, writer: FindingWriter) -> list[Block]:
        """Return the rows of each finding."""
        verdict = writer.view.verdict
        return [
            writer.finding(one, verdict.consequences(one)) for one in self.findings
        ] or [Block([], writer.quiet(), [])]

    def _rules(self, writer: FindingWriter, *, counted: bool = True) -> list[Pieces]:
        """Return the rows of the rules that were not judged."""
        view = writer.view
        if counted and not self.reasons:
            return []
        if view.run is None or not view.verdict.not_judged:
            return []
        return writer.not_judged(reasons=self.reasons)


def _stacked(blocks: Sequence[Block], rules: Sequence[Pieces]) -> HealthLayout:
    """Return the rows of findings, and below them those of the rules that were not judged."""
    rows: list[Pieces] = []
    starts = []
    for head, message, below in blocks:
        starts += [len(rows)] if head else []
        rows += [*([head] if head else []), *message, *below]
    return HealthLayout([*rows, *rules], starts, len(rows) if rules else None)


def _cut(block: Block, writer: FindingWriter, most: int) -> Block:
    """Return a finding with so many rows of its message, and without what follows from it."""
    return Block(block.head, writer.beginning(block.message, most), [])


class HistoryPage(NamedTuple):
    """All episodes."""

    rows: list[Pieces]
    starts: list[int]
    """The row that each begins at."""
    names: Sequence[object]
    """For each the fields that stay the same when it is cleared."""
    caption: str
    """How many there are."""


def history_page(view: View, episodes: Sequence[Episode], width: int) -> HistoryPage:
    """Return the rows of episodes, in this order."""
    rows: list[Pieces] = []
    starts: list[int] = []
    for episode in episodes:
        starts.append(len(rows))
        rows += _episode_rows(view, episode, width)
    if not starts:
        words = "nothing was found so far" if view.run is not None else "no run yet"
        rows = [[(part, "dim")] for part in wrapped(words, width)]
    ongoing = sum(episode.cleared_step is None for episode in episodes)
    caption = f"{len(episodes)} raised, {ongoing} ongoing" if episodes else ""
    names = [(one.id, one.key, one.since_step, one.raised_step) for one in episodes]
    return HistoryPage(rows, starts, names, caption)


def _episode_rows(view: View, episode: Episode, width: int) -> list[Pieces]:
    run = view.run
    acknowledged = run is not None and view.acknowledgements.marked(run.name, episode)
    active = episode.cleared_step is None and not acknowledged
    role = episode.severity.word if active else "dim"
    mark = MARKS[episode.severity]
    steps = " · ".join(_steps(episode, acknowledged=acknowledged))
    name = middle(episode.id, width - 2)
    rows: list[Pieces] = [[(f"{mark} ", role), (name, role)]]
    for words, words_role in (
        (steps, "dim"),
        (episode.message, "dim" if acknowledged else "text"),
    ):
        lines = wrapped(words, width - 2)
        rows += [[("  ", ""), (line, words_role)] for line in lines]
    return rows


def _steps(episode: Episode, *, acknowledged: bool) -> list[str]:
    """Return the steps at which a finding began, was raised and was cleared, as far as known."""
    steps = []
    if episode.since_step is not None:
        steps.append(f"since step {episode.since_step}")
    if episode.raised_step is not None:
        steps.append(f"raised at step {episode.raised_step}")
    cleared = episode.cleared_step
    steps.append("ongoing" if cleared is None else f"cleared at step {cleared}")
    return [*steps, "acknowledged"] if acknowledged else steps
