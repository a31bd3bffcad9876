"""Findings as rows of text: a list with evidence and advice, or badges if there is little room."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.health.coverage import coverage_of
from verl_tui.health.finding import Severity, unjudged, unjudged_rules
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import cut, middle, printable, wrapped
from verl_tui.runs.views.state import State, is_evaluation, state, unread_form
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.finding import Finding, Verdict
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

    FindingName = tuple[str, str | None]
    """Rule and metric of a finding: its numbers change with every step."""

_TITLE = "health "
"""Begins the only row of a panel without an edge."""
_FEWEST_BEHIND_TITLE = 20
"""Cells for what the row says, without which it does without the title."""


class FindingSymbols(NamedTuple):
    """Signs before rows."""

    critical: str = "✖"
    warning: str = "▲"
    info: str = "•"
    ok: str = "✓"
    nothing: str = "○"
    closed: str = "▸"
    open: str = "▾"
    item: str = "·"
    advice: str = "→"
    dot: str = " · "
    more: str = "…"


SYMBOLS = FindingSymbols()
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
        fold = SYMBOLS.open if unfolded else SYMBOLS.closed
        since = self._since(finding)
        badge = self._badge(finding, self.width - 2 - len(since) - 2)
        gap = self.width - 2 - len(since) - cells_of(badge)
        if gap > 0:
            return [*badge, (" " * gap, ""), (f"{since} {fold}", "dim")]
        return badge

    def _since(self, finding: Finding) -> str:
        """Return when a finding began, as long as it leaves room for the finding's name."""
        step = finding.since_step
        long = short = ""
        if is_acknowledged(self.view, finding):
            long = short = "acknowledged"
        elif step is not None:
            long = f"since step {step}"
            short = f"step {step}"
        room = self.width - 2 - 4
        name = cell_len(finding.id)
        if room - len(long) >= min(16, name):
            return long
        if room - len(short) >= min(10, name):
            return short
        return ""

    def _details(self, finding: Finding) -> Iterator[Pieces]:
        for text in finding.evidence:
            yield from self._paragraph(f"{SYMBOLS.item} ", text, "dim")
        if finding.advice:
            mark = f"{SYMBOLS.advice} "
            yield from self._paragraph(mark, finding.advice, "text", mark_role="advice")
        if finding.source:
            yield from self._paragraph("  ", f"source: {finding.source}", "dim")

    def _followed(self, follow: Sequence[Finding], *, unfolded: bool) -> Pieces:
        words = f"+{counted(len(follow), 'consequence')}"
        if not unfolded:
            names = dict.fromkeys(consequence.id for consequence in follow)
            words = f"{words}: {', '.join(names)}"
        words = printable(words)
        indent = "  " if self.width > _NARROW else ""
        return cut([(indent, ""), (words, "dim")], self.width, SYMBOLS.more)

    def _message(self, finding: Finding, mark: str = "") -> list[Pieces]:
        """Write the message, in place of an indent behind a mark where there is one."""
        role = "dim" if is_acknowledged(self.view, finding) else "text"
        return self._paragraph(mark, finding.message, role, indent=0 if mark else 2)

    def badges(self, findings: Sequence[Finding], height: int) -> list[Pieces]:
        """Write findings in one row, and the number of those without room; below it as many
        messages as fit.
        """
        if not findings:
            return [self.quiet_row()]
        if len(findings) == 1:
            (finding,) = findings
            message = self.beginning(self._message(finding), height - 1)
            return [self._head(finding, unfolded=False), *message]
        row: Pieces = []
        for at, finding in enumerate(findings):
            left = len(findings) - at
            rest = f" +{left - 1}" if left > 1 else ""
            gap = " " if row else ""
            room = self.width - cells_of(row) - len(gap) - len(rest)
            if row and room < cell_len(finding.id) + 2:
                row.append((f" +{left}", "dim"))
                break
            row += [(gap, ""), *self._badge(finding, room)]
        rows = [row]
        for finding in findings:
            sign, _ = self._mark(finding.severity)
            message = self._message(finding, f"{sign} ")
            rows += self.beginning(message, height - len(rows))
        return rows

    def beginning(self, rows: list[Pieces], count: int) -> list[Pieces]:
        """Return the first rows; if there are more, the last one is filled and ends with an
        ellipsis.
        """
        if not 0 < count < len(rows):
            return rows[: max(0, count)]
        next_words = rows[count][-1]
        filled = [*rows[count - 1], (" ", ""), next_words]
        last = cut(filled, self.width - 1)
        _, role = last[-1]
        return [*rows[: count - 1], [*last, (SYMBOLS.more, role)]]

    def quiet(self) -> list[Pieces]:
        """Say why there is no finding."""
        view = self.view
        role = "dim"
        mark = SYMBOLS.nothing
        words = _why_no_verdict(view)
        if not words and view.run is not None:
            missing = coverage_of(view.run, view.verdict)
            words = f"nothing found{_by_rules(view, partly=not missing.complete)}"
            words += missing.words
            if missing.complete:
                role = "ok"
                mark = SYMBOLS.ok
        rows = self._paragraph(f"{mark} ", words, role, indent=0)
        return rows or [[(mark[: self.width], role)]]

    def quiet_row(self) -> Pieces:
        """Say in one row why there is no finding, and how many rules were not judged if that
        fits.
        """
        view = self.view
        row = self.beginning(self.quiet(), 1)[0]
        room = self.width - len(_TITLE)
        if room >= _FEWEST_BEHIND_TITLE:
            if cells_of(row) > room:
                row = [*cut(row, room - 1), (SYMBOLS.more, "dim")]
            row = [(_TITLE, "text"), *row]
        rules = view.verdict.not_judged
        if view.loading or view.run is None or view.run.step is None or not rules:
            return row
        counts = ", ".join(unjudged_rules([rule.reason for rule in rules]))
        more = f"{SYMBOLS.dot}{counts} ({view.keys['health.not_judged']}: why)"
        fits = cells_of(row) + cell_len(more) <= self.width
        if fits:
            return [*row, (more, "dim")]
        return row

    def not_judged(self, *, reasons: bool) -> list[Pieces]:
        """Write the number of rules that gave no verdict, on request with names and reasons."""
        view = self.view
        verdict = view.verdict
        why = f"({view.keys['health.not_judged']}: why)"
        first, *more = unjudged_rules([rule.reason for rule in verdict.not_judged])
        words = ", ".join((first, *more))
        if not reasons:
            forms = (f"{words} {why}", words, f"{first} {why}", first)
            fitting = next((form for form in forms if len(form) <= self.width), first)
            return [[(part, "dim")] for part in wrapped(fitting, self.width)]
        words = middle(words, self.width)
        rows: list[Pieces] = [[(words, "dim")]]
        for rule in verdict.not_judged:
            rows += self._paragraph("", f"{rule.id}: {rule.reason}", "dim", hang=2)
        return rows

    def _badge(self, finding: Finding, cells: int) -> Pieces:
        mark, role = self._mark(finding.severity)
        if is_acknowledged(self.view, finding):
            role = "dim"
        name = middle(finding.id, cells - 2)
        return [(f"{mark} "[: self.width], role), (name, role)]

    def _mark(self, severity: Severity) -> tuple[str, str]:
        if severity is Severity.CRITICAL:
            return SYMBOLS.critical, "critical"
        if severity is Severity.WARNING:
            return SYMBOLS.warning, "warning"
        return SYMBOLS.info, "info"

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


