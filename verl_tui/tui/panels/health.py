"""What is wrong with the shown run: findings worst first, with evidence and advice; below, what was
not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding
from textual.message import Message

from verl_tui.rendering.health_rows import ROLES, FindingWriter, counts, name_of
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.widgets.entries import Entries

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.health.finding import Finding
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces

_BADGE_ROWS = 4
"""Up to this height there is one row of badges, as long as nothing is unfolded."""
_LEAST_ROWS = 2
"""Up to this height there are badges alone."""


class HealthPanel(TextPanel):
    """The findings about the shown run."""

    TITLE = "health"
    FOOTER = (
        ("health.unfold", "Unfold"),
        ("health.not_judged", "Not judged"),
        ("finding.acknowledge", "Acknowledge"),
    )
    PREFIX = "health"
    STYLED_ROLES = ROLES
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
        """What was found about the shown run, worst first; what was acknowledged stands below the
        rest.

        What only follows from another finding comes behind that one, and only where that one is
        unfolded.
        """
        view = self._view
        if view is None:
            return ()
        shown: list[Finding] = []
        for finding in sorted(view.verdict.primary, key=self._acknowledged):
            shown.append(finding)
            if name_of(finding) in self._unfolded:
                shown += view.verdict.consequences(finding)
        return tuple(shown)

    def _acknowledged(self, finding: Finding) -> bool:
        view = self._view
        return bool(
            view and view.run and view.acknowledgements.acknowledged(view.run.name, finding)
        )

    def show(self, view: View) -> None:
        """Show the health of the shown run."""
        waiting = view.run is not None and view.run.step is None
        drawn = (
            view.verdict,
            view.run,
            view.loading,
            view.ascii,
            waiting,
            view.acknowledgements.revision,
        )
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
        names = [name_of(finding) for finding in findings]
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
        """Show or hide evidence and advice of the chosen finding; of the first one where it stands
        as a badge.
        """
        if self._brief and (finding := self.choose_shown()) is not None:
            self._fold(finding)
        else:
            self._rows.action_open()

    def choose_shown(self) -> Finding | None:
        """Choose the finding that is chosen already, the first where none is; return it, None where
        there is none.
        """
        findings = self.findings
        finding = next(
            (one for one in findings if name_of(one) == self._chosen),
            findings[0] if findings else None,
        )
        self._chosen = name_of(finding) if finding is not None else None
        return finding

    @property
    def chosen(self) -> Finding | None:
        """The finding that the user has chosen."""
        return next((one for one in self.findings if name_of(one) == self._chosen), None)

    def clip(self) -> str:
        """Return the chosen finding as it is copied."""
        found = self.chosen
        return (
            f"{found.severity.name.lower()} {found.id}: {found.message}"
            if found is not None
            else ""
        )

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
            self._chosen = name_of(self.findings[entry])
            self.post_message(self.Followed(self.findings[entry]))

    def on_entries_opened(self, message: Entries.Opened) -> None:
        """Show or hide evidence and advice of a finding."""
        message.stop()
        if message.entry < len(self.findings):
            self._fold(self.findings[message.entry])

    def _fold(self, finding: Finding) -> None:
        self._chosen = name_of(finding)
        self._unfolded ^= {self._chosen}
        self.redraw()
        self._rows.reveal(self._rows.chosen or 0)

    def on_click(self, event: events.Click) -> None:
        """Show or hide why rules were not judged, where their number is clicked."""
        offset = event.get_content_offset(self._rows)
        if (
            self._foot
            and offset is not None
            and offset.y + self._rows.scroll_offset.y == self._foot
        ):
            self.action_not_judged()

    @property
    def _brief(self) -> bool:
        """Whether there is little room, and nothing that the user has unfolded needs more."""
        open_ = self._reasons or any(
            name_of(finding) in self._unfolded for finding in self.findings
        )
        return self._rows.size.height <= (_LEAST_ROWS if open_ else _BADGE_ROWS)

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        view, rows = self._view, self._rows
        width, height = rows.size
        if view is None or width < 1 or height < 1:
            return
        findings = self.findings
        known = {name_of(finding) for finding in findings if self._acknowledged(finding)}
        drawing = FindingWriter(width, self._unfolded, known, ascii_only=view.ascii)
        self._foot = 0
        if self._brief:
            # The chosen one comes first: the message below is about it.
            badges = sorted(findings, key=lambda finding: name_of(finding) != self._chosen)
            lines = (
                [drawing.badges(badges)] if badges else drawing.beginning(drawing.quiet(view), 1)
            )
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
        rows.set_entries(self.strips(lines), heads, self._foot or len(lines))
        names = [name_of(finding) for finding in findings] if heads else []
        rows.choose(names.index(self._chosen) if self._chosen in names else None)
        open_ = [finding for finding in view.verdict.primary if not self._acknowledged(finding)]
        told = counts(view.verdict, open_, drawing.symbols)
        told = told if view.run and not view.loading else [""]
        self.subtitle(next((text for text in told if cell_len(text) <= self.size.width - 4), ""))

    def _lay_out(
        self, view: View, drawing: FindingWriter, *, apart: bool = False
    ) -> tuple[list[Pieces], list[int]]:
        """Write everything, with empty rows between findings if they are to stand apart; return the
        findings' rows.
        """
        lines: list[Pieces] = []
        heads: list[int] = []
        for finding in self.findings:
            if apart and lines:
                lines.append([])
            heads.append(len(lines))
            if finding.consequence_of is None:
                lines += drawing.finding(finding, view.verdict.consequences(finding))
            else:
                lines += drawing.consequence(finding)
        lines = lines or drawing.quiet(view)
        self._foot = 0
        if view.run and view.verdict.not_judged:
            lines.append([])
            self._foot = len(lines)
            lines += drawing.not_judged(view.verdict, reasons=self._reasons)
        return lines, heads
