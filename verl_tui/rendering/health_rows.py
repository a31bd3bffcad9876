"""Findings as rows of text: a list with evidence and advice, or badges if there is little room."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.health.finding import Severity, coverage_of, unjudged, unjudged_rules
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import cut, middle, printable, wrapped
from verl_tui.rendering.text.wrap import ELLIPSIS
from verl_tui.runs.views.state import State, is_evaluation, state, unread_form
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.finding import Finding
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

    FindingName = tuple[str, str | None]
    """Rule and metric of a finding: its numbers change with every step."""

_TITLE = "health "
"""Begins the only row of a panel without an edge."""
_FEWEST_BEHIND_TITLE = 20
"""Cells for what the row says, without which it does without the title."""


MARKS = {Severity.CRITICAL: "✖", Severity.WARNING: "▲", Severity.INFO: "•"}
_OPEN, _CLOSED = "▾", "▸"
_OVER = (State.FINISHED, State.CRASHED, State.ENDED)
_NARROW = 12
"""Width up to which nothing is indented, in cells."""


class Block(NamedTuple):
    """A finding as rows."""

    head: Pieces
    message: list[Pieces]
    below: list[Pieces]


class FindingWriter:
    """Writes the findings of a state as rows of one width."""

    def __init__(self, view: View, width: int, unfolded: set[FindingName]) -> None:
        self.view = view
        self.width = width
        self._unfolded = unfolded

    def finding(self, finding: Finding, follow: Sequence[Finding] = ()) -> Block:
        """Write a finding: head and message; if it is unfolded also evidence and advice.

        Args:
            finding: The finding; what is only a consequence of the one above is indented.
            follow: Its consequences, which are counted.
        """
        unfolded = name_of(finding) in self._unfolded
        inner = self
        indent = 2 if finding.consequence_of is not None and self.width > _NARROW else 0
        if indent:
            inner = FindingWriter(self.view, self.width - indent, self._unfolded)
        below = [*inner._details(finding)] if unfolded else []
        if follow:
            below.append(self._followed(follow, unfolded=unfolded))
        before: Pieces = [(" " * indent, "")] if indent else []
        return Block(
            [*before, *inner._head(finding, unfolded=unfolded)],
            [[*before, *row] for row in inner._message(finding)],
            [[*before, *row] for row in below],
        )

    def _head(self, finding: Finding, *, unfolded: bool) -> Pieces:
        """Write sign and name, and at the right since when it holds, where the name has room."""
        since = "" if finding.since_step is None else f"since step {finding.since_step}"
        if is_acknowledged(self.view, finding):
            since = "acknowledged"
        right = f"{since} {_OPEN if unfolded else _CLOSED}"
        if self.width - len(right) - 4 < min(16, cell_len(finding.id)):
            right = right[-1:]
        badge = self._badge(finding, self.width - len(right) - 2)
        gap = self.width - len(right) - cells_of(badge)
        return [*badge, (" " * gap, ""), (right, "dim")] if gap > 0 else badge

    def _details(self, finding: Finding) -> Iterator[Pieces]:
        for text in finding.evidence:
            yield from self._paragraph("· ", text, "dim")
        if finding.advice:
            mark = "→ "
            yield from self._paragraph(mark, finding.advice, "text", mark_role="advice")
        if finding.source:
            yield from self._paragraph("  ", f"source: {finding.source}", "dim")

    def _followed(self, follow: Sequence[Finding], *, unfolded: bool) -> Pieces:
        words = f"+{counted(len(follow), 'consequence')}"
        if not unfolded:
            names = dict.fromkeys(consequence.id for consequence in follow)
            words = f"{words}: {', '.join(names)}"
        indent = "  " if self.width > _NARROW else ""
        return cut([(indent, ""), (printable(words), "dim")], self.width, ELLIPSIS)

    def _message(self, finding: Finding) -> list[Pieces]:
        role = "dim" if is_acknowledged(self.view, finding) else "text"
        return self._paragraph("", finding.message, role)

    def badges(self, findings: Sequence[Finding]) -> Pieces:
        """Write the names of findings in one row, and the number of those without room."""
        row: Pieces = []
        for at, finding in enumerate(findings):
            left = len(findings) - at
            room = (
                self.width
                - cells_of(row)
                - bool(row)
                - (len(f" +{left}") if left > 1 else 0)
            )
            if row and room < cell_len(finding.id) + 2:
                return [*row, (f" +{left}", "dim")]
            row += [(" " * bool(row), ""), *self._badge(finding, room)]
        return row

    def beginning(self, rows: list[Pieces], count: int) -> list[Pieces]:
        """Return the first rows; if there are more, the last one ends with an ellipsis."""
        if not 0 < count < len(rows):
            return rows[: max(0, count)]
        filled = [*rows[count - 1], (" ", ""), rows[count][-1]]
        return [*rows[: count - 1], cut(filled, self.width, ELLIPSIS)]

    def quiet(self) -> list[Pieces]:
        """Say why there is no finding."""
        view = self.view
        role, mark = "dim", "○"
        words = _why_no_verdict(view)
        if not words and view.run is not None:
            missing = coverage_of(view.run, view.verdict)
            words = f"nothing found{_by_rules(view, partly=not missing.complete)}"
            words += missing.words
            if missing.complete:
                role, mark = "ok", "✓"
        return self._paragraph(f"{mark} ", words, role, indent=0) or [[(mark, role)]]

    def quiet_row(self) -> Pieces:
        """Say in one row why there is no finding, and how many rules were not judged if that
        fits.
        """
        view = self.view
        row = self.beginning(self.quiet(), 1)[0]
        if self.width >= len(_TITLE) + _FEWEST_BEHIND_TITLE:
            row = cut([(_TITLE, "text"), *row], self.width, ELLIPSIS)
        rules = view.verdict.not_judged
        if view.loading or view.run is None or view.run.step is None or not rules:
            return row
        counts = ", ".join(unjudged_rules([rule.reason for rule in rules]))
        more = f" · {counts} ({view.keys['health.not_judged']}: why)"
        fits = cells_of(row) + cell_len(more) <= self.width
        return [*row, (more, "dim")] if fits else row

    def not_judged(self, *, reasons: bool) -> list[Pieces]:
        """Write the number of rules that gave no verdict, on request with names and reasons."""
        view = self.view
        verdict = view.verdict
        why = f"({view.keys['health.not_judged']}: why)"
        words = ", ".join(unjudged_rules([rule.reason for rule in verdict.not_judged]))
        if not reasons:
            return [[(part, "dim")] for part in wrapped(f"{words} {why}", self.width)]
        words = middle(words, self.width)
        rows: list[Pieces] = [[(words, "dim")]]
        for rule in verdict.not_judged:
            rows += self._paragraph("", f"{rule.id}: {rule.reason}", "dim", hang=2)
        return rows

    def _badge(self, finding: Finding, cells: int) -> Pieces:
        acknowledged = is_acknowledged(self.view, finding)
        role = "dim" if acknowledged else finding.severity.word
        mark = MARKS[finding.severity]
        return [(f"{mark} "[: self.width], role), (middle(finding.id, cells - 2), role)]

    def _paragraph(
        self,
        mark: str,
        text: str,
        role: str,
        *,
        mark_role: str = "",
        indent: int = 2,
        hang: int = 0,
    ) -> list[Pieces]:
        """Write indented text; rows after the first are indented by `hang` cells more."""
        if self.width <= _NARROW:
            indent = hang = 0
        room = self.width - indent - len(mark) - hang
        before = " " * indent + mark
        rows: list[Pieces] = []
        for line in wrapped(text, room):
            rows.append([(before, mark_role or role), (line, role)])
            before = " " * (indent + len(mark) + hang)
        return rows


def name_of(finding: Finding) -> FindingName:
    """Return the identity of a finding: rule and metric, as its numbers change with each step."""
    return finding.id, finding.key


def is_acknowledged(view: View, finding: Finding) -> bool:
    """Return whether the user has acknowledged a finding of the shown run."""
    run = view.run
    return run is not None and view.acknowledgements.acknowledged(run.name, finding)


def _reading(view: View) -> str:
    """Return how far reading is, and that a preview is shown meanwhile."""
    words = f"reading {int(view.monitor.loaded() * 100)}%"
    is_part = view.run is not None and view.run.preview
    return f"{words}; a preview is shown" if is_part else words


def _why_no_verdict(view: View) -> str:
    """Say why nothing was judged; empty where something was."""
    run = view.run
    if run is None:
        return "waiting for a run"
    if view.loading:
        return _reading(view)
    if is_evaluation(run):
        return "an evaluation: no training to judge"
    if run.step is None:
        return _why_no_step(run, state(run, view.now))
    if run.name not in view.monitor.verdicts:
        return "no verdict yet"
    if not run.indicators:
        return "nothing to judge: no indicator of this log is known"
    return "no rule could judge it yet" if _judged(view) == 0 else ""


def _why_no_step(run: Run, now: State) -> str:
    if now is State.NO_TRAINING:
        return "no training to judge"
    if unread_form(run):
        return "its steps cannot be read"
    return "no step was logged" if now in _OVER else "waiting for the first step"


def _judged(view: View) -> int | None:
    """Return the number of rules that judged the run, None if the rules are unknown."""
    guide = getattr(view.monitor, "guide", None)
    if guide is None:
        return None
    skipped = {rule.id for rule in view.verdict.not_judged}
    return len({rule.id for rule in guide.rules} - skipped - guide.silenced)


def _by_rules(view: View, *, partly: bool) -> str:
    """Return how many rules judged the run, and of how many, in words; empty if the rules are
    unknown.
    """
    judged = _judged(view)
    if judged is None:
        return ""
    if not partly:
        return f" by {counted(judged, 'rule')}"
    every = {rule.id for rule in view.monitor.guide.rules} - view.monitor.guide.silenced
    return f" by {judged} of {counted(len(every), 'rule')}"


def caption(view: View, width: int, *, reasons: bool = False) -> str:
    """Count the findings in at most `width` cells, or say that they cover the log's end alone;
    empty where there is too little room.

    Args:
        view: The state to show.
        width: Cells for the caption.
        reasons: Whether the rows name the rules that were not judged: else the caption counts them,
            and names the key.
    """
    if view.run is None:
        return ""
    words = f"reading {int(view.monitor.loaded() * 100)}%"
    forms = [f"found at the end of its log; {words}", words]
    if not view.loading:
        forms = _counts(view, reasons=reasons)
    elif not (view.run.preview and view.verdict.findings):
        return ""
    return next((text for text in forms if cell_len(text) <= width), "")


def _counts(view: View, *, reasons: bool) -> list[str]:
    """Count findings by severity, acknowledged ones and rules without a verdict, long and short.

    Consequences of other findings do not count.
    """
    verdict = view.verdict
    words, marks = _by_severity(view)
    if not verdict.not_judged or reasons:
        return [" · ".join(words), "  ".join(marks)]
    rest = ", ".join(unjudged([rule.reason for rule in verdict.not_judged]))
    why = f"{rest} ({view.keys['health.not_judged']}: why)"
    ways = ((words, why), (marks, why), (marks, rest))
    return [" · ".join((*begin, end)) for begin, end in ways]


def _by_severity(view: View) -> tuple[list[str], list[str]]:
    """Count the findings of each severity in words, with the acknowledged ones, and by marks."""
    primary = view.verdict.primary
    active = [one for one in primary if not is_acknowledged(view, one)]
    found = Counter(finding.severity for finding in active)
    counts = [(severity, found[severity]) for severity in sorted(found, reverse=True)]
    words = [_count(*one) for one in counts]
    if known := len(primary) - len(active):
        words.append(f"{known} acknowledged")
    return words, [f"{MARKS[severity]} {count}" for severity, count in counts]


def _count(severity: Severity, count: int) -> str:
    plural = "warnings" if severity is Severity.WARNING else severity.word
    return counted(count, severity.word, plural)
