"""What is listed in what order, and what the table says of each."""

from __future__ import annotations

import math
from array import array

from run_views import make_run, make_view

from verl_tui.rendering.charts.plan import ChartLook
from verl_tui.rendering.metrics.listing import (
    ORDERS,
    ListedMetric,
    MetricList,
    MetricOrder,
    metric_table,
)
from verl_tui.rendering.session.preferences import UserState
from verl_tui.rendering.text.piece import text_of
from verl_tui.runs.series import Series

NAN = math.nan


def series(values):
    made = Series("key")
    made.steps, made.values = array("q", range(1, len(values) + 1)), array("d", values)
    return made


VALUES = {
    "a/up": [1.0] * 10 + [2.0] * 10,
    "a/down": [4.0] * 10 + [1.0] * 10,
    "b/flat": [3.0] * 20,
    "b/few": [NAN] * 19 + [9.0],
    "c/nan": [NAN] * 20,
}


RUN = make_run(steps=20, columns=VALUES)


def order(by, *, reverse=False):
    assert by in ORDERS
    view = make_view(RUN)
    metrics = MetricList(view)
    metrics.type_filter("/^[abc]\\//")
    metrics.order = MetricOrder(by, reverse)
    metrics.update(view, ChartLook(), UserState(), table=True)
    return metrics.keys


def test_sorted_by_key_last_and_trend():
    assert order("key") == ["a/down", "a/up", "b/few", "b/flat", "c/nan"]
    assert order("last") == ["b/few", "b/flat", "a/up", "a/down", "c/nan"]
    assert order("trend") == ["a/up", "b/flat", "a/down", "b/few", "c/nan"]


def test_the_other_way_round_what_is_no_number_stays_last():
    assert order("key", reverse=True) == order("key")[::-1]
    assert order("last", reverse=True) == ["a/down", "a/up", "b/flat", "b/few", "c/nan"]
    assert order("trend", reverse=True) == [
        "a/down",
        "b/flat",
        "a/up",
        "b/few",
        "c/nan",
    ]


def text(*pieces):
    return text_of(pieces)


def test_a_row_says_it_all():
    columns = metric_table(80, 20, MetricOrder("last"))
    one = ListedMetric("a/up", series(VALUES["a/up"]), pinned=True)
    written = text(*columns.row(one))
    assert written.split() == [
        "★",
        "a/up",
        "2",
        "↑",
        "+50%",
        "1",
        "2",
        "▁▁▁▁▁▁▁▁▁▁▇▇▇▇▇▇▇▇▇▇",
    ]
    little = ListedMetric("a/little", series([100.0, 0.0, *[50.0] * 20, *[51.0] * 20]))
    assert "→" in text(*columns.row(little)), "as in its chart"
    names = text(*columns.heading()).split()
    assert names == ["metric", "last▼", "trend", "min", "max", "all", "steps"]
