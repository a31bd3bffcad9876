"""Writes findings as rows of text: a list with evidence and advice, or badges where there is little
room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.health.finding import Severity
from verl_tui.rendering.text.printable import cut, middle, printable, wrapped
from verl_tui.runs.views.state import is_evaluation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.health.finding import Finding, Verdict
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces

ROLES = ("critical", "warning", "info", "ok", "text", "advice", "dim")
"""What a piece of a row is."""


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


_UNICODE = FindingSymbols()
_ASCII = FindingSymbols("X", "!", "i", "+", "-", ">", "v", "-", ">", ", ", "~")
_NARROW = 12
"""Up to this width nothing is set further in."""


def symbols(*, ascii_only: bool) -> FindingSymbols:
    """Return the signs for a terminal."""
    return _ASCII if ascii_only else _UNICODE


class FindingWriter:
    """Writes findings as rows of one width."""

    def __init__(
        self,
        width: int,
        unfolded: set[tuple[str, str | None]],
        acknowledged: set[tuple[str, str | None]],
        *,
        ascii_only: bool,
    ) -> None:
        self.width = width
        self._known = acknowledged
        self.symbols = symbols(ascii_only=ascii_only)
        self._unfolded = unfolded
        self._ascii = ascii_only

    def finding(self, finding: Finding, follow: Sequence[Finding] = ()) -> list[Pieces]:
        """Write a finding: its head and message, then evidence and advice where it is unfolded.

        Args:
            finding: The finding.
            follow: What only follows from it; it is counted.
        """
        unfolded = name_of(finding) in self._unfolded
        fold = self.symbols.open if unfolded else self.symbols.closed
        since = "" if finding.since_step is None else f"since step {finding.since_step}"
        since = "acknowledged" if name_of(finding) in self._known else since
        if self.width - 2 - len(since) - 4 < min(16, cell_len(finding.id)):
            since = since.removeprefix("since ")
        if self.width - 2 - len(since) - 4 < min(10, cell_len(finding.id)):
            since = ""
        head = self._badge(finding, self.width - 2 - len(since) - 2)
        gap = self.width - 2 - len(since) - sum(cell_len(text) for text, _ in head)
        rows: list[Pieces] = [
            [*head, (" " * gap, ""), (f"{since} {fold}", "dim")] if gap > 0 else head
        ]
        rows += self.message(finding)
        if unfolded:
            for text in finding.evidence:
                rows += self._paragraph(f"{self.symbols.item} ", text, "dim")
            if finding.advice:
                rows += self._paragraph(
                    f"{self.symbols.advice} ", finding.advice, "text", mark_role="advice"
                )
            if finding.source:
                rows += self._paragraph("  ", f"source: {finding.source}", "dim")
        if follow:
            rows.append(self._followed(follow, unfolded=unfolded))
        return rows

    def consequence(self, finding: Finding) -> list[Pieces]:
        """Write a finding that only follows from the one above it, further in."""
        indent = 2 if self.width > _NARROW else 0
        within = FindingWriter(
            self.width - indent, self._unfolded, self._known, ascii_only=self._ascii
        )
        return [[(" " * indent, ""), *row] for row in within.finding(finding)]

    def _followed(self, follow: Sequence[Finding], *, unfolded: bool) -> Pieces:
        told = f"+{len(follow)} consequence{'s' * (len(follow) != 1)}"
        if not unfolded:
            told = f"{told}: {', '.join(dict.fromkeys(one.id for one in follow))}"
        indent = "  " if self.width > _NARROW else ""
        return cut(
            [(indent, ""), (printable(told, ascii_only=self._ascii), "dim")],
            self.width,
            self.symbols.more,
        )

    def message(self, finding: Finding, *, told: bool = False) -> list[Pieces]:
        """Write what is wrong; where it is not said elsewhere, also that it is acknowledged."""
        if name_of(finding) not in self._known:
            return self._paragraph("", finding.message, "text")
        return self._paragraph(
            "", f"acknowledged: {finding.message}" if told else finding.message, "dim"
        )

    def badges(self, findings: Sequence[Finding]) -> Pieces:
        """Write findings in one row, and how many there was no room for."""
        row: Pieces = []
        used = 0
        for i, finding in enumerate(findings):
            rest = f" +{len(findings) - i - 1}" if i < len(findings) - 1 else ""
            gap = 1 if row else 0
            room = self.width - used - gap - len(rest)
            if row and room < cell_len(finding.id) + 2:
                row.append((f" +{len(findings) - i}", "dim"))
                break
            row += [(" " * gap, ""), *self._badge(finding, room)]
            used += gap + sum(cell_len(text) for text, _ in row[-2:])
        return row

    def beginning(self, rows: list[Pieces], count: int) -> list[Pieces]:
        """Return the first rows, the last of them with an ellipsis where that is not all."""
        if not 0 < count < len(rows):
            return rows[: max(0, count)]
        last = cut(rows[count - 1], self.width - 1)
        return [*rows[: count - 1], [*last, (self.symbols.more, last[-1][1])]]

    def quiet(self, view: View) -> list[Pieces]:
        """Say why there is no finding."""
        role, mark, words = "dim", self.symbols.nothing, ""
        if view.loading:
            words = f"reading {int(view.monitor.loaded() * 100)} %"
        elif view.run is None:
            words = "waiting for a run"
        elif is_evaluation(view.run):
            words = "an evaluation: no training to judge"
        elif view.run.step is None:
            words = "waiting for the first step"
        elif view.run.name not in view.monitor.verdicts:
            words = "not judged yet"
        elif (judged := _judged(view)) == 0:
            words = "no rule could be judged yet"
        else:
            role, mark = "ok", self.symbols.ok
            number = "" if judged is None else f" by {judged} rule{'s' * (judged != 1)}"
            words = f"nothing found{number}"
        return self._paragraph(f"{mark} ", words, role, indent=0) or [[(mark[: self.width], role)]]

    def not_judged(self, verdict: Verdict, *, reasons: bool) -> list[Pieces]:
        """Write how many rules were not judged, and which and why where that is asked for."""
        count = len(verdict.not_judged)
        words = f"{count} rule{'s' * (count != 1)} not judged"
        if not reasons:
            more = f"{words} (v shows why)"
            words = more if cell_len(more) <= self.width else words
            return [[(part, "dim")] for part in wrapped(words, self.width)]
        rows: list[Pieces] = [[(middle(words, self.width, ascii_only=self._ascii), "dim")]]
        for rule in verdict.not_judged:
            rows += self._paragraph("", f"{rule.id}: {rule.reason}", "dim", hang=2)
        return rows

    def _badge(self, finding: Finding, cells: int) -> Pieces:
        mark, role = self._mark(finding.severity)
        role = "dim" if name_of(finding) in self._known else role
        return [
            (f"{mark} "[: self.width], role),
            (middle(finding.id, cells - 2, ascii_only=self._ascii), role),
        ]

    def _mark(self, severity: Severity) -> tuple[str, str]:
        if severity is Severity.CRITICAL:
            return self.symbols.critical, "critical"
        return (
            (self.symbols.warning, "warning")
            if severity is Severity.WARNING
            else (self.symbols.info, "info")
        )

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
        """Write text below a head, each of its rows as far in as the first, or by `hang` cells
        further.
        """
        space, further = (" " * indent, " " * hang) if self.width > _NARROW else ("", "")
        lines = wrapped(
            text, self.width - len(space) - len(mark) - len(further), ascii_only=self._ascii
        )
        return [
            [(space + (" " * len(mark) + further if i else mark), mark_role or role), (line, role)]
            for i, line in enumerate(lines)
        ]


def name_of(finding: Finding) -> tuple[str, str | None]:
    """Return what a finding is known by: its rule and its metric, since its numbers change with
    every step.
    """
    return finding.id, finding.key


def _judged(view: View) -> int | None:
    """Return how many rules judged the run, None where the monitor does not tell its rules."""
    guide = getattr(view.monitor, "guide", None)
    if guide is None:
        return None
    skipped = {rule.id for rule in view.verdict.not_judged}
    return len({rule.id for rule in guide.rules} - skipped - guide.silenced)


def counts(verdict: Verdict, open_: Sequence[Finding], symbols: FindingSymbols) -> list[str]:
    """Count findings by severity, what is acknowledged and what was not judged; from the longest
    way to write it on.

    What only follows from another finding does not count.
    """
    words, marks = [], []
    for severity in reversed(Severity):
        count = sum(finding.severity is severity for finding in open_)
        if count:
            words.append(
                f"{count} {severity.word}{'s' * (severity is Severity.WARNING and count != 1)}"
            )
            marks.append(f"{getattr(symbols, severity.word)} {count}")
    known = len(verdict.primary) - len(open_)
    told = [f"{known} acknowledged"] if known else []
    rest = [f"{len(verdict.not_judged)} not judged"] if verdict.not_judged else []
    return [
        symbols.dot.join((*words, *told, *rest)),
        symbols.dot.join((*marks, *told, *rest)),
        symbols.dot.join((*marks, *rest)),
        "  ".join(marks),
    ]
