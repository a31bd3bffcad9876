"""The parts of a curve that findings are about."""

from __future__ import annotations

import pytest

from verl_tui.health.finding import Episode, Finding, Severity, Verdict
from verl_tui.rendering.charts.alarms import (
    CurveAlarms,
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


@pytest.mark.parametrize("band", [BAND, (None, None)])
def test_a_finding_about_something_else_than_the_band_is_a_whole_stretch(band):
    calm, alarmed = parts([0.2] * 8, Alarm(2, 3, 6), band=band)
    assert [x for x, _ in alarmed["critical"]] == [3, 4, 5]
    assert calm[3] is None
