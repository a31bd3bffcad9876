"""Rows of several tables become one series, however they come: the same as if each were put in its
place by itself.
"""

from __future__ import annotations

import math
from array import array

from hypothesis import given
from hypothesis import strategies as st

from verl_tui.records import MetricRows, SourceStatus
from verl_tui.runs.series import Points, Series
from verl_tui.runs.table import Table, precedence

VALUES = st.sampled_from([0.5, 1.5, -2.0, 3.25, math.nan, math.inf])
TIMES = st.sampled_from([math.nan, 100.0, 200.0])
ROW = st.tuples(st.integers(0, 12), VALUES, TIMES)
BATCH = st.tuples(
    st.integers(0, 2), st.integers(0, 1), st.lists(ROW, min_size=1, max_size=8)
)
"""Number of a table, segment of the rows, and the rows."""
ROW_BITS = 40


def slow(rows):
    """What a series is, by its definition: what each row does to a step, by precedence."""
    points = {}
    for step, order, value, time, mean in sorted(rows, key=lambda row: row[:2]):
        before, old, since, count = points.get(step, (-1, 0.0, math.nan, 0))
        again = mean and count and order >> ROW_BITS == before >> ROW_BITS
        total = [*old, value] if again else [value]
        points[step] = (order, total, since if math.isnan(time) else time, len(total))
    steps = sorted(points)
    columns = zip(*(points[step] for step in steps), strict=True)
    _orders, values, times, counts = columns if steps else ((), (), (), ())
    means = [sum(total) / len(total) for total in values]
    return steps, means, list(times), list(counts)


def same(one, other):
    return len(one) == len(other) and all(
        math.isclose(a, b) or (math.isnan(a) and math.isnan(b))
        for a, b in zip(one, other, strict=True)
    )


def columns(series):
    counts = series.counts or [1] * len(series)
    return [list(c) for c in (series.steps, series.values, series.times, counts)]


def write(table, number, segment, rows, at):
    orders = range(at, at + len(rows))
    table.extend(
        MetricRows(
            ("x",),
            [step for step, _, _ in rows],
            ([value for _, value, _ in rows],),
            orders,
        ),
        precedence(SourceStatus("", "", number), segment),
        array("d", [time for _, _, time in rows]),
    )
    return [(step, precedence(SourceStatus("", "", number), segment) + order, value, time, table.mean)
            for order, (step, value, time) in zip(orders, rows, strict=True)]  # fmt: skip


@given(
    batches=st.lists(st.lists(BATCH, min_size=1, max_size=4), min_size=1, max_size=5),
    means=st.sets(st.integers(0, 1)),
    count=st.integers(1, 3),
)
def test_a_merged_series_is_what_rows_put_one_by_one_make(batches, means, count):
    tables = [(Table(("x",), mean=number % 2 in means), 0) for number in range(count)]
    series, order, all_rows, before = Series("x"), 0, [], [[]] * 4
    for batch in batches:
        for number, segment, some in batch:
            all_rows += write(
                tables[number % count][0], number % 2, segment, some, order
            )
            order += len(some)
        revision = series.revision
        series.catch_up(tables)
        assert all(map(same, columns(series), slow(all_rows)))
        settled = len(before[0]) - 1  # all but the newest point
        if settled > 0 and not all(same(old[:settled], new[:settled]) for old, new in
                                   zip(before[:2], columns(series)[:2], strict=True)):  # fmt: skip
            assert series.revision > revision, "whoever has read the points starts over"
        before = columns(series)
        anew = Points(series.steps, series.values)
        assert series.query(0, 4, 4) == anew.query(0, 4, 4)
