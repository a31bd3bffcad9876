"""The stretches of a curve that a finding is about: outside the healthy band while it held.

A value outside the band is no finding by itself: bands are rules of thumb, and rules wait until a
breach has lasted.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.chart_data import ALARM_ROLES, Alarm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.health.finding import Episode, Finding, Verdict
    from verl_tui.rendering.charts.axes import Scale, Window
    from verl_tui.rendering.charts.braille import DotSpan
    from verl_tui.rendering.charts.chart_data import AlarmRole
    from verl_tui.rendering.charts.downsample import DotColumns
    from verl_tui.rendering.charts.plan import PlannedChart


def alarms_of(chart: PlannedChart, verdict: Verdict) -> list[Alarm]:
    """Return when findings about a chart's metric held, over steps; the worst last."""
    found: list[tuple[Episode | Finding, int | None]]
    found = [(one, one.cleared_step) for one in verdict.history]
    found += [(one, None) for one in verdict.findings]
    alarms: set[Alarm] = set()
    for finding, end in found:
        since, key = finding.since_step, finding.key
        if since is not None and key is not None and chart.shows(key):
            alarms.add(Alarm(int(finding.severity), since, end))
    return sorted(
        alarms, key=lambda alarm: (alarm.severity, alarm.first, alarm.last or inf)
    )


class Healthy(NamedTuple):
    """The dot rows of a plot that are within the healthy band, from the top."""

    top: float
    bottom: float

    def split(self, run: DotSpan) -> tuple[DotSpan | None, list[DotSpan]]:
        """Return the parts of a run within the band and outside of it."""
        first, last = run
        if self.top <= first and last <= self.bottom:
            return run, []
        if last < self.top or first > self.bottom:
            return None, [run]
        outside: list[DotSpan] = []
        if first < self.top:
            outside.append((first, int(min(last, self.top - 1))))
        if last > self.bottom:
            outside.append((int(max(first, self.bottom + 1)), last))
        inner = (int(max(first, self.top)), int(min(last, self.bottom)))
        return (inner if inner[0] <= inner[1] else None), outside


def healthy_rows(
    band: tuple[float | None, float | None], scale: Scale | None, rows: int
) -> Healthy:
    """Return which of so many dot rows are within a band; an end that is open reaches beyond the
    plot.
    """
    low, high = band
    top, bottom = -inf, inf
    if scale is None:
        return Healthy(top, bottom)
    if high is not None and high <= scale.hi:
        top = rows if high < scale.lo else scale.dots([high], rows)[0] or 0
    if low is not None and low >= scale.lo:
        bottom = -1 if low > scale.hi else scale.dots([low], rows)[0] or 0
    return Healthy(top, bottom)


class CurveAlarms(NamedTuple):
    """What findings say about a curve."""

    alarms: tuple[Alarm, ...]
    """When they held, the mildest first."""
    window: Window
    """The x axis."""
    healthy: Healthy
    """The dot rows within the band."""
    outside: list[bool]
    """Dot columns with a value outside the band, which may be by less than a dot."""


def outside_band(
    columns: DotColumns, band: tuple[float | None, float | None]
) -> list[bool]:
    """Return which dot columns have a value outside a band."""
    least, most = _ends(band)
    return [
        low is not None and high is not None and (low < least or high > most)
        for low, high in zip(columns.lows, columns.highs, strict=True)
    ]


class Parted(NamedTuple):
    """A curve's runs, and of these the parts that alarms are about."""

    calm: list[DotSpan | None]
    alarmed: dict[AlarmRole, list[tuple[int, DotSpan]]]
    """Dot columns with their runs, by role; the mildest first."""


def parted(runs: Sequence[DotSpan | None], about: CurveAlarms) -> Parted:
    """Split a curve's runs at the edges of the findings about it.

    If nothing in a finding's stretch is outside the band, the finding is about something else: then
    the whole stretch is the alarm.
    """
    calm = list(runs)
    found: dict[int, tuple[AlarmRole, list[DotSpan]]] = {}
    for alarm in about.alarms:
        stretch = _columns_of(alarm, about.window, len(calm))
        outside = [*_outside(stretch, runs, about)]
        role = alarm.role
        for x, within, pieces in outside or _whole(stretch, runs):
            calm[x] = within
            found[x] = (role, pieces)
    alarmed: dict[AlarmRole, list[tuple[int, DotSpan]]] = {}
    for role in ALARM_ROLES:
        of_role = [
            (x, run) for x, (of, parts) in found.items() if of == role for run in parts
        ]
        if of_role:
            alarmed[role] = of_role
    return Parted(calm, alarmed)


