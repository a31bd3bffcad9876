"""One chart over the full screen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Footer

from verl_tui.runs.provenance import words
from verl_tui.tui.panels.chart_plan import Look, Plan, chart_data
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.zoomed import ZoomedChart

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.tui.view import View


class ZoomScreen(Screen[None]):
    """A chart as large as the terminal."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,z,q", "dismiss", "Back", id="zoom.back"),
        Binding("x", "look('axis')", "X axis", id="zoom.axis"),
        Binding("y", "look('log')", "Log scale", id="zoom.log"),
    ]

    DEFAULT_CSS = """
    ZoomScreen > #origin { dock: bottom; margin-bottom: 1; padding: 0 1; }
    """

    def __init__(self, found: Plan, look: Look, view: View) -> None:
        super().__init__()
        self._plan = found
        self._look = look
        self._view = view

    def compose(self) -> ComposeResult:
        """A chart and the keys."""
        data = chart_data(self._plan, self._view, self._look)
        yield ZoomedChart(data, ascii_only=self._view.ascii or None)
        yield Line(id="origin")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Say where the numbers come from."""
        self._tell_origin()

    def _tell_origin(self) -> None:
        run = self._view.run
        told = words(run, self._plan.key) if run is not None else ()
        separator = ", " if self._view.ascii else " · "
        pieces = [(f"{separator if at else 'from '}{one}", "dim") for at, one in enumerate(told)]
        self.query_one("#origin", Line).show(pieces)

    def show(self, view: View) -> None:
        """Draw the newest state of the run that was zoomed."""
        if view.run is not None and self._view.run is not None and view.run.name == self._view.run.name:
            self._view = view
        self.query_one(ZoomedChart).show(chart_data(self._plan, self._view, self._look))
        self._tell_origin()

    def action_look(self, what: str) -> None:
        """Change the axis or the scale."""
        self._look = self._look.next_axis() if what == "axis" else replace(self._look, log_y=not self._look.log_y)
        self.show(self._view)
