"""The weather at the machine, which is seen beside the others on the widest of screens only."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.panels.spec import PanelSpec
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.binding import BindingType

    from verl_tui.tui.widgets.role_styled import Looks


class WeatherPanel(TextPanel):
    """One row."""

    TITLE = "weather"
    PANEL = PanelSpec("weather", "f10", "Weather", share=0.1, least=170)
    FOOTER = (("weather.unit", "Unit"),)
    HELP_SECTION = HelpSection("weather, with the focus")
    LOOKS: ClassVar[Looks] = {"text": "$foreground"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "unit", "Celsius or Fahrenheit", show=False, id="weather.unit")
    ]

    def compose(self):
        yield Rows()

    def show(self, view):
        self.redraw()

    def redraw(self):
        self.query_one(Rows).set_strips(self.strips([[("hot and windy", "text")]]))
