"""Which files are one run, in the layouts that trainings leave behind."""

from __future__ import annotations

import os
import struct
import zlib

import pytest
from log_reading import read_runs

from verl_tui.sources.discovery.finder import Finder

CONSOLE = "(TaskRunner pid=1) step:1 - a:1\n"
METRICS = '{"step":1,"data":{"a":1}}\n'
EVENTS = "events.out.tfevents.1700000000.host.1.0"
BEGUN = bytes.fromhex("4800000000000000fe92489d")
"""The header of an events file's first record."""


def kept(name=""):
    """Return the beginning of a W&B log: its header, and a record that says what the run is
    called.
    """
    run = b"\x0a\x03abc" + (
        b"\x42" + bytes([len(name)]) + name.encode() if name else b""
    )
    body = b"\x01\x8a\x01" + bytes([len(run)]) + run
    return (
        b":W&B\xe1\xbe\0" + struct.pack("<IH", zlib.crc32(body), len(body) - 1) + body
    )


KEPT = kept()


@pytest.fixture
def tree(tmp_path):
    """Make files from a mapping of paths to contents; a number after the content is its time of
    change.
    """

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


def test_an_experiment_whose_log_alone_names_it(tree):
    found = tree(
        {
            "proj/small.jsonl": METRICS,
            f"tensorboard_log/proj/small/{EVENTS}": BEGUN,
            f"tensorboard_log/proj/large/{EVENTS}": BEGUN,
        }
    )
    assert sorted(found.values()) == [
        ["proj/small.jsonl", f"tensorboard_log/proj/small/{EVENTS}"],
        [f"tensorboard_log/proj/large/{EVENTS}"],
    ]


STATE = '{"best_model_checkpoint": null, "global_step": 1, "log_history": [{"loss": 1, "step": 1}]}'


def test_each_start_of_a_hugging_face_trainer_has_a_folder_of_events(tree, tmp_path):
    starts = [f"out/runs/{day}_10-00-00_host/{EVENTS}" for day in ("Nov30", "Dec01")]
    files = {
        "train.log": CONSOLE,
        "out/trainer_state.json": STATE,
        **dict.fromkeys(starts, BEGUN),
    }
    assert tree(files) == {tmp_path.name: sorted(files)}
    (run,) = read_runs(tmp_path).values()
    places = [
        state.status.ordinal
        for path, state in run.sources.items()
        if path.endswith(EVENTS)
    ]
    assert len(places) == 2
    assert len(set(places)) == 1, (
        "of two values for one step that written later holds, whatever the folder is called"
    )


def test_starts_that_state_one_name_are_one_training_before_its_first_checkpoint(
    tree, tmp_path
):
    named = BEGUN + b'{"run_name": "grpo-7b"}'
    starts = [f"out/runs/{day}_10-00-00_host/{EVENTS}" for day in ("Nov30", "Dec01")]
    files = {"train.log": CONSOLE, **dict.fromkeys(starts, named)}
    assert tree(files) == {"grpo-7b": sorted(files)}


def test_starts_of_other_names_in_one_place_are_runs_of_their_own(tree):
    starts = [f"out/runs/{day}_10-00-00_host/{EVENTS}" for day in ("Nov30", "Dec01")]
    named = [BEGUN + b'{"run_name": "%s"}' % name for name in (b"grpo-7b", b"grpo-32b")]
    assert sorted(tree(dict(zip(starts, named, strict=True)))) == [
        "grpo-32b",
        "grpo-7b",
    ]


def test_programs_that_were_started_in_one_place_are_runs_of_their_own(tree):
    starts = [f"runs/{day}_10-00-00_host/{EVENTS}" for day in ("Nov30", "Dec01")]
    assert sorted(tree(dict.fromkeys(starts, BEGUN)).values()) == [
        [start] for start in sorted(starts)
    ]


def test_hyperparameters_that_torch_puts_in_a_folder_of_their_own_are_part_of_the_run(
    tree, tmp_path
):
    files = {EVENTS: BEGUN, f"1700000001.123/{EVENTS}": BEGUN}
    assert tree(files) == {tmp_path.name: sorted(files)}


def test_halves_of_a_slurm_log_are_one_run(tree):
    files = {
        "job-1.out": CONSOLE,
        "job-1.err": "nothing special\n",
        "job-2.out": CONSOLE,
        "job-2.err": CONSOLE,
    }
    assert tree(files) == {
        "job-1": ["job-1.err", "job-1.out"],
        "job-2": ["job-2.err", "job-2.out"],
    }


