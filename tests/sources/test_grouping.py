"""Which files are one run, in the layouts that trainings leave behind."""

from __future__ import annotations

import os

import pytest

from verl_tui.sources.discovery import Finder

CONSOLE = "(TaskRunner pid=1) step:1 - a:1\n"
METRICS = '{"step":1,"data":{"a":1}}\n'
SAMPLE = '{"input":"q","output":"a","score":1}\n'
EVENTS = "events.out.tfevents.1700000000.host.1.0"
BEGUN = bytes.fromhex("4800000000000000fe92489d")
"""The header of an events file's first record."""
KEPT = b":W&B\xe1\xbe\0"
"""The header of a W&B run."""


@pytest.fixture
def tree(tmp_path):
    """Make files from a mapping of paths to contents; a number after the content is its time of change."""

    def make(files):
        for name, content in files.items():
            text, written = content if isinstance(content, tuple) else (content, 1000)
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
            os.utime(path, (written, written))
        return {
            run.name: sorted(str(file.path.relative_to(tmp_path)) for file in run.files)
            for run in Finder([str(tmp_path)]).scan().runs
        }

    return make


def test_where_verl_runs_everything_of_one_training_is_one_run(tree, tmp_path):
    files = {
        "train.log": CONSOLE,
        "proj/exp.jsonl": METRICS,
        f"tensorboard_log/proj/exp/{EVENTS}": BEGUN,
        "wandb/offline-run-20260101_000000-abc/run-abc.wandb": KEPT,
        "outputs/2026-01-01/00-00-00/.hydra/overrides.yaml": "- a=1\n",
    }
    assert tree(files) == {tmp_path.name: sorted(files)}


def test_parts_in_folders_that_are_called_by_what_lies_in_them(tree, tmp_path):
    files = {"logs/train.log": CONSOLE, f"tensorboard/{EVENTS}": BEGUN, "metrics/exp.jsonl": METRICS}
    assert tree(files) == {tmp_path.name: sorted(files)}


def test_two_runs_with_a_log_each_in_another_format_stay_two(tree):
    assert tree({"first/train.log": CONSOLE, "second/exp.jsonl": METRICS}) == {
        "first": ["first/train.log"],
        "second": ["second/exp.jsonl"],
    }


def test_experiments_side_by_side_are_told_apart_by_their_names(tree):
    found = tree(
        {
            "proj/small.jsonl": METRICS,
            "proj/large.jsonl": METRICS,
            f"tensorboard_log/proj/small/{EVENTS}": BEGUN,
            f"tensorboard_log/proj/large/{EVENTS}": BEGUN,
        }
    )
    assert found == {
        name: [f"proj/{name}.jsonl", f"tensorboard_log/proj/{name}/{EVENTS}"] for name in ("small", "large")
    }


def test_the_event_files_of_a_directory_are_one_log(tree, tmp_path):
    files = {f"events.out.tfevents.{1700000000 + n}.host.1.{n}": BEGUN for n in range(5)}
    assert tree(files) == {tmp_path.name: sorted(files)}


def test_hyperparameters_that_torch_puts_in_a_folder_of_their_own_are_part_of_the_run(tree, tmp_path):
    files = {EVENTS: BEGUN, f"1700000001.123/{EVENTS}": BEGUN}
    assert tree(files) == {tmp_path.name: sorted(files)}


def test_halves_of_a_slurm_log_are_one_run(tree):
    files = {"job-1.out": CONSOLE, "job-1.err": "nothing special\n", "job-2.out": CONSOLE, "job-2.err": CONSOLE}
    assert tree(files) == {"job-1": ["job-1.err", "job-1.out"], "job-2": ["job-2.err", "job-2.out"]}


def test_a_half_without_the_other_is_what_it_is(tree):
    assert tree({"job-1.err": "nothing special\n"}) == {}


def test_a_slurm_log_named_by_one_half_or_both(tmp_path):
    for name in ("job.out", "job.err"):
        (tmp_path / name).write_text(CONSOLE)
    for specs in (["job.out"], ["job.err"], ["job.err", "job.out"], ["job.*"]):
        runs = Finder([str(tmp_path / spec) for spec in specs]).scan().runs
        assert [(run.name, sorted(file.path.name for file in run.files)) for run in runs] == [
            ("job", ["job.err", "job.out"])
        ]


def wandb(id_, time, *, resumed=0):
    return f"wandb/run-20260101_00000{resumed}-{id_}/run-{id_}.wandb", (KEPT, time)


def test_wandb_runs_beside_several_logs_go_to_those_that_ended_with_them(tree):
    files = dict(
        [wandb("abc", 5000), wandb("def", 9000), wandb("ghi", 20_000)],
        **{"a.log": (CONSOLE, 5060), "b.log": (CONSOLE, 8990)},
    )
    found = tree(files)
    assert found["a"] == ["a.log", wandb("abc", 0)[0]]
    assert found["b"] == ["b.log", wandb("def", 0)[0]]
    assert [wandb("ghi", 0)[0]] in found.values(), "what belongs to no log is a run by itself"


def test_wandb_runs_that_ended_together_are_given_to_nobody(tree):
    files = dict([wandb("abc", 5000), wandb("def", 5001)], **{"a.log": (CONSOLE, 5000), "b.log": (CONSOLE, 9000)})
    assert len(tree(files)) == 4


def test_a_wandb_run_that_was_resumed_is_one_run(tree):
    first, second = wandb("abc", 5000), wandb("abc", 9000, resumed=7)
    assert list(tree(dict([first, second, wandb("def", 1)])).values()) == [
        [first[0], second[0]],
        [wandb("def", 1)[0]],
    ]


def test_what_wandb_writes_of_itself_is_no_log(tree):
    run = "wandb/run-20260101_000000-abc"
    files = {f"{run}/run-abc.wandb": KEPT, f"{run}/logs/debug-internal.log": CONSOLE, "wandb/debug.log": CONSOLE}
    assert list(tree(files).values()) == [[f"{run}/run-abc.wandb"]]


def test_a_tree_without_end_is_left_after_many_directories(tmp_path, monkeypatch):
    monkeypatch.setattr("verl_tui.sources.discovery.MOST_DIRECTORIES", 5)
    for n in range(9):
        (tmp_path / str(n)).mkdir()
    assert "more than 5 directories" in Finder([str(tmp_path)]).scan().problems[0]
