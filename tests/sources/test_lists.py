"""Distributions in JSON: lists of numbers, and bins with counts under the names that programs give
them.
"""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import drain, feed_in_pieces, read_run, values

from verl_tui.distributions import QUANTILES
from verl_tui.records import Histogram, Unreadable
from verl_tui.sources.fields.jsonl import flatten
from verl_tui.sources.fields.lists import split
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


def test_lists_of_the_tutorials_records(tmp_path):
    path = written(
        tmp_path,
        {
            "scope": "rollout",
            "step": 3,
            "reward_mean": 0.5,
            "rewards": [[0, 1], [1, 0]],
        },
        {"scope": "reward", "step": 3, "parts": [0.0, 2.0]},
        {"scope": "reward", "step": 3, "parts": [2.0, 4.0]},
    )
    run = read_run(path)
    assert values(run, "rollout/rewards/mean") == {3: 0.5}
    assert values(run, "reward/parts/mean") == {3: 2.0}, (
        "measurements of one step are averaged"
    )
    assert sum(run.histograms.at("reward/parts", 3).bins.counts) == 4
    assert run.histograms.at("reward/parts", 3).bins[:2] == (0.0, 4.0)
    assert run.restarts == []


@pytest.mark.parametrize(
    "record",
    [
        {"r": {"bins": [0, 1, 2], "counts": [3, 4]}},
        {"r": {"hist": [3, 4], "bin_edges": [0, 1, 2]}},
        {"r_counts": [3, 4], "r_bins": [0, 1, 2]},
        {"r/values": [3, 4], "r/edges": [0, 1, 2]},
        {"r": [[3, 4], [0, 1, 2]]},
        {"r": {"_type": "histogram", "values": [3, 4], "bins": [0, 1, 2]}},
        {
            "r": {
                "_type": "histogram",
                "values": [3, 4],
                "packedBins": {"min": 0, "size": 1, "count": 2},
            }
        },
        {
            "r": {
                "min": 0.5,
                "max": 2,
                "bucket_limit": [1, 9],
                "bucket": [3, 4],
                "num": 7,
            }
        },
        {"tag": "r", "bins": [0, 1, 2], "counts": [3, 4]},
    ],
)
def test_bins_with_counts(record):
    assert found(record) == pytest.approx({"r": 7})
    assert flaws(record) == []
    parts = split(flatten(record))
    assert {"r/p05", "r/p50", "r/p95"} <= parts.numbers().keys()
    assert "r/packedBins/min" not in parts.numbers()


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
        (
            {"_type": "histogram", "values": [1], "bins": 7},
            "r: a histogram without bounds or counts",
        ),
        (
            {"_type": "histogram", "values": [1], "packedBins": {"min": 0}},
            "r: a histogram of something other than numbers",
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


@pytest.mark.parametrize(
    "notes", [[None, None], ["a", None], [None, "b"], [[None], []], [["a"], [None]]]
)
def test_texts_of_which_some_are_missing_are_no_numbers(tmp_path, notes):
    path = written(
        tmp_path, {"scope": "ppo", "step": 1, "kl": [None, None], "notes": notes}
    )
    records = drain(FileSource(path, tutorial))
    assert [one.reason for one in records if isinstance(one, Unreadable)] == [
        "kl: 2 of 2 values are not finite"
    ]


NUMBER = st.integers(-3, 3) | st.floats() | st.none() | st.booleans() | st.just(10**400)
VALUE = st.recursive(
    NUMBER | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "_type",
                    "values",
                    "bins",
                    "packedBins",
                    "counts",
                    "hist",
                    "bin_edges",
                    "min",
                    "max",
                    "size",
                    "bucket",
                ]
            ),
            inner | st.just("histogram"),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    values=st.lists(
        st.dictionaries(st.sampled_from(["a", "b", "bins", "counts", "_type"]), VALUE),
        max_size=5,
    )
)
def test_any_fields_are_survived(values):
    for fields in values:
        parts = split(flatten(fields))
        for one in parts.found.values():
            assert all(
                math.isfinite(value)
                for value in (*one.figures.values(), *one.bins[:2], *one.bins.counts)
            )
        assert all(isinstance(value, float) for value in parts.numbers().values())


@given(cuts=st.lists(st.integers(0, 10**6), max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("format_", [filelogger, tutorial], ids=lambda f: f.name)
def test_any_cut_gives_the_same_histograms(tmp_path, format_, cuts):
    rows = [
        {
            "step": step,
            "scope": "reward",
            "r": [step, 2.0, 7.5],
            "h": {"bins": [0, step], "counts": [step]},
        }
        for step in range(1, 9)
        for _ in range(2)
    ]
    rows = (
        [{"step": row["step"], "data": row} for row in rows]
        if format_ is filelogger
        else rows
    )
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    whole, reported = feed_in_pieces(tmp_path / "log.jsonl", format_, data, [])
    pieces, again = feed_in_pieces(tmp_path / "log.jsonl", format_, data, cuts)
    assert [one for one in reported if isinstance(one, Histogram)] == [
        one for one in again if isinstance(one, Histogram)
    ]
    assert len(whole.histograms.keys) == 2
    for key in whole.histograms.keys:
        assert [whole.histograms.at(key, step) for step in range(9)] == [
            pieces.histograms.at(key, step) for step in range(9)
        ]
    for key in whole.keys:
        assert values(whole, key) == values(pieces, key)


def test_records_of_nothing_but_a_list_are_recognised(tmp_path):
    run = read_run(written(tmp_path, {"step": 4, "rewards": [0.25, 0.75]}))
    assert values(run, "rewards/mean") == {4: 0.5}


def test_scores_of_samples_are_a_distribution(tmp_path):
    rows = [
        {"step": 7, "input": f"q{at}", "output": "a", "score": at / 10}
        for at in range(11)
    ]
    folder = tmp_path / "rollouts"
    folder.mkdir()
    run = read_run(written(folder, *rows, name="7.jsonl"))
    assert values(run, "samples/score") == {7: pytest.approx(0.5)}
    assert values(run, "samples/score/p25") == {7: pytest.approx(0.25)}
    assert run.histograms.at("samples/score", 7).bins[:2] == (0.0, 1.0)
    assert sum(run.histograms.at("samples/score", 7).bins.counts) == 11
    few = read_run(written(folder, *rows[:7], name="7.jsonl"))
    assert not few.histograms.keys
