"""The parts of a curve that findings are about."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_tui.health.finding import Episode, Finding, Severity, Verdict
from verl_tui.rendering.charts.alarms import (
    CurveAlarms,
    Healthy,
    alarmed_polylines,
    alarms_of,
    healthy_rows,
    outside_band,
    parted,
)
from verl_tui.rendering.charts.axes import Scale, Window
from verl_tui.rendering.charts.chart_data import Alarm
from verl_tui.rendering.charts.downsample import DotColumns
from verl_tui.rendering.charts.plan import PlannedChart

KL = PlannedChart("actor/ppo_kl", "policy KL")
WINDOW = Window(0, 1, 1, 10)
BAND = (0.0, 0.5)
SCALE = Scale(0.0, 1.0)
ROWS = 11


def finding(severity: Severity, since: int | None, key: str = KL.key) -> Finding:
    return Finding("kl-high", severity, "high", 9, since, key=key)


def parts(
    values: list[float], *alarms: Alarm, band: tuple[float | None, float | None] = BAND
):
    rows = SCALE.dots(values, ROWS)
    columns = DotColumns([*values], [*values], [False] * len(values))
    runs = [(row, row) for row in rows if row is not None]
    healthy = healthy_rows(band, SCALE, ROWS)
    return parted(
        runs, CurveAlarms(alarms, WINDOW, healthy, outside_band(columns, band))
    )


def test_findings_and_what_has_recovered_are_alarms_the_worst_last():
    past = Episode("kl-high", Severity.WARNING, 2, 3, 5, key=KL.key)
    lasting = Episode("kl-high", Severity.CRITICAL, 7, 8, None, key=KL.key)
    verdict = Verdict(
        (
            finding(Severity.CRITICAL, 7),
            finding(Severity.INFO, None),
            finding(Severity.INFO, 1, "x"),
        ),
        history=(lasting, past),
    )
    assert alarms_of(KL, verdict) == [Alarm(1, 2, 5), Alarm(2, 7)]


def test_only_what_is_outside_the_band_while_a_finding_held_is_alarmed():
    values = [0.9, 0.2, 0.2, 0.9, 0.2, 0.8, 0.2, 0.9]
    calm, alarmed = parts(values, Alarm(1, 3, 6))
    assert [x for x, _ in alarmed["warning"]] == [3, 5]
    assert [x for x, run in enumerate(calm) if run is None] == [3, 5]


def test_without_a_finding_the_band_is_no_alarm():
    assert parts([0.9] * 8).alarmed == {}


def test_the_worst_of_several_findings_colours():
    _, alarmed = parts([0.9] * 8, Alarm(0, 0), Alarm(1, 2), Alarm(2, 4, 6))
    assert {role: [x for x, _ in found] for role, found in alarmed.items()} == {
        "info": [0, 1],
        "warning": [2, 3, 6, 7],
        "critical": [4, 5],
    }


@pytest.mark.parametrize("band", [BAND, (None, None)])
def test_a_finding_about_something_else_than_the_band_is_a_whole_stretch(band):
    calm, alarmed = parts([0.2] * 8, Alarm(2, 3, 6), band=band)
    assert [x for x, _ in alarmed["critical"]] == [3, 4, 5]
    assert calm[3] is None


def test_values_that_leave_the_band_by_less_than_a_dot_are_alarmed():
    _, alarmed = parts([0.49, 0.501, 0.49], Alarm(1, 0))
    assert [x for x, _ in alarmed["warning"]] == [1]


def test_a_run_is_cut_at_the_edges_of_the_band():
    assert Healthy(3, 6).split((0, 9)) == ((3, 6), [(0, 2), (7, 9)])
    assert Healthy(3, 6).split((4, 5)) == ((4, 5), [])
    assert Healthy(3, 6).split((7, 9)) == (None, [(7, 9)])


@given(
    st.tuples(st.integers(-2, 12), st.integers(-2, 12)),
    st.integers(0, 10),
    st.integers(0, 10),
)
def test_no_dot_is_lost_or_drawn_twice(rows, first, more):
    inner, outside = Healthy(*rows).split((first, first + more))
    dots = [
        y
        for run in (*outside, *([inner] if inner else []))
        for y in range(run[0], run[1] + 1)
    ]
    if rows[0] <= rows[1]:
        assert sorted(dots) == [*range(first, first + more + 1)]


@pytest.mark.parametrize(
    ("band", "rows"),
    [
        ((None, None), (-inf, inf)),
        ((0.0, 0.5), (5, 10)),
        ((None, 0.5), (5, inf)),
        ((2.0, None), (-inf, -1)),
        ((None, -1.0), (ROWS, inf)),
        ((-1.0, 2.0), (-inf, inf)),
    ],
)
def test_the_band_in_dot_rows(band, rows):
    assert healthy_rows(band, SCALE, ROWS) == rows


def test_a_line_is_alarmed_from_where_it_crosses_the_band():
    curve = ([0, 2, 4, 6], [0.0, 1.0, 1.0, 0.0], [])
    (part,) = alarmed_polylines(curve, [Alarm(2, 0)], WINDOW, BAND)
    assert (part.role, part.x, part.y) == (
        "critical",
        [1.0, 2, 4, 5.0],
        [0.5, 1.0, 1.0, 0.5],
    )
    assert part.starts == [0]


def test_a_line_that_breaks_off_does_not_cross_the_band_there():
    curve = ([0, 2, 4], [0.0, 1.0, 1.0], [1])
    (part,) = alarmed_polylines(curve, [Alarm(0, 0)], WINDOW, BAND)
    assert (part.x, part.starts) == ([2, 4], [0])
