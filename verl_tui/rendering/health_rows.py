"""Findings as rows of a panel: all of them worst first, and below them on request the rules that
were not judged; messages are a row each where that makes all fit. Also all findings ever raised,
each with the steps at which it was raised and cleared.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.health.finding import Episode, Finding, Severity, unjudged_rules
from verl_tui.means import next_of
from verl_tui.patterns import pattern
from verl_tui.rendering.session.snapshot import View, reading
from verl_tui.rendering.text.piece import (
    Pieces,
    TextRows,
    cut,
    fit,
    fitting,
    middle,
    paragraph,
    printable,
)
from verl_tui.rendering.text.table import sized, stacked
from verl_tui.rendering.verdict_row import MARKS, headline
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    FindingName = tuple[str, str | None]
    """Rule and metric of a finding: its numbers change with every step."""

_NARROW = 12
"""Width up to which nothing is indented, in cells."""
_POINTS = pattern(r"needs (\d+) points, has (\d+)")
_NONE = "the log has no "


class HealthLayout(NamedTuple):
    """All rows of the panel, and where its parts begin."""

    rows: TextRows
    starts: Sequence[int] = ()
    """Row that each finding begins at."""
    not_judged: int | None = None
    """Row that the rules not judged begin at, None where they are not listed."""


@dataclass
class FindingList:
    """The findings about the shown run, which one is chosen, and what is unfolded."""

    view: View
    chosen_name: FindingName | None = None
    unfolded: set[FindingName] = field(default_factory=set)
    reasons: bool = False
    """True to show why rules were not judged."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The listed findings, worst first, acknowledged ones last.

        Consequences follow their cause, and only while that is unfolded.
        """
        verdict, listed = self.view.verdict, list[Finding]()
        for finding in sorted(verdict.primary, key=partial(_acknowledged, self.view)):
            listed.append(finding)
            if _name(finding) in self.unfolded:
                listed += verdict.consequences(finding)
        return tuple(listed)

    @property
    def at(self) -> int | None:
        """Index of the chosen finding, None where none is chosen."""
        names = [_name(finding) for finding in self.findings]
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
        self.chosen_name = _name(finding)

    def choose_next(self, by: int) -> Finding | None:
        """Choose the next (1) or previous (-1) finding, in a circle; None where there is none."""
        if not self.findings:
            return None
        finding = next_of(self.findings, self.chosen, by)
        self.choose(finding)
        return finding

    def toggle(self, finding: Finding) -> None:
        """Choose a finding and unfold or fold it."""
        self.choose(finding)
        self.unfolded ^= {_name(finding)}

    def needed(self, width: int) -> int:
        """Return the rows that the findings take, with the reasons where those are shown; none
        where the verdict says all there is: of one finding at most, as long as no more is asked
        for.
        """
        if len(self.view.verdict.primary) < 2 and not self._is_detailed:
            return 0
        return len(self._whole(width).rows)

    def lay_out(self, width: int, height: int) -> HealthLayout:
        """Return the rows of a panel of this size, each message in one row where that makes all
        fit; those that must scroll are a cell narrower.
        """
        whole = self._whole(width)
        if len(whole.rows) <= height:
            return whole
        short = self._stacked(width, short=True)
        if len(short.rows) <= height and not self._is_detailed:
            return short
        return self._whole(width - 1)

    @property
    def _is_detailed(self) -> bool:
        """True if more than messages is shown: reasons, or the evidence of a finding."""
        return self.reasons or any(_name(one) in self.unfolded for one in self.findings)

    def _whole(self, width: int) -> HealthLayout:
        """Return all findings, and where asked for below them the rules that were not judged."""
        rows, starts, _ = self._stacked(width)
        shown = self.reasons and self.view.run is not None
        if not shown or not self.view.verdict.not_judged:
            return HealthLayout(rows, starts)
        return HealthLayout([*rows, *_not_judged(self.view, width)], starts, len(rows))

    def _stacked(self, width: int, *, short: bool = False) -> HealthLayout:
        """Return all findings, each message in one row if `short`; without any the reason why."""
        found = self.findings
        rows, starts = stacked(self._block(one, width, short=short) for one in found)
        return HealthLayout(rows if starts else _quiet(self.view, width), starts)

    def _block(self, finding: Finding, width: int, *, short: bool) -> TextRows:
        """Return a finding: head and message; if it is unfolded also evidence and advice. What is
        only a consequence of the one above is indented.
        """
        view, unfolded = self.view, _name(finding) in self.unfolded
        indent = 2 if finding.consequence_of and width > _NARROW else 0
        room = width - indent
        role = "dim" if _acknowledged(view, finding) else "text"
        margin = (_indent(width), "")
        message = paragraph(finding.message, role, room, margin)
        if short:
            message = [cut([margin, (printable(finding.message), role)], room)]
        rows = [_head(view, finding, room, unfolded=unfolded), *message]
        rows += _details(finding, room) if unfolded else ()
        rows += _followed(view.verdict.consequences(finding), room, unfolded=unfolded)
        return [[(" " * indent, ""), *row] for row in rows] if indent else rows


# -- a finding -------------------------------------------------------------------------------------


def _name(finding: Finding) -> FindingName:
    return finding.id, finding.key


def _acknowledged(view: View, finding: Finding) -> bool:
    run = view.run
    return run is not None and view.acknowledgements.acknowledged(run.name, finding)


def _head(view: View, finding: Finding, width: int, *, unfolded: bool) -> Pieces:
    """Write sign and name, and at the right since when it holds, where the name has room."""
    since = "" if finding.since_step is None else f"since step {finding.since_step}"
    role = finding.severity.word
    if _acknowledged(view, finding):
        since, role = "acknowledged", "dim"
    right = f"{since} {'▾' if unfolded else '▸'}"
    if width - len(right) - 4 < min(16, cell_len(finding.id)):
        right = right[-1:]
    room = width - len(right) - 2
    badge = fit(f"{MARKS[finding.severity.word]} {middle(finding.id, room - 2)}", room)
    return [*sized([(badge, role)], width - len(right)), (right, "dim")]


def _followed(
    follow: Sequence[Finding], width: int, *, unfolded: bool
) -> Iterator[Pieces]:
    if follow:
        words = f"+{counted(len(follow), 'consequence')}"
        names = ", ".join(dict.fromkeys(one.id for one in follow))
        words = printable(words if unfolded else f"{words}: {names}")
        yield cut([(_indent(width), ""), (words, "dim")], width)


def _details(finding: Finding, width: int) -> Iterator[Pieces]:
    indent = _indent(width)
    for text in finding.evidence:
        yield from paragraph(text, "dim", width, (f"{indent}· ", "dim"))
    advice = finding.advice or ""
    yield from paragraph(advice, "text", width, (f"{indent}→ ", "advice"))
    source = f"source: {finding.source}" if finding.source else ""
    yield from paragraph(source, "dim", width, (f"{indent}  ", ""))


def _indent(width: int) -> str:
    return "  " * (width > _NARROW)


# -- where nothing was found -----------------------------------------------------------------------


def _quiet(view: View, width: int) -> TextRows:
    """Say why there is no finding."""
    one = headline(view)
    return paragraph(f"{one.head}{''.join(one.more[:1])}", one.role, width)


def _not_judged(view: View, width: int) -> TextRows:
    """Write the rules that gave no verdict with their reasons."""
    known = view.verdict.not_judged
    counts = ", ".join(unjudged_rules([rule.reason for rule in known]))
    rows = paragraph(counts, "dim", width)
    for rule in known:
        text = f"{rule.id}: {reason_words(rule.reason)}"
        rows += paragraph(text, "dim", width, (f"{_indent(width)}· ", "dim"))
    return rows


def reason_words(reason: str) -> str:
    """Return why a rule gave no verdict, for people: of several variants' reasons the one on points
    that are still missing, else each missing metric once.
    """
    parts = reason.split("; ")
    for part in parts:
        if points := _POINTS.fullmatch(part):
            return f"{points[2]} of {points[1]} points so far"
    missing = [one.removeprefix(_NONE) for one in parts if one.startswith(_NONE)]
    rest = [one for one in parts if not one.startswith(_NONE)]
    named = dict.fromkeys(" or ".join(missing).split(" or "))
    return "; ".join([*[_NONE + " or ".join(named)] * bool(missing), *rest])


def caption(view: View, width: int) -> str:
    """Count the findings by severity, and acknowledged ones, or say that they cover the log's end
    alone, in at most `width` cells; empty where there is too little room. Consequences of other
    findings do not count.
    """
    run, verdict = view.run, view.verdict
    if not run or (view.loading and not (run.preview and verdict.findings)):
        return ""
    if view.loading:
        words = reading(view)
        forms = [f"found at the end of its log; {words}", words]
    else:
        forms = _counts(view)
    return fitting(forms, width)


def _counts(view: View) -> list[str]:
    primary = view.verdict.primary
    active = [one for one in primary if not _acknowledged(view, one)]
    counts = sorted(Counter(one.severity for one in active).items(), reverse=True)
    known = len(primary) - len(active)
    words = [_count(*one) for one in counts] + [f"{known} acknowledged"] * bool(known)
    marks = "  ".join(f"{MARKS[severity.word]} {count}" for severity, count in counts)
    return [" · ".join(words), marks]


def _count(severity: Severity, count: int) -> str:
    plural = "warnings" if severity is Severity.WARNING else severity.word
    return counted(count, severity.word, plural)


# -- what was ever raised --------------------------------------------------------------------------


def history_page(
    view: View, episodes: Sequence[Episode], width: int
) -> tuple[TextRows, list[int], Sequence[object], str]:
    """Return the rows of episodes, in this order; the row that each begins at, the fields of each
    that stay the same when it is cleared, and how many there are.
    """
    rows, starts = stacked(_episode_rows(view, one, width) for one in episodes)
    if not starts:
        words = "nothing was found so far" if view.run else "no run yet"
        rows = paragraph(words, "dim", width)
    ongoing = sum(episode.cleared_step is None for episode in episodes)
    caption = f"{len(episodes)} raised, {ongoing} ongoing" if episodes else ""
    names = [(one.id, one.key, one.since_step, one.raised_step) for one in episodes]
    return rows, starts, names, caption


def _episode_rows(view: View, episode: Episode, width: int) -> TextRows:
    run, cleared = view.run, episode.cleared_step
    acknowledged = run is not None and view.acknowledgements.marked(run.name, episode)
    role = "dim" if acknowledged or cleared is not None else episode.severity.word
    at = (("since", episode.since_step), ("raised at", episode.raised_step))
    steps = [f"{how} step {step}" for how, step in at if step is not None]
    steps.append("ongoing" if cleared is None else f"cleared at step {cleared}")
    steps += ["acknowledged"] * acknowledged
    name = middle(episode.id, width - 2)
    rows: TextRows = [[(f"{MARKS[episode.severity.word]} ", role), (name, role)]]
    message = (episode.message, "dim" if acknowledged else "text")
    for words, words_role in ((" · ".join(steps), "dim"), message):
        rows += paragraph(words, words_role, width, ("  ", ""))
    return rows
