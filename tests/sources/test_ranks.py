"""Records of several ranks; what names something is no metric."""

from __future__ import annotations

import json

from log_reading import read_run, values

from verl_tui.sources.fields.jsonl import is_name


def run_of(tmp_path, *records):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return read_run(path)


def note(run):
    (state,) = [state for state in run.sources.values() if state.status.records]
    return state.status.note


def test_one_of_several_ranks_is_read_and_the_others_are_said(tmp_path):
    records = [
        {"step": step, "rank": rank, "loss": step + rank, "pid": 4000 + rank}
        for step, rank in ((1, 0), (1, 1), (2, 0), (1, 2), (3, 0), (2, 1))
    ]
    run = run_of(tmp_path, *records)
    assert values(run, "loss") == {1: 1.0, 2: 2.0, 3: 3.0}
    assert (set(run.keys), list(run.restarts)) == ({"loss"}, [])
    assert note(run) == "only rank 0 is read: 3 records of others are not"


def test_one_ranks_file_alone_may_start_anew(tmp_path):
    steps = (1, 2, 3, 2, 3)
    alone = [{"step": step, "rank": 3, "loss": float(step)} for step in steps]
    run = run_of(tmp_path, *alone)
    assert (values(run, "loss"), note(run)) == ({1: 1.0, 2: 2.0, 3: 3.0}, None)
    assert [mark.step for mark in run.restarts] == [2]


def test_what_names_something_and_what_measures():
    names = [
        "gpu_id",
        "rank",
        "local_rank",
        "node_rank",
        "pid",
        "seed",
        "data/seed",
        "batch_idx",
        "run_id",
        "port",
        "dp_rank",
    ]
    figures = [
        "effective_rank",
        "mean_rank",
        "loss",
        "epoch",
        "grad_norm",
        "invalid",
        "grid",
        "import",
        "speed",
        "kl_valid",
    ]
    assert [is_name(name) for name in names] == [True] * len(names)
    assert [name for name in figures if is_name(name)] == []
