"""Timing: where a step's time goes, what it yields, when the run is done, where its hours went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import on

from verl_tui.health.finding import Episode, Severity
from verl_tui.rendering.last_result import LastResult
from verl_tui.tui.keys import SPEED, HelpSection, actions
from verl_tui.tui.screens import ScreenSpec
from verl_tui.tui.screens.rows_screen import SCROLLS, RowsPage, RowsScreen
from verl_tui.tui.widgets.rows import Entries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Self

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.screens import ScreenContext


class TimingScreen(RowsScreen[None]):
    """The time of a step, part by part, the throughput, when the run ends, and the lines of its
    hours, of which one that is opened is followed on the dashboard.
    """

    TITLE_WORDS = "timing"
    HELP_SECTION = HelpSection("timing", SPEED, 70)
    BINDINGS = actions("""
        escape,q,t  dismiss  timing.close  Close
    """)
    FOOTER = f"""{SCROLLS}
        entries.open  goes there
        timing.close  closes
    """
    WIDEST = 140

    def __init__(self, view: View, follow: Callable[[Episode], None]) -> None:
        """Make the screen; `follow` is called with where a line of the hours begins."""
        super().__init__(view)
        self._follow = follow
        self._hours: LastResult[dict[str, Any] | None] = LastResult()
        self.lines: Sequence[Mapping[str, Any]] = ()

    def page(self, view: View, width: int) -> RowsPage:
        """Return all figures, which scroll together."""
        from verl_tui.ledger import ledger
        from verl_tui.rendering.timing import hours_rows, timing_rows

        solid = not (self.app.no_color or self.app.current_theme.ansi)
        rows = timing_rows(view, width, solid=solid)
        run, verdict, guide = view.run, view.verdict, view.monitor.guide
        if run is None:
            return RowsPage(rows)
        known = run, run.revision, verdict, view.now // 60
        found = self._hours.of(known, lambda: ledger(run, verdict, guide, view.now))
        more, self.lines = hours_rows(found, width)
        first = len(rows) + 2  # below the heading
        return RowsPage([*rows, [], *more], range(first, first + len(self.lines)))

    @on(Entries.Opened)
    def _opened(self, message: Entries.Opened) -> None:
        line = self.lines[message.entry]
        run = self._view.run if self._view is not None else None
        key = next((one for one in line["figures"] if run and one in run.keys), None)
        self.dismiss()
        begun = line["finding"] or "", Severity.INFO, line["step"], None
        self._follow(Episode(*begun, key=key))

    @classmethod
    def opened(cls, context: ScreenContext) -> Self:
        """Return the screen, from which a line of the hours is followed on the dashboard."""
        return cls(context.view, context.dashboard.follow_episode)


SCREEN = ScreenSpec(
    TimingScreen,
    "t",
    "timing",
    "Timing: where a step's time goes, where GPU hours went",
    "Timing",
)
