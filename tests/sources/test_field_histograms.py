"""Histograms as W&B and trackio write them among the fields of a record."""

from __future__ import annotations

import pytest

from verl_tui.sources.fields.histograms import pop_histograms
from verl_tui.sources.fields.jsonl import flatten, numbers_in

EDGES = [0, 1, 2]
PACKED = {"min": 0, "size": 1, "count": 2}


@pytest.mark.parametrize(
    ("kind", "bins"),
    [
        ("histogram", {"bins": EDGES}),
        ("histogram", {"packedBins": PACKED}),
        ("trackio.histogram", {"bins": EDGES}),
    ],
)
@pytest.mark.parametrize("joint", ["/", "."])
def test_a_histogram_becomes_quantiles_and_leaves_no_numbers(kind, bins, joint):
    fields = flatten({"r": {"_type": kind, "values": [3, 4], **bins}, "s": 1}, joint)
    found = pop_histograms(fields, joint)
    assert fields == {"s": 1}
    assert found.flaws == []
    assert {"r/p05", "r/p50", "r/p95"} <= found.figures.keys()
    (record,) = found.records(7)
    assert (record.key, record.step, record.low, record.high) == ("r", 7, 0, 2)
    assert sum(record.counts) == pytest.approx(7)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"bins": [0, 1], "values": [3, 4]}, "a histogram of 2 counts and 2 bounds"),
        (
            {"bins": [0, 2, 1], "values": [3, 4]},
            "a histogram whose bounds do not ascend",
        ),
        (
            {"bins": [0, 1, None], "values": [3, 4]},
            "a histogram whose bounds do not ascend",
        ),
        (
            {"bins": EDGES, "values": [3, -4]},
            "a histogram with a count below 0 or beyond all numbers",
        ),
        ({"bins": EDGES, "values": [0, 0]}, "it is empty"),
        ({"bins": [], "values": []}, "it is empty"),
        (
            {"bins": [0, 1, "x"], "values": [3, 4]},
            "a histogram of something other than numbers",
        ),
        ({"values": 3}, "a histogram of something other than numbers"),
        (
            {"packedBins": {"min": 0}, "values": [1]},
            "a histogram whose bounds do not ascend",
        ),
        (
            {"bins": [*range(100_001)], "values": [1] * 100_000},
            "a histogram of 100,000 bins",
        ),
    ],
)
def test_a_bad_histogram_is_said_and_costs_nothing_else(parts, reason):
    fields = flatten({"r": {"_type": "histogram", **parts}, "loss": 0.5})
    found = pop_histograms(fields)
    assert (found.of, found.flaws) == ({}, [f"r: {reason}"])
    assert numbers_in(fields) == {"loss": 0.5}


def test_lists_and_other_objects_are_no_histograms():
    fields = flatten({"ids": [1, 2], "t": {"_type": "table-file", "nrows": 3}})
    assert not pop_histograms(fields).of
    assert fields["ids"] == [1, 2]
