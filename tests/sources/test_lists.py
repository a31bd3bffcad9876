"""Distributions in JSON: lists of numbers, and bins with counts under the names that programs give
them.
"""

from __future__ import annotations

import json
import math

import pytest
from log_reading import drain, read_run, values

from verl_tui.distributions import QUANTILES
from verl_tui.records import Unreadable
from verl_tui.sources.fields.jsonl import flatten
from verl_tui.sources.fields.numbers import split
from verl_tui.sources.formats import filelogger, tutorial
from verl_tui.sources.source import FileSource


def written(tmp_path, *records, name="log.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def found(record):
    parts = split(flatten(record))
    return {name: sum(one.bins.counts) for name, one in parts.found.items()}


def flaws(record):
    return [flaw.reason for flaw in split(flatten(record)).flaws]


def test_a_list_is_a_distribution_and_no_number_is_lost(tmp_path):
    path = written(
        tmp_path,
        *(
            {"step": s, "data": {"rewards": [0.0, s, 2 * s], "loss": 0.5}}
            for s in (1, 2)
        ),
    )
    run = read_run(path)
    assert values(run, "loss") == {1: 0.5, 2: 0.5}
    assert values(run, "rewards/p50") == {1: 1.0, 2: 2.0}
    assert values(run, "rewards/mean") == {1: 1.0, 2: 2.0}
    assert {f"rewards/{part}" for part in (*QUANTILES, "min", "max")} <= set(run.keys)
    assert run.histograms.at("rewards", 2).bins[:2] == (0.0, 4.0)
    assert sum(run.histograms.at("rewards", 2).bins.counts) == 3


@pytest.mark.parametrize(
    "record",
    [
        {"r": {"bins": [0, 1, 2], "counts": [3, 4]}},
        {"r": {"hist": [3, 4], "bin_edges": [0, 1, 2]}},
        {"r_counts": [3, 4], "r_bins": [0, 1, 2]},
        {"r/values": [3, 4], "r/edges": [0, 1, 2]},
        {"r": {"_type": "histogram", "values": [3, 4], "bins": [0, 1, 2]}},
        {
            "r": {
                "_type": "histogram",
                "values": [3, 4],
                "packedBins": {"min": 0, "size": 1, "count": 2},
            }
        },
    ],
)
def test_bins_with_counts(record):
    assert found(record) == pytest.approx({"r": 7})
    assert flaws(record) == []
    parts = split(flatten(record))
    assert {"r/p05", "r/p50", "r/p95"} <= parts.numbers.keys()
    assert "r/packedBins/min" not in parts.numbers


@pytest.mark.parametrize(
    "record",
    [
        {"prompt_ids": [1, 2]}, {"input_ids": [[1, 2]]}, {"tags": ["a", "b"]}, {"mixed": [1, "a"]}, {"shape": [8, 512]},
        {"messages": [{"role": "user"}]}, {"empty": []}, {"seeds": [1, 2]}, {"tokens": [5, 6]}, {"one": 1},
    ],
)  # fmt: skip
def test_what_is_no_distribution(record):
    assert (found(record), flaws(record)) == ({}, [])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"bins": [0, 1], "counts": [3, 4]}, "r: a histogram of 2 counts and 2 bounds"),
        (
            {"bins": [0, 2, 1], "counts": [3, 4]},
            "r: a histogram whose bounds do not ascend",
        ),
        (
            {"bins": [0, 1, None], "counts": [3, 4]},
            "r: a histogram whose bounds do not ascend",
        ),
        (
            {"bins": [0, 1, 2], "counts": [3, -4]},
            "r: a histogram with a count below 0 or beyond all numbers",
        ),
        ({"bins": [0, 1, 2], "counts": [0, 0]}, "r: it is empty"),
        (
            {"bins": [0, 1, "x"], "counts": [3, 4]},
            "r: a histogram of something other than numbers",
        ),
        (
            {"bins": [*range(100_001)], "counts": [1] * 100_000},
            "r: a histogram of 100,000 bins",
        ),
        ([0.5, math.nan, math.inf, None], "r: 3 of 4 values are not finite"),
    ],
)
@pytest.mark.parametrize("format_", [filelogger, tutorial], ids=lambda f: f.name)
def test_a_bad_histogram_is_reported_and_costs_nothing_else(
    tmp_path, value, reason, format_
):
    def record(step, value):
        return {"step": step, "data": {"loss": 0.5, "r": value}} if format_ is filelogger else {
            "scope": "ppo", "step": step, "loss": 0.5, "r": value
        }  # fmt: skip

    path = written(
        tmp_path, record(1, [1.0, 2.0]), record(2, value), record(3, [1.0, 2.0])
    )
    records = drain(FileSource(path, format_))
    assert [
        (one.line, one.reason) for one in records if isinstance(one, Unreadable)
    ] == [(2, reason)]
    run = read_run(path)
    loss = next(key for key in run.keys if key.endswith("loss"))
    assert values(run, loss) == {1: 0.5, 2: 0.5, 3: 0.5}
    assert run.unreadable == 1
