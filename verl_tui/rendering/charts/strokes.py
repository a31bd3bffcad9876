"""What a plot is painted of, in dots: plots of equal strokes look equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.alarms import CurveAlarms, parted
from verl_tui.rendering.charts.braille import DotLayer, connect, fill_gaps
from verl_tui.rendering.charts.line_styles import straight_lines
from verl_tui.rendering.text.hues import BEHIND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.rendering.charts.braille import DotSpan
    from verl_tui.rendering.charts.chart_data import AlarmRole


class Shade(NamedTuple):
    """A loose pattern between two series."""

    role: str
    runs: list[DotSpan | None]
    apart: int
    """Dots from one of the pattern to the next."""

    def layers(self, width: int, height: int) -> Iterator[DotLayer]:
        """Yield what it sets on a grid of so many cells."""
        layer = DotLayer(width, height, self.role, backdrop=True)
        layer.shade(fill_gaps(self.runs), self.apart)
        yield layer


class StraightLines(NamedTuple):
    """Straight lines across the plot, or upright ones."""

    role: str
    places: tuple[int, ...]
    """Their dot rows, or columns."""

    def layers(self, width: int, height: int) -> Iterator[DotLayer]:
        """Yield what they set on a grid of so many cells."""
        yield straight_lines(self.role, width, height, self.places)


class Curve(NamedTuple):
    """A series as a line, its stretches that a finding is about in the colour of that."""

    role: str
    runs: list[DotSpan | None]
    odds: list[bool]
    """Dot columns at which it is interrupted."""
    behind: bool = False
    """True if other curves are drawn over it, and their cells have no dots of it."""
    alarms: CurveAlarms | None = None

    def layers(self, width: int, height: int) -> Iterator[DotLayer]:
        """Yield what it sets on a grid of so many cells, the worst alarm last."""
        runs = connect(self.runs, self.odds)
        alarmed: dict[AlarmRole, list[tuple[int, DotSpan]]] = {}
        if self.alarms is not None:
            runs, alarmed = parted(runs, self.alarms)
        calm = DotLayer(width, height, self.role, backdrop=self.behind)
        calm.line(runs)
        yield calm
        for severity, pieces in alarmed.items():
            role = severity + BEHIND * self.behind
            layer = DotLayer(width, height, role, backdrop=self.behind)
            layer.spans(pieces)
            yield layer


PlotStroke = Shade | StraightLines | Curve