def test_a_slurm_log_named_by_one_half_or_both(tmp_path):
    for name in ("job.out", "job.err"):
        (tmp_path / name).write_text(CONSOLE)
    for specs in (["job.out"], ["job.err"], ["job.err", "job.out"], ["job.*"]):
        runs = Finder([str(tmp_path / spec) for spec in specs]).scan().runs
        assert [
            (run.name, sorted(file.path.name for file in run.files)) for run in runs
        ] == [("job", ["job.err", "job.out"])]


def wandb(id_, time, *, resumed=0, name=""):
    return f"wandb/run-20260101_00000{resumed}-{id_}/run-{id_}.wandb", (
        kept(name),
        time,
    )


def test_a_wandb_run_that_was_resumed_is_one_run(tree):
    first = wandb("abc", 5000)
    second = wandb("abc", 9000, resumed=7)
    assert list(tree(dict([first, second, wandb("def", 1)])).values()) == [
        [first[0], second[0]],
        [wandb("def", 1)[0]],
    ]


def test_wandb_runs_go_to_the_log_that_is_called_as_they_are(tree):
    files = dict(
        [
            wandb("abc", 5000, name="large"),
            wandb("def", 5001, name="./out/small"),
            wandb("ghi", 5002, name="other"),
        ],
        **{"proj/small.jsonl": METRICS, "proj/large.jsonl": METRICS},
    )
    assert sorted(tree(files).values()) == [
        ["proj/large.jsonl", wandb("abc", 0)[0]],
        ["proj/small.jsonl", wandb("def", 0)[0]],
        [wandb("ghi", 0)[0]],
    ]


def test_runs_that_only_wandb_has_are_called_as_they_are_there(tree, tmp_path):
    runs = [
        wandb("abc", 1, name="out/base"),
        wandb("def", 2, name="base"),
        wandb("ghi", 3, name="large"),
        wandb("j", 4),
    ]
    assert sorted(tree(dict(runs))) == [
        "base (abc)",
        "base (def)",
        "large",
        tmp_path.name,
    ]


def test_a_training_that_was_resumed_under_another_wandb_id_is_one_run(tree, tmp_path):
    files = {
        "proj/exp.jsonl": METRICS,
        f"tensorboard_log/proj/exp/{EVENTS}": BEGUN,
        **dict([wandb("abc", 5000, name="exp"), wandb("def", 5001, name="exp")]),
    }
    assert tree(files) == {tmp_path.name: sorted(files)}


def test_a_wandb_run_that_has_not_said_its_name_waits_beside_logs_that_it_may_belong_to(
    tree,
):
    young = "wandb/run-20260101_000009-ghi/run-ghi.wandb"
    logs = {"a.log": CONSOLE, "b.log": CONSOLE}
    assert tree({young: kept()[:8], **logs}) == {"a": ["a.log"], "b": ["b.log"]}


def test_settings_of_a_wandb_run_are_of_no_other(tree):
    files = dict([wandb("abc", 5000)])
    assert list(
        tree(
            {
                **files,
                "wandb/run-20260101_000009-ghi/files/config.yaml": "a: {value: 1}\n",
            }
        ).values()
    ) == [[wandb("abc", 0)[0]]]


def test_a_wandb_run_that_was_copied_through_the_link_to_the_newest_one_is_one_run(
    tree,
):
    files = {
        "latest-run/run-abc.wandb": kept("letters"),
        "latest-run/files/output.log": CONSOLE,
        "latest-run/logs/debug-internal.log": CONSOLE,
    }
    assert list(tree(files).values()) == [
        ["latest-run/files/output.log", "latest-run/run-abc.wandb"]
    ]


def test_the_directory_of_a_wandb_run_may_have_another_name(tree):
    files = {
        "exp1/run-abc.wandb": kept("letters"),
        "exp1/files/output.log": CONSOLE,
        "exp1/logs/debug-internal.log": CONSOLE,
        "exp2/run-def.wandb": kept("letters"),
        "exp2/files/output.log": CONSOLE,
    }
    assert list(tree(files).values()) == [
        ["exp1/files/output.log", "exp1/run-abc.wandb"],
        ["exp2/files/output.log", "exp2/run-def.wandb"],
    ]


def test_a_tree_without_end_is_left_after_many_directories(tmp_path, monkeypatch):
    monkeypatch.setattr("verl_tui.sources.discovery.directory_walk.MOST_DIRECTORIES", 5)
    for n in range(9):
        (tmp_path / str(n)).mkdir()
    assert "more than 5 directories" in Finder([str(tmp_path)]).scan().problems[0]


def test_a_number_makes_no_name_that_another_run_has(tree):
    files = {f"{name}/train.log": CONSOLE for name in ("a", "a ", "a (2)")}
    found = tree(files)
    assert sorted(found) == ["a", "a (2)", "a (3)"]
    assert sorted(found.values()) == sorted([name] for name in files)
