"""The findings about the shown run, worst first, and the rules that were not judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual import on
from textual.message import Message

from verl_tui.rendering.health_rows import FindingList, HealthLayout, caption
from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.panels.panel import PanelSpec, TextPanel
from verl_tui.tui.widgets.rows import Entries, Rows

if TYPE_CHECKING:
    from verl_tui.health.finding import Finding


class HealthPanel(TextPanel):
    """The findings about the shown run."""

    TITLE = "health"
    PANEL = PanelSpec("health", "f4", "Health", rank=30, tab=20, share=0.34)
    ROWS = Entries
    FOOTER = """
        health.unfold        Unfold
        entries.open         Go to its step
        health.not_judged    Other rules
        finding.acknowledge  Acknowledge
    """
    HELP_SECTION = HelpSection("health, with the focus", WHY, 20)
    BINDINGS = actions("""
        space  unfold      health.unfold      Evidence and advice
        v      not_judged  health.not_judged  Why rules gave no verdict
    """)

    @dataclass
    class Followed(Message):
        """The user chose a finding to be shown in the charts."""

        finding: Finding

    class Folded(Message):
        """More rows are shown than before, or fewer."""

    _layout = HealthLayout([])
    _of: str | None = None
    """The run that was shown last."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.found = FindingList(self.view)
        """The findings, and which is chosen."""

    def needed(self, width: int, height: int) -> int:
        """Return the rows of all findings; none where the verdict says all there is."""
        self.found.view = self.view
        return self.found.needed(width)

    def redraw(self) -> None:
        """Show the health of the shown run."""
        self.found.view = view = self.view
        name = view.run.name if view.run else None
        if name != self._of:
            self._of = name
            self.found.forget_choices()
            self._rows.scroll_home(animate=False)
        super().redraw()

    def write(self, width: int, height: int) -> None:
        """Write findings, then the rules that gave no verdict."""
        layout = self.found.lay_out(width, height)
        self._layout = layout
        self._rows.set(layout.rows, layout.starts)
        self._rows.choose(self.found.at if layout.starts else None)
        self.subtitle(caption(self.view, self.size.width - 4))

    # -- keys and mouse ----------------------------------------------------------------------------

    def choose(self, finding: Finding) -> None:
        """Choose a finding."""
        self.found.choose(finding)
        self.redraw()
        self._rows.reveal(self._rows.chosen or 0)

    def chosen_or_first(self) -> Finding | None:
        """Choose the first finding unless one is chosen; return the chosen one."""
        return self.found.chosen or self.found.choose_next(1)

    def clip(self) -> str:
        """Return the chosen finding as it is copied."""
        one = self.found.chosen
        return f"{one.severity.name.lower()} {one.id}: {one.message}" if one else ""

    def action_unfold(self) -> None:
        """Unfold or fold the chosen finding, the first if none is."""
        finding = self.chosen_or_first()
        if finding:
            self.found.toggle(finding)
            self.choose(finding)
            self.post_message(self.Folded())

    def action_not_judged(self) -> None:
        """Show or hide the reasons why rules were not judged."""
        self.found.reasons = not self.found.reasons
        self.redraw()
        if self.found.reasons:
            self._rows.scroll_to(y=self._layout.not_judged or 0, animate=False)
        self.post_message(self.Folded())

    @on(Rows.Chosen)
    def _row_chosen(self, message: Rows.Chosen) -> None:
        message.stop()
        if message.entry < len(self.found.findings):
            self.found.choose(self.found.findings[message.entry])
            self.redraw()

    @on(Entries.Opened)
    def _opened(self, message: Entries.Opened) -> None:
        message.stop()
        if message.entry < len(self.found.findings):
            self.post_message(self.Followed(self.found.findings[message.entry]))
