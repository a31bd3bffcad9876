"""The weather at the machine, which is seen beside the others on the widest of screens only."""

from verl_tui.tui.keys import HelpSection, actions
from verl_tui.tui.panels.panel import PanelSpec, TextPanel


class WeatherPanel(TextPanel):
    """One row."""

    TITLE = "weather"
    PANEL = PanelSpec("weather", "f10", "Weather", share=0.1, least=170)
    FOOTER = "weather.unit  Unit"
    HELP_SECTION = HelpSection("weather, with the focus")
    BINDINGS = actions("u  unit  weather.unit  Celsius or Fahrenheit")

    def write(self, width, height):
        self._rows.set([[("hot and windy", "")]])
