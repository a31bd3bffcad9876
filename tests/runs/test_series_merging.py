"""Rows of several tables become one series, however they come: the same as if each were put in its
place by itself.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.records import MetricRows
from verl_tui.runs.series import Series
from verl_tui.runs.table import Table, precedence

VALUES = st.sampled_from([0.5, 1.5, -2.0, 3.25, math.nan, math.inf])
TIMES = st.sampled_from([math.nan, 100.0, 200.0])
ROW = st.tuples(st.integers(0, 12), VALUES, TIMES)
BATCH = st.tuples(
    st.integers(0, 2), st.integers(0, 1), st.lists(ROW, min_size=1, max_size=8)
)
"""Number of a table, segment of the rows, and the rows."""
ROW_BITS = 40


class Slow:
    """What a series is, by its definition: points in order, and what one further row does to
    them.
    """

    def __init__(self):
        self.points = {}
        """By step: precedence, value, time, count."""
        self.averages = False

    def put(self, step, order, value, time, mean):
        self.averages = self.averages or mean
        known = self.points.get(step)
        if known is None:
            self.points[step] = (order, value, time, 1)
            return
        before, old, since, count = known
        if mean and order >> ROW_BITS == before >> ROW_BITS:
            count += 1
            value = old + (value - old) / count
        elif order < before:
            return
        else:
            count = 1
        self.points[step] = (order, value, since if math.isnan(time) else time, count)

    @property
    def columns(self):
        steps = sorted(self.points)
        orders, values, times, counts = zip(
            *(self.points[step] for step in steps), strict=True
        )
        return (
            steps,
            list(orders),
            list(values),
            list(times),
            list(counts) if self.averages else [],
        )


def same(one, other):
    return len(one) == len(other) and all(
        a == b or (math.isnan(a) and math.isnan(b))
        for a, b in zip(one, other, strict=True)
    )


def columns(series):
    return [
        list(c)
        for c in (
            series.steps,
            series.orders,
            series.values,
            series.times,
            series.counts,
        )
    ]


def write(table, number, segment, rows, at):
    orders = range(at, at + len(rows))
    table.extend(
        MetricRows(
            ("x",),
            [step for step, _, _ in rows],
            ([value for _, value, _ in rows],),
            orders,
        ),
        precedence(number, 0, segment),
        array("d", [time for _, _, time in rows]),
    )
    return [(step, precedence(number, 0, segment) + order, value, time, table.mean)
            for order, (step, value, time) in zip(orders, rows, strict=True)]  # fmt: skip


@given(
    batches=st.lists(st.lists(BATCH, min_size=1, max_size=4), min_size=1, max_size=5),
    means=st.sets(st.integers(0, 2)),
)
def test_a_merged_series_is_what_rows_put_one_by_one_make(batches, means):
    tables = [(Table(("x",), mean=number in means), 0) for number in range(3)]
    series, slow, order = Series("x"), Slow(), 0
    for batch in batches:
        rows = []
        for number, segment, some in batch:
            rows += write(tables[number][0], number % 2, segment, some, order)
            order += len(some)
        before, revision = columns(series), series.revision
        for row in sorted(rows, key=lambda row: row[:2]):
            slow.put(*row)
        series.catch_up(tables)
        assert all(map(same, columns(series), slow.columns))
        settled = len(before[0]) - 1  # all but the newest point
        if settled > 0 and not all(same(old[:settled], new[:settled]) for old, new in
                                   zip(before[:3:2], columns(series)[:3:2], strict=True)):  # fmt: skip
            assert series.revision > revision, "whoever has read the points starts over"
        lows, highs, odds = series.pyramid.query(0, 4, 4)
        for i, found in enumerate(zip(lows, highs, odds, strict=True)):
            steps = range(i * 4, i * 4 + 4)
            inside = series.values[
                bisect_left(series.steps, steps[0]) : bisect_left(
                    series.steps, steps.stop
                )
            ]
            finite = [value for value in inside if math.isfinite(value)]
            assert found == (
                min(finite, default=None),
                max(finite, default=None),
                len(finite) < len(inside),
            )


def test_rows_behind_averages_count_once():
    first = Table(("x",), mean=True)
    second = Table(("x",), mean=False)
    tables = [(first, 0), (second, 0)]
    series = Series("x")
    write(first, 1, 0, [(1, 1.0, 0.0), (1, 2.0, 0.0)], 0)
    series.catch_up(tables)
    write(second, 2, 0, [(2, 5.0, 0.0)], 2)
    series.catch_up(tables)
    assert list(series.counts) == [2, 1]
    write(second, 2, 0, [(2, 6.0, 0.0)], 3)
    series.catch_up(tables)
    assert (list(series.values), list(series.counts)) == ([1.5, 6.0], [2, 1])
