"""The parts of a curve that findings are about."""

from __future__ import annotations

import pytest
from run_views import make_run
from test_chart_drawing import view_of

from verl_tui.health.finding import Episode, Finding, Severity, Verdict
from verl_tui.rendering.charts.axes import fill_window
from verl_tui.rendering.charts.chart_data import ANY, Alarm
from verl_tui.rendering.charts.downsample import DotColumns
from verl_tui.rendering.charts.picture import alarmed
from verl_tui.rendering.charts.plan import ChartLook, single_metric
from verl_tui.rendering.charts.planned_data import chart_data

KL = "actor/ppo_kl"
WINDOW = fill_window(0, 9, 10)
BAND = (0.0, 0.5)


def finding(severity, since, key=KL):
    return Finding("kl-high", severity, "high", 9, since, key=key)


def test_findings_and_what_has_recovered_are_alarms_the_worst_last():
    past = Episode("kl-high", Severity.WARNING, 2, 3, 5, key=KL)
    lasting = Episode("kl-high", Severity.CRITICAL, 7, 8, None, key=KL)
    run = make_run(steps=9, columns={KL: [0.1] * 9})
    view = view_of(run)
    view.monitor.verdicts[run.name] = Verdict(
        (
            finding(Severity.CRITICAL, 7),
            finding(Severity.INFO, None),
            finding(Severity.INFO, 1, "x"),
        ),
        history=(lasting, past),
    )
    main = chart_data(single_metric(run, KL), view, ChartLook()).main
    assert main.alarms == (Alarm(1, 2, 5), Alarm(2, 7))


@pytest.mark.parametrize("band", [BAND, ANY])
def test_a_finding_about_something_else_than_the_band_is_a_whole_stretch(band):
    columns = DotColumns([0.2] * 8, [0.2] * 8, [False] * 8)
    assert [*alarmed(columns, [Alarm(2, 3, 6)], WINDOW, band)] == [3, 4, 5]


def test_outside_the_band_a_finding_is_about_each_column_up_to_the_next_value():
    values = [0.2, 0.9, None, None, 0.3, 0.8, 0.2]
    columns = DotColumns(values, values, [False] * 7)
    assert alarmed(columns, [Alarm(1, 1)], WINDOW, BAND) == dict.fromkeys(
        (1, 2, 3, 5), "warning"
    )