def _columns_of(alarm: Alarm, window: Window, count: int) -> range:
    """Return the dot columns of an alarm's stretch."""
    first = window.column(alarm.first)
    last = count if alarm.last is None else max(first + 1, window.column(alarm.last))
    return range(max(0, first), min(count, last))


def _outside(
    stretch: range, runs: Sequence[DotSpan | None], about: CurveAlarms
) -> Iterator[tuple[int, DotSpan | None, list[DotSpan]]]:
    """Yield the dot columns that leave the band: column, the part within, the parts outside."""
    top, bottom = about.healthy
    leaving = [
        (x, run)
        for x in stretch
        if (run := runs[x]) is not None
        and (run[0] < top or run[1] > bottom or about.outside[x])
    ]
    for x, run in leaving:
        within, pieces = about.healthy.split(run)
        if pieces:
            yield x, within, pieces
        else:
            yield x, None, [run]


def _ends(band: tuple[float | None, float | None]) -> tuple[float, float]:
    """Return the ends of a band, an open one infinite."""
    low, high = band
    return -inf if low is None else low, inf if high is None else high


def _whole(
    stretch: range, runs: Sequence[DotSpan | None]
) -> Iterator[tuple[int, DotSpan | None, list[DotSpan]]]:
    """Yield all of a stretch."""
    for x in stretch:
        if (run := runs[x]) is not None:
            yield x, None, [run]


class Polyline(NamedTuple):
    """Part of a curve, in dot columns and heights of 0 to 1."""

    role: AlarmRole
    x: list[float]
    y: list[float]
    starts: list[int]
    """Indices at which a new stretch begins."""


def alarmed_polylines(
    drawn: tuple[Sequence[float], Sequence[float], Sequence[int]],
    alarms: Sequence[Alarm],
    window: Window,
    band: tuple[float | None, float | None],
) -> list[Polyline]:
    """Return the parts of a curve that alarms are about, as `parted` does, from edge to edge of the
    band.

    Args:
        drawn: The curve: ascending dot columns, heights, and indices at which a stretch begins.
        alarms: When findings held, the mildest first.
        window: The x axis.
        band: Heights of the edges of the healthy band.
    """
    x, y, starts = drawn
    ends = _ends(band)
    roles: list[AlarmRole | None] = [None] * len(x)
    for alarm in alarms:
        stretch = _columns_of(alarm, window, window.columns)
        for i in _points_of(stretch, x, y, ends):
            roles[i] = alarm.role
    found = [_polyline(role, (x, y, set(starts)), roles, ends) for role in ALARM_ROLES]
    return [one for one in found if one.x]


def _points_of(
    stretch: range, x: Sequence[float], y: Sequence[float], ends: tuple[float, float]
) -> list[int]:
    """Return the points of a stretch that are outside the band, all of them where none is."""
    least, most = ends
    within = [i for i, column in enumerate(x) if column in stretch]
    return [i for i in within if not least <= y[i] <= most] or within


def _polyline(
    role: AlarmRole,
    drawn: tuple[Sequence[float], Sequence[float], set[int]],
    roles: Sequence[AlarmRole | None],
    ends: tuple[float, float],
) -> Polyline:
    """Return the parts of a curve that have a role, and the way to where it crosses the band."""
    x, y, starts = drawn
    found = Polyline(role, [], [], [])
    for i, own in enumerate(roles):
        joined = i > 0 and i not in starts
        before = roles[i - 1] if joined else None
        if own == role and before != role:
            found.starts.append(len(found.x))
        if joined and (own == role) != (before == role):
            _add_crossing(found, (x[i - 1], y[i - 1]), (x[i], y[i]), ends)
        if own == role:
            found.x.append(x[i])
            found.y.append(y[i])
    return found


def _add_crossing(
    found: Polyline,
    one: tuple[float, float],
    other: tuple[float, float],
    ends: tuple[float, float],
) -> None:
    """Add the point at which the line between two points leaves or enters the band, if it does."""
    for end in ends:
        if (one[1] < end) != (other[1] < end) and one[1] != end != other[1]:
            share = (end - one[1]) / (other[1] - one[1])
            found.x.append(one[0] + (other[0] - one[0]) * share)
            found.y.append(end)
            return
