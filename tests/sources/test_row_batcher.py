"""Rows of one file on their way to a run: what is said where one takes the place of another."""

from __future__ import annotations

import math

import pytest

from verl_tui.records import (
    Event,
    EventKind,
    MetricRows,
    Restart,
)
from verl_tui.sources.fields.row_batcher import MetricRow, RowBatcher

AB = ("a", "b")


@pytest.mark.parametrize(
    ("rows", "replaced"),
    [
        ([MetricRow(1, AB, (1, 2)), MetricRow(2, AB, (3, 4))], 0),
        ([MetricRow(1, AB, (1, math.nan)), MetricRow(1, AB, (1, math.nan))], 0),
        ([MetricRow(1, AB, (1, 2)), MetricRow(1, ("a", "c"), (1, 9))], 0),
        ([MetricRow(1, AB, (1, 2), mean=True), MetricRow(1, AB, (3, 4), mean=True)], 0),
        ([MetricRow(1, AB, (1, 2)), MetricRow(1, AB, (1, 3))], 1),
        ([MetricRow(1, AB, (1, 2)), MetricRow(1, ("b", "c"), (3, 4))], 1),
        (
            [
                MetricRow(1, AB, (1, 2)),
                MetricRow(1, ("c",), (5,)),
                MetricRow(1, AB, (3, 4)),
                MetricRow(1, AB, (5, 6)),
            ],
            2,
        ),
    ],
    ids=[
        "steps",
        "again",
        "more",
        "measurements",
        "other values",
        "another metric",
        "twice",
    ],
)
def test_rows_that_later_ones_replace_are_counted(
    rows: list[MetricRow], replaced: int
) -> None:
    batcher = RowBatcher()
    batcher.add(rows)
    assert (batcher.note or "0").split()[0] == str(replaced)


BA = ("b", "a")
STARTED = Event(EventKind.STARTED, "Started a local Ray instance.", 3)
RESUMED = Event(EventKind.RESUMED, "Setting global step to 10", 3, 10)


@pytest.mark.parametrize(
    ("items", "reasons"),
    [
        (
            [
                MetricRow(9, AB, (1, 2)),
                MetricRow(11, AB, (1, 2)),
                MetricRow(10, AB, (3, 4)),
            ],
            [],
        ),
        (
            [
                MetricRow(10, AB, (1, 2)),
                MetricRow(11, AB, (1, 2)),
                MetricRow(10, BA, (3, 4)),
            ],
            ["steps went back from 11 to 10"],
        ),
        ([MetricRow(at, keys, (1, 2)) for at in (1, 2, 3) for keys in (AB, BA)], []),
        (
            [MetricRow(11, AB, (1, 2)), STARTED, MetricRow(11, AB, (3, 4))],
            ["step 11 was made a second time"],
        ),
        (
            [
                MetricRow(11, AB, (1, 2)),
                STARTED,
                MetricRow(12, AB, (3, 4)),
                MetricRow(12, AB, (5, 6)),
            ],
            [],
        ),
        (
            [
                MetricRow(11, AB, (1, 2)),
                RESUMED,
                MetricRow(11, AB, (3, 4)),
                MetricRow(12, BA, (3, 4)),
            ],
            ["Setting global step to 10"],
        ),
        ([RESUMED, MetricRow(11, AB, (3, 4))], []),
        (
            [
                MetricRow(11, AB, (1, 2)),
                MetricRow(12, BA, (1, 2)),
                MetricRow(13, AB, (1, 2)),
            ],
            [],
        ),
    ],
    ids=[
        "late",
        "another order",
        "two by turns",
        "a start between",
        "once",
        "said",
        "at first",
        "orders that change",
    ],
)
def test_another_process_shows_by_its_words_or_the_order_of_its_keys(
    items: list[MetricRow | Event], reasons: list[str]
) -> None:
    batcher = RowBatcher()
    batcher.add(items)
    found = batcher.take()
    assert [one.reason for one in found if isinstance(one, Restart)] == reasons
    assert sum(len(one.steps) for one in found if isinstance(one, MetricRows)) == sum(
        isinstance(one, MetricRow) for one in items
    )
