"""Timing: where a step's time goes, what it yields, when the run is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from verl_tui.tui.keys.act import SPEED, HelpSection, act
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen
from verl_tui.tui.screens.spec import ScreenSpec

if TYPE_CHECKING:
    from textual.binding import BindingType

    from verl_tui.rendering.session.snapshot import View


class TimingScreen(RowsScreen[None]):
    """The time of a step, part by part, the throughput, and when the run ends."""

    TITLE_WORDS = "timing"
    HELP_SECTION = HelpSection("timing", (RowsScreen,), rank=70, task=SPEED)
    BINDINGS: ClassVar[list[BindingType]] = [
        act("escape,q,t", "dismiss", "timing.close", "Close", show=True)
    ]
    EDGE = (
        ("list.down list.up", "scroll"),
        ("run.previous run.next", "run"),
        ("timing.close", "closes"),
    )
    WIDEST = 140

    def page(self, view: View, width: int) -> RowsPage:
        """Return all figures, which scroll together."""
        from verl_tui.rendering.timing.step_parts import timing_rows

        solid = not (self.app.no_color or self.app.current_theme.ansi)
        return RowsPage(timing_rows(view, width, solid=solid))


SCREEN = ScreenSpec(
    "timing",
    "t",
    "timing",
    "Timing: where a step's time goes",
    lambda context: TimingScreen(context.view),
    rank=70,
    short="Timing",
    task=SPEED,
)
