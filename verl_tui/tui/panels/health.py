"""What is wrong with the shown run: findings worst first, with evidence and advice; below, what was not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len
from textual.binding import Binding
from textual.message import Message

from verl_tui.health.finding import Finding, Severity
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.widgets.entries import Entries
from verl_tui.tui.widgets.words import cut, middle, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.health.finding import Verdict
    from verl_tui.tui.view import View
    from verl_tui.tui.widgets.words import Pieces

_ROLES = ("critical", "warning", "info", "ok", "text", "advice", "dim")
_BADGE_ROWS = 4
"""Up to this height there is one row of badges."""


class _Symbols(NamedTuple):
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


_UNICODE = _Symbols()
_ASCII = _Symbols("X", "!", "i", "+", "-", ">", "v", "-", ">", ", ")


class HealthPanel(TextPanel):
    """The findings about the shown run."""

    TITLE = "health"
    FOOTER = (
        ("health.unfold", "Unfold"),
        ("health.not_judged", "Not judged"),
        ("finding.acknowledge", "Acknowledge"),
    )
    PREFIX = "health"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"health--{role}" for role in _ROLES}
    DEFAULT_CSS = """
    HealthPanel {
        & > .health--critical { color: $text-error; text-style: bold; }
        & > .health--warning { color: $text-warning; text-style: bold; }
        & > .health--info { color: $text-primary; }
        & > .health--ok { color: $text-success; }
        & > .health--text { color: $foreground; }
        & > .health--advice { color: $text-accent; }
        & > .health--dim { color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "unfold", "Evidence and advice", id="health.unfold", show=False),
        Binding("v", "not_judged", "Why rules were not judged", id="health.not_judged", show=False),
    ]

    class Followed(Message):
        """The user chose a finding."""

        def __init__(self, finding: Finding) -> None:
            self.finding = finding
            super().__init__()

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._rows = Entries()
        self._view: View | None = None
        self._drawn: tuple[object, ...] = ()
        """What was drawn last."""
        self._run: str | None = None
        self._chosen: tuple[str, str | None] | None = None
        """Which finding is chosen: by rule and metric, since its numbers change with every step."""
        self._unfolded: set[tuple[str, str | None]] = set()
        self._reasons = False
        """Whether it is shown why rules were not judged."""
        self._foot = 0
        """Row that what was not judged begins at."""

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self._rows

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found about the shown run, worst first; what was acknowledged stands below the rest."""
        view = self._view
        return tuple(sorted(view.verdict.findings, key=self._acknowledged)) if view else ()

    def _acknowledged(self, finding: Finding) -> bool:
        view = self._view
        return bool(view and view.run and view.attention.acknowledged(view.run.name, finding))

    def show(self, view: View) -> None:
        """Show the health of the shown run."""
        waiting = view.run is not None and view.run.step is None
        drawn = (view.verdict, view.run, view.loading, view.ascii, waiting, view.attention.revision)
        self._view = view
        if drawn == self._drawn:
            return
        self._drawn = drawn
        name = view.run.name if view.run else None
        if name != self._run:
            self._run, self._chosen = name, None
            self._unfolded.clear()
            self._rows.scroll_home(animate=False)
        self.redraw()

    def choose_next(self, by: int) -> Finding | None:
        """Choose the next finding, or the one before, in a circle.

        Args:
            by: 1 for the next one, -1 for the one before.

        Returns:
            The finding, None where nothing was found.
        """
        findings = self.findings
        if not findings:
            return None
        names = [_name(finding) for finding in findings]
        at = names.index(self._chosen) + by if self._chosen in names else 0 if by > 0 else -1
        self._chosen = names[at % len(names)]
        self.redraw()
        if self._rows.chosen is not None:
            self._rows.reveal(self._rows.chosen)
        return findings[at % len(findings)]

    def action_next(self, by: int) -> None:
        """Choose the next finding and follow it."""
        finding = self.choose_next(by)
        if finding is not None:
            self.post_message(self.Followed(finding))

    def action_unfold(self) -> None:
        """Show or hide evidence and advice of the chosen finding."""
        self._rows.action_open()

    def choose_shown(self) -> Finding | None:
        """Choose the finding that is chosen already, the first where none is; return it, None where there is none."""
        findings = self.findings
        finding = next((one for one in findings if _name(one) == self._chosen), findings[0] if findings else None)
        self._chosen = _name(finding) if finding is not None else None
        return finding

    @property
    def chosen(self) -> Finding | None:
        """The finding that the user has chosen."""
        return next((one for one in self.findings if _name(one) == self._chosen), None)

    def clip(self) -> str:
        """Return the chosen finding as it is copied."""
        found = self.chosen
        return f"{found.severity.name.lower()} {found.id}: {found.message}" if found is not None else ""

    def action_not_judged(self) -> None:
        """Show or hide why rules were not judged."""
        self._reasons = not self._reasons
        self.redraw()
        if self._reasons:
            self._rows.scroll_to(y=self._foot, animate=False)

    def on_rows_chosen(self, message: Entries.Chosen) -> None:
        """Follow the finding that the user chose."""
        message.stop()
        entry = self._rows.entry_at(message.index)
        if entry is not None and entry < len(self.findings):
            self._chosen = _name(self.findings[entry])
            self.post_message(self.Followed(self.findings[entry]))

    def on_entries_opened(self, message: Entries.Opened) -> None:
        """Show or hide evidence and advice of a finding."""
        message.stop()
        if message.entry < len(self.findings):
            self._chosen = _name(self.findings[message.entry])
            self._unfolded ^= {self._chosen}
            self.redraw()
            self._rows.reveal(self._rows.chosen or 0)

    def on_click(self, event: events.Click) -> None:
        """Show or hide why rules were not judged, where their number is clicked."""
        offset = event.get_content_offset(self._rows)
        if self._foot and offset is not None and offset.y + self._rows.scroll_offset.y == self._foot:
            self.action_not_judged()

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        view, rows = self._view, self._rows
        width, height = rows.size
        if view is None or width < 1 or height < 1:
            return
        findings = self.findings
        known = {_name(finding) for finding in findings if self._acknowledged(finding)}
        drawing = _Drawing(width, self._unfolded, known, ascii_only=view.ascii)
        self._foot = 0
        if height <= _BADGE_ROWS:
            # The chosen one comes first: the message below is about it.
            badges = sorted(findings, key=lambda finding: _name(finding) != self._chosen)
            lines = [drawing.badges(badges)] if badges else drawing.beginning(drawing.quiet(view), 1)
            for finding in badges[:1]:
                lines += drawing.beginning(drawing.message(finding, told=True), height - 1)
            heads: list[int] = []
        else:
            lines, heads = self._lay_out(view, drawing, apart=True)
            if len(lines) > height:
                lines, heads = self._lay_out(view, drawing)
            if len(lines) > height:
                drawing.width -= 1  # the scroll bar
                lines, heads = self._lay_out(view, drawing)
        rows.set_entries(self.texts(lines), heads, self._foot or len(lines))
        names = [_name(finding) for finding in findings] if heads else []
        rows.choose(names.index(self._chosen) if self._chosen in names else None)
        counts = _counts(view.verdict, findings[: len(findings) - len(known)], drawing.symbols)
        counts = counts if view.run and not view.loading else [""]
        self.subtitle(next((text for text in counts if cell_len(text) <= self.size.width - 4), ""))

    def _lay_out(self, view: View, drawing: _Drawing, *, apart: bool = False) -> tuple[list[Pieces], list[int]]:
        """Write everything, with empty rows between findings if they are to stand apart; return the findings' rows."""
        lines: list[Pieces] = []
        heads: list[int] = []
        for finding in self.findings:
            if apart and lines:
                lines.append([])
            heads.append(len(lines))
            lines += drawing.finding(finding)
        lines = lines or drawing.quiet(view)
        self._foot = 0
        if view.run and view.verdict.not_judged:
            lines.append([])
            self._foot = len(lines)
            lines += drawing.not_judged(view.verdict, reasons=self._reasons)
        return lines, heads