def found_at_the_end(view: View) -> Sequence[str]:
    """Return words that the findings are from a preview, from long to short."""
    words = f"reading {int(view.monitor.loaded() * 100)}%"
    return f"found at the end of its log; {words}", f"at the end; {words}", words


def _reading(view: View) -> str:
    """Return how far reading is, and that a preview is shown meanwhile."""
    words = f"reading {int(view.monitor.loaded() * 100)}%"
    is_part = view.run is not None and view.run.preview
    if is_part:
        return f"{words}; a preview is shown"
    return words


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


def finding_counts(verdict: Verdict, open_: Sequence[Finding]) -> list[str]:
    """Count findings by severity, acknowledged ones and rules without a verdict, from long to
    short.

    Consequences of other findings do not count.
    """
    words = []
    marks = []
    for severity in reversed(Severity):
        count = sum(finding.severity is severity for finding in open_)
        if count:
            plural = "warnings" if severity is Severity.WARNING else severity.word
            words.append(counted(count, severity.word, plural))
            marks.append(f"{getattr(SYMBOLS, severity.word)} {count}")
    known = len(verdict.primary) - len(open_)
    seen = [f"{known} acknowledged"] if known else []
    reasons = [rule.reason for rule in verdict.not_judged]
    rest = [", ".join(unjudged(reasons))] if reasons else []
    return [
        SYMBOLS.dot.join((*words, *seen, *rest)),
        SYMBOLS.dot.join((*marks, *rest)),
        "  ".join(marks),
    ]
