"""A list to pick one metric from by a few letters of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual import on
from textual.containers import Container
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Input

from verl_tui.rendering.text.printable import printable
from verl_tui.rendering.text.wrap import fit
from verl_tui.tui.keys.act import act
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.widgets.input_line import InputLine
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.rendering.charts.plan import PlannedChart


def matching(plans: Sequence[PlannedChart], text: str) -> list[PlannedChart]:
    """Return the charts whose key or label holds every word, in any case."""
    words = text.lower().split()
    found: list[PlannedChart] = []
    for plan in plans:
        text = f"{plan.key}\n{plan.label}".lower()
        if all(word in text for word in words):
            found.append(plan)
    return found


class PickMetric(
    BufferedScreen["PlannedChart | None"], ModalScreen["PlannedChart | None"]
):
    """A filter and the metrics that match; returns the picked one, None if none was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        act("escape", "dismiss", words="Back"),
        act("down", "move(1)", words="Next"),
        act("up", "move(-1)", words="Previous"),
    ]
    DEFAULT_CSS = """
    PickMetric {
        align: center middle;
        & > Container {
            width: 72;
            max-width: 100%;
            height: 60%;
            min-height: 6;
            max-height: 100%;
            border: round $accent;
            border-title-color: $accent;
            background: $surface;
        }
        & Input { height: 1; border: none; padding: 0 1; }
        & Rows { padding: 0 1; }
    }
    """

    def __init__(self, plans: Sequence[PlannedChart]) -> None:
        super().__init__()
        self._plans = plans
        self._found = list(plans)

    def compose(self) -> ComposeResult:
        """Make the line to type in and the metrics."""
        with Container() as frame:
            frame.border_title = "second metric, axis at the right"
            yield InputLine("a few letters · enter takes")
            rows = Rows(choosing=True)
            rows.can_focus = False
            yield rows

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self._found = matching(self._plans, event.value)
        self.redraw()

    def redraw(self) -> None:
        """List the metrics that match; all to begin with."""
        rows = self.query_one_optional(Rows)
        if rows is None:
            return  # the app is ending
        width = max(1, rows.width)
        rows.set_strips(
            [
                Strip([Segment(fit(printable(_words(plan)), width, "…"))])
                for plan in self._found
            ]
        )
        rows.chosen = (
            min(rows.chosen or 0, len(self._found) - 1) if self._found else None
        )

    @on(Input.Submitted)
    def _take(self) -> None:
        chosen = self.query_one(Rows).chosen
        self.dismiss(
            self._found[chosen]
            if chosen is not None and chosen < len(self._found)
            else None
        )

    def action_move(self, way: int) -> None:
        """Choose the next or previous metric."""
        self.query_one(Rows).action_move(way)


def _words(found: PlannedChart) -> str:
    if found.label == found.key:
        return found.key
    return f"{found.label}  {found.key}"