class _Drawing:
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
        self.symbols = _ASCII if ascii_only else _UNICODE
        self._unfolded = unfolded
        self._ascii = ascii_only

    def finding(self, finding: Finding) -> list[Pieces]:
        """Write a finding: its head and message, then evidence and advice where it is unfolded."""
        unfolded = _name(finding) in self._unfolded
        fold = self.symbols.open if unfolded else self.symbols.closed
        since = "" if finding.since_step is None else f"since step {finding.since_step}"
        since = "acknowledged" if _name(finding) in self._known else since
        if self.width - 2 - len(since) - 4 < min(16, cell_len(finding.id)):
            since = since.removeprefix("since ")
        if self.width - 2 - len(since) - 4 < min(10, cell_len(finding.id)):
            since = ""
        head = self._badge(finding, self.width - 2 - len(since) - 2)
        gap = self.width - 2 - len(since) - sum(cell_len(text) for text, _ in head)
        rows: list[Pieces] = [[*head, (" " * gap, ""), (f"{since} {fold}", "dim")] if gap > 0 else head]
        rows += self.message(finding)
        if unfolded:
            for text in finding.evidence:
                rows += self._paragraph(f"{self.symbols.item} ", text, "dim")
            if finding.advice:
                rows += self._paragraph(f"{self.symbols.advice} ", finding.advice, "text", mark_role="advice")
            if finding.source:
                rows += self._paragraph("  ", f"source: {finding.source}", "dim")
        return rows

    def message(self, finding: Finding, *, told: bool = False) -> list[Pieces]:
        """Write what is wrong; where it is not said elsewhere, also that it is acknowledged."""
        if _name(finding) not in self._known:
            return self._paragraph("", finding.message, "text")
        return self._paragraph("", f"acknowledged: {finding.message}" if told else finding.message, "dim")

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
        return [*rows[: count - 1], [*last, ("~" if self._ascii else "…", last[-1][1])]]

    def quiet(self, view: View) -> list[Pieces]:
        """Say why there is no finding."""
        role, mark, words = "dim", self.symbols.nothing, ""
        if view.loading:
            words = f"reading {int(view.monitor.loaded() * 100)} %"
        elif view.run is None:
            words = "waiting for a run"
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
        role = "dim" if _name(finding) in self._known else role
        return [(f"{mark} "[: self.width], role), (middle(finding.id, cells - 2, ascii_only=self._ascii), role)]

    def _mark(self, severity: Severity) -> tuple[str, str]:
        if severity is Severity.CRITICAL:
            return self.symbols.critical, "critical"
        return (self.symbols.warning, "warning") if severity is Severity.WARNING else (self.symbols.info, "info")

    def _paragraph(
        self, mark: str, text: str, role: str, *, mark_role: str = "", indent: int = 2, hang: int = 0
    ) -> list[Pieces]:
        """Write text below a head, each of its rows as far in as the first, or by `hang` cells further."""
        space, further = (" " * indent, " " * hang) if self.width > 12 else ("", "")
        lines = wrapped(text, self.width - len(space) - len(mark) - len(further), ascii_only=self._ascii)
        return [
            [(space + (" " * len(mark) + further if i else mark), mark_role or role), (line, role)]
            for i, line in enumerate(lines)
        ]


