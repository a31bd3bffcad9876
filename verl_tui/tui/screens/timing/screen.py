"""The time of the shown run's steps, its throughput, and when it ends, over the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from verl_tui.rendering.text.part_colours import HUES
from verl_tui.rendering.timing.timing_rows import timing_rows
from verl_tui.text import one_line
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import SPEED
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.screens.overlay import Overlay
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.widgets.role_styled import Looks


class TimingPanel(TextPanel):
    """All figures in rows that scroll together."""

    LOOKS: ClassVar[Looks] = {
        "heading": "bold $text-accent",
        "label": "$foreground",
        "value": "bold $foreground",
        "dim": "$text-muted",
        "good": "$text-success",
        "warning": "$text-warning",
        **HUES,
    }
    DEFAULT_CSS = """
    TimingPanel {
        border: round $accent;
        border-title-color: $accent;
        background: $surface;
        & > Rows { scrollbar-gutter: stable; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows = Rows()
        self._view: View | None = None

    def compose(self) -> ComposeResult:
        """Make the rows."""
        yield self._rows

    def show(self, view: View) -> None:
        """Draw the newest state."""
        self._view = view
        self.redraw()

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        if self._view is not None and self._rows.width > 0:
            solid = not (self.app.no_color or self.app.current_theme.ansi)
            rows = timing_rows(self._view, self._rows.width, solid=solid)
            self._rows.set_strips(self.strips(rows))


class TimingScreen(Overlay[None]):
    """The time of a step, part by part, over the dashboard."""

    HELP_SECTION = HelpSection("timing", (Overlay,), rank=70, task=SPEED)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,t", "dismiss", "Close", id="timing.close")
    ]
    EDGE = (
        ("list.down list.up", "scroll"),
        ("run.previous run.next", "run"),
        ("timing.close", "closes"),
    )
    WIDEST = 140

    _panel: TimingPanel

    def __init__(self, view: View | None = None) -> None:
        super().__init__(TimingPanel(), view)

    def draw(self, view: View) -> None:
        """Draw the newest state."""
        self.entitle(
            f"timing of {one_line(view.run.name, 80)}"
            if view.run is not None
            else "timing"
        )
        self._panel.subtitle(self.edge())
        self._panel.show(view)
