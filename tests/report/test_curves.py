"""Charts of a report: which there are, of which runs, and the points that are drawn of them."""

from __future__ import annotations

from math import nan

from reported import KL, LENGTH, REWARD, report_of, rising

from verl_tui.rendering.charts.chart_data import ANY
from verl_tui.report.run_charts import COLUMNS


def titles(report):
    return [(chart.family, chart.title) for chart in report.charts]


def test_each_family_has_its_charts_in_order():
    report = report_of(
        {
            "a": {KL: [0.01] * 60, LENGTH: rising(60, 1), REWARD: rising(), "actor/lr": [1e-6] * 60},
            "b": {REWARD: rising(), KL: [0.02] * 60},
        }
    )  # fmt: skip
    assert titles(report) == [
        ("reward", "reward"), ("KL", "policy KL"), ("length", "response length"),
    ]  # fmt: skip
    assert [one.run for one in report.charts[0].curves] == ["a", "b"]
    assert report.charts[2].notes == (LENGTH, "not logged by b")


def test_runs_without_a_common_metric_have_their_own_charts():
    report = report_of({"a": {"foo/x": rising()}, "b": {"bar/y": rising()}})
    assert titles(report) == [("metrics", "foo/x"), ("metrics", "bar/y")]
    assert [len(chart.curves) for chart in report.charts] == [1, 1]


def test_a_breach_is_drawn_in_the_colour_of_the_finding_within_its_steps():
    kl = [0.01] * 40 + [0.8] * 20
    drawn = report_of({"a": {REWARD: rising(), KL: kl}}).charts[1].drawing
    assert drawn.picture.band != ANY
    (line,) = drawn.picture.lines
    assert set(line.alarms.values()) == {"critical"}
    assert min(line.alarms) >= (COLUMNS - 1) * 38 / 59
    assert "critical" in {mark.role for mark in drawn.data.marks}


def test_values_that_are_no_numbers_break_the_curve_and_are_marked():
    values = rising()
    values[30] = nan
    drawn = report_of({"a": {REWARD: values}}).charts[0].drawing
    assert len(drawn.odds) == 1


def test_noise_is_smoothed_with_the_values_around_for_one_run_only():
    noisy = [0.5 + 0.3 * ((at * 7919) % 101 / 101 - 0.5) for at in range(600)]
    one = report_of({"a": {REWARD: noisy}}).charts[0].drawing
    two = report_of({name: {REWARD: noisy} for name in "ab"}).charts[0].drawing
    assert one.smoothing == two.smoothing > 0
    (around,) = one.picture.shades
    lows, highs = ([v for v in ends if v is not None] for ends in around.columns[:2])
    assert (min(lows), max(highs)) == (min(noisy), max(noisy))
    assert not two.picture.shades
