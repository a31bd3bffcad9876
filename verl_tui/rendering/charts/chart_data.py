"""The data of a chart: lines, shades and marks over axes, and how to show them. A chart knows no
run.
"""

from __future__ import annotations

from array import array
from math import inf
from typing import TYPE_CHECKING, Literal, NamedTuple

from verl_tui.rendering.charts.x_axes import Axis
from verl_tui.runs.series import Points
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.distributions import Bins


ALARM_ROLES = ("info", "warning", "critical")
"""By severity."""
_BEGAN = ("▲", "a finding began at this step")
MARKS = {
    "critical": _BEGAN,
    "warning": _BEGAN,
    "info": _BEGAN,
    "restart": ("↻", "the run was restarted here"),
    "note": ("✎", "a note of yours"),
    "checkpoint": ("┴", "a checkpoint was written; many are thinned out"),
}
"""By the role of a mark on the x axis: its sign and meaning; the first of a column is shown. Its
colour is a role of the chart's widget.
"""
SCORE = "◆"
"""Stands on joined points, those of the validation."""
ARROWS = "→↑↓"
"""A trend: flat, rising, falling."""
BEST, BROKEN = "★", "✗"


def legend() -> Iterator[tuple[str, str]]:
    """Yield every sign of a chart, and what it means."""
    yield from dict.fromkeys(MARKS.values())
    yield from toml_table(__file__, "charts.toml")["signs"].items()


class Alarm(NamedTuple):
    """The steps, or times, at which a finding about a metric held."""

    severity: int
    """Index into `ALARM_ROLES`; greater is worse."""
    first: int
    last: int | None = None
    """The first position at which it held no more, None while it holds."""


class ChartLine(NamedTuple):
    """One series within a chart."""

    points: Points
    kind: Literal["line", "points"] = "line"
    """A curve, or points that have a marker each and are joined (validation)."""
    role: str = "line"
    """What colours it: `line`, a family of metrics, `run-1` .. `run-6`, `right`."""
    label: str = ""
    """Name in the legend, which a chart of several lines or several kinds of points has."""
    sign: str = ""
    """What stands on the line and in the legend: a letter, which the only curve of a chart has
    not, or the marker of its points.
    """
    right: bool = False
    """True if its y axis is the one at the right: it is of another metric."""
    unit: str = ""
    """The unit of that metric."""
    alarms: tuple[Alarm, ...] = ()
    """When findings about it held, the mildest first."""


_NO_LINE = ChartLine(Points(array("q"), array("d")), "points", "")
ANY = (-inf, inf)
"""The healthy range where none is known."""
NEVER = 2**62
"""Beyond all steps and times."""


class Shade(NamedTuple):
    """The area between two series, behind the lines."""

    words: str
    """What it is, for the reader of values."""
    low: Points
    high: Points
    role: str = ""
    """`envelope` or `quartiles`; one without a role is read, not drawn."""
    fits: bool = True
    """True if the y axis makes room for it."""


class Heat(NamedTuple):
    """How the values of steps are distributed, drawn as shades below a plot."""

    words: str
    """What they are, and how many a step."""
    places: Sequence[int]
    """Positions along the x axis, ascending."""
    bins: Sequence[Bins]


class Mark(NamedTuple):
    """Something that happened at a step."""

    step: int
    role: str
    """One of `MARKS`, which colours it."""


class ChartData(NamedTuple):
    """Everything one chart shows."""

    key: str
    """The metric's real key, shown dim where there is room."""
    label: str = ""
    """Its name; the key where empty."""
    unit: str = ""
    run: str = ""
    """Name of the run, written behind the metric where nothing else on the screen says it."""
    lines: tuple[ChartLine, ...] = ()
    """The first one of kind `line` gives the value in the title."""
    shades: tuple[Shade, ...] = ()
    """From the farthest to the nearest."""
    band: tuple[float, float] = ANY
    """Healthy range, in the unit of the values, infinite where it is open."""
    target: float | None = None
    """Value that the metric is to reach, in the unit of the values."""
    note: str = ""
    """A few words about the target; they come before the key."""
    value: str = ""
    """What to say in place of the main line's newest value."""
    beside: str = ""
    """Words about the first of the points beside the main line."""
    parts: tuple[ChartData, ...] = ()
    """What the metric is made of, in a row each below a plot that is large."""
    heat: Heat | None = None
    from_zero: bool = False
    """True if its sparkline begins at 0, as of a part."""
    marks: tuple[Mark, ...] = ()
    best: int = 0
    """Which value of the main line is marked as its best: 1 the highest, -1 the lowest, 0 none."""
    cursor: int | None = None
    """Step to read values at. Only a change of it moves the chart's own cursor."""
    axis: Axis = Axis()
    log_y: bool = False
    usual_y: bool = False
    """True if the y axis leaves out outliers; an arrow at its edge shows where they are."""
    smoothing: float = 0.0
    """Weight of the past in an exponential moving average, 0 .. 1 exclusive; 0 = off."""
    by_noise: bool = False
    """True if the curve's noise chooses the smoothing, where points are denser than columns."""
    smoothed_around: bool = False
    """True if a caption says that charts around it are smoothed by noise."""
    first_step: int | None = None
    """Left end of a zoom, None = where the data begins."""
    last_step: int | None = None
    """Right end of a zoom, None = where the data ends."""
    reach: tuple[int, int] | None = None
    """First and last position that the charts around it show: it shows them, too, and its y axis is
    as wide as theirs.
    """
    trendless: bool = False
    """True if health says that it has no trend, of a longer past than that of the title's arrow."""
    end: int = NEVER
    """Last position of the run's present segment: points beyond were given up by a restart."""
    headed: bool = False
    """True if its name is the end of the key, below a heading with the rest."""
    short: str = ""
    """Its name in a chart of one row, where it differs from those around it; the name where empty.
    """
    in_row: bool = False
    """True if it is one row of words, whatever the room."""
    empty: str = "no data yet"
    """Sentence to show while there is no point."""

    @property
    def title(self) -> str:
        """Name to show."""
        return self.label or self.key

    @property
    def extent(self) -> tuple[int, int] | None:
        """The first and last step of its own, None without a point."""
        found = [line.points for line in self.lines]
        for shade in self.shades:
            found += shade.low, shade.high
        ends = [(one.steps[0], one.steps[-1]) for one in found if one.steps]
        if not ends:
            return None
        firsts, lasts = zip(*ends, strict=True)
        first = min(firsts) if self.first_step is None else self.first_step
        last = max(lasts) if self.last_step is None else self.last_step
        return first, max(first, last)

    @property
    def shown(self) -> tuple[int, int] | None:
        """The first and last step on the x axis, None without a point: those of charts around it
        are shown, too.
        """
        return self.extent and (self.reach or self.extent)

    @property
    def main(self) -> ChartLine:
        """The line whose value the title shows, one without points where there is none."""
        curves = [line for line in self.lines if line.kind == "line"]
        return (*curves, *self.lines, _NO_LINE)[0]

    @property
    def lettered(self) -> bool:
        """True if there are several curves, each with a letter: of runs, or of two metrics."""
        return any(line.sign and line.kind == "line" for line in self.lines)


def lined_up(charts: Sequence[ChartData]) -> list[ChartData]:
    """Return charts that all show the steps from the first to the last that any of them shows, with
    y axes whose numbers are equally wide, so that a step is in the same column of the screen in all
    charts.
    """
    ends = [extent for data in charts if (extent := data.extent)]
    if not ends:
        return [*charts]
    firsts, lasts = zip(*ends, strict=True)
    return [data._replace(reach=(min(firsts), max(lasts))) for data in charts]