def _name(finding: Finding) -> tuple[str, str | None]:
    return finding.id, finding.key


def _judged(view: View) -> int | None:
    """Return how many rules judged the run, None where the monitor does not tell its rules."""
    guide = getattr(view.monitor, "guide", None)
    if guide is None:
        return None
    skipped = {rule.id for rule in view.verdict.not_judged}
    return len({rule.id for rule in guide.rules} - skipped - guide.silenced)


def _counts(verdict: Verdict, open_: Sequence[Finding], symbols: _Symbols) -> list[str]:
    """Count findings by severity, what is acknowledged and what was not judged; from the longest way to write it on."""
    words, marks = [], []
    for severity in reversed(Severity):
        count = sum(finding.severity is severity for finding in open_)
        if count:
            words.append(f"{count} {severity.word}{'s' * (severity is Severity.WARNING and count != 1)}")
            marks.append(f"{getattr(symbols, severity.word)} {count}")
    known = len(verdict.findings) - len(open_)
    told = [f"{known} acknowledged"] if known else []
    rest = [f"{len(verdict.not_judged)} not judged"] if verdict.not_judged else []
    return [
        symbols.dot.join((*words, *told, *rest)),
        symbols.dot.join((*marks, *told, *rest)),
        symbols.dot.join((*marks, *rest)),
        "  ".join(marks),
    ]
