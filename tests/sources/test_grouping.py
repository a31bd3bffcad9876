"""Which files are one run, in the layouts that trainings leave behind."""

from __future__ import annotations

import struct
import zlib

import pytest
from log_reading import read_run, read_runs, values

from verl_tui.sources.discovery.finder import Finder

CONSOLE = b"(TaskRunner pid=1) step:1 - a:1\n"
METRICS = b'{"step":1,"data":{"a":1}}\n'
STATE = b'{"best_model_checkpoint": null, "global_step": 1, "log_history": [{"loss": 1, "step": 1}]}'
NAMED = "events.out.tfevents.1700000000.host.1.0"
BEGUN = bytes.fromhex("4800000000000000fe92489d")
"""The header of an events file's first record."""
EXP, SMALL, LARGE = (f"tensorboard_log/proj/{one}/{NAMED}" for one in ("exp", "small", "large"))  # fmt: skip
STARTS = [f"out/runs/{day}_10-00-00_host/{NAMED}" for day in ("Dec01", "Nov30")]


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


def called(name):
    """Return a log of TensorBoard that states a name."""
    return BEGUN + b'{"run_name": "%s"}' % name


def wandb(id_, resumed=0):
    return f"wandb/run-20260101_00000{resumed}-{id_}/run-{id_}.wandb"


ABC, DEF, GHI = map(wandb, ("abc", "def", "ghi"))
COPY = ("run-{}.wandb", "files/output.log", "logs/debug-internal.log")


def copy(directory, id_):
    """Return what W&B keeps of a run, copied to a directory."""
    contents = (kept("letters"), CONSOLE, CONSOLE)
    return {
        f"{directory}/{name.format(id_)}": content
        for name, content in zip(COPY, contents, strict=True)
    }


@pytest.fixture
def tree(tmp_path):
    """Make files from a mapping of paths to contents; return the runs that they are."""

    def make(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return {
            run.name: sorted(str(file.path.relative_to(tmp_path)) for file in run.files)
            for run in Finder([str(tmp_path)]).scan().runs
        }

    return make


ONE = {
    "all that verl writes": {
        "train.log": CONSOLE,
        "proj/exp.jsonl": METRICS,
        EXP: BEGUN,
        "wandb/offline-run-20260101_000000-abc/run-abc.wandb": kept(),
        "outputs/2026-01-01/00-00-00/.hydra/overrides.yaml": b"- a=1\n",
    },
    "starts of a Hugging Face trainer": {
        "train.log": CONSOLE,
        "out/trainer_state.json": STATE,
        **dict.fromkeys(STARTS, BEGUN),
    },
    "starts that state one name": {
        "train.log": CONSOLE,
        **dict.fromkeys(STARTS, called(b"grpo-7b")),
    },
    "hyperparameters that torch puts in a folder": {
        NAMED: BEGUN,
        f"1700000001.123/{NAMED}": BEGUN,
    },
    "resumed under another W&B id": {
        "proj/exp.jsonl": METRICS,
        EXP: BEGUN,
        ABC: kept("exp"),
        DEF: kept("exp"),
    },
}


@pytest.mark.parametrize("files", ONE.values(), ids=ONE)
def test_files_of_one_training_are_one_run(tree, files):
    assert list(tree(files).values()) == [sorted(files)]


SEVERAL = {
    "an experiment whose log alone names it": (
        {"proj/small.jsonl": METRICS, SMALL: BEGUN, LARGE: BEGUN},
        [["proj/small.jsonl", SMALL], [LARGE]],
    ),
    "starts of other names in one place": (
        dict(zip(STARTS, map(called, (b"grpo-7b", b"grpo-32b")), strict=True)),
        [[one] for one in STARTS],
    ),
    "programs started in one place": (
        dict.fromkeys(STARTS, BEGUN),
        [[one] for one in STARTS],
    ),
    "halves of Slurm's logs": (
        {"a.out": CONSOLE, "a.err": b"nothing\n", "b.out": CONSOLE, "b.err": CONSOLE},
        [["a.err", "a.out"], ["b.err", "b.out"]],
    ),
    "a W&B run that was resumed": (
        dict.fromkeys((ABC, wandb("abc", 7), DEF), kept()),
        [[ABC, wandb("abc", 7)], [DEF]],
    ),
    "W&B runs that are called as logs are": (
        {
            ABC: kept("large"),
            DEF: kept("./out/small"),
            GHI: kept("other"),
            "proj/small.jsonl": METRICS,
            "proj/large.jsonl": METRICS,
        },
        [["proj/large.jsonl", ABC], ["proj/small.jsonl", DEF], [GHI]],
    ),
    "one that has not said its name": (
        {GHI: kept()[:8], "a.log": CONSOLE, "b.log": CONSOLE},
        [["a.log"], ["b.log"]],
    ),
    "settings of one of W&B's runs": (
        {
            ABC: kept(),
            "wandb/run-20260101_000009-ghi/files/config.yaml": b"a: {value: 1}\n",
        },
        [[ABC]],
    ),
    "copies of consoles that no log names": (
        {
            "a.log": CONSOLE,
            "b.log": CONSOLE,
            f"{ABC.rpartition('/')[0]}/files/output.log": CONSOLE,
            f"{DEF.rpartition('/')[0]}/files/output.log": CONSOLE,
        },
        [
            ["a.log"],
            ["b.log"],
            [f"{ABC.rpartition('/')[0]}/files/output.log"],
            [f"{DEF.rpartition('/')[0]}/files/output.log"],
        ],
    ),
    "the newest one's copy": (
        copy("latest-run", "abc"),
        [["latest-run/files/output.log", "latest-run/run-abc.wandb"]],
    ),
    "copies in directories of other names": (
        {**copy("exp1", "abc"), **copy("exp2", "def")},
        [
            ["exp1/files/output.log", "exp1/run-abc.wandb"],
            ["exp2/files/output.log", "exp2/run-def.wandb"],
        ],
    ),
}


@pytest.mark.parametrize(("files", "runs"), SEVERAL.values(), ids=SEVERAL)
def test_which_files_are_a_run(tree, files, runs):
    assert sorted(tree(files).values()) == sorted(runs)


def test_event_files_of_several_starts_are_one_log(tree, tmp_path):
    tree(ONE["starts of a Hugging Face trainer"])
    (run,) = read_runs(tmp_path).values()
    states = [state for path, state in run.sources.items() if path.endswith(NAMED)]
    assert len(states) == 2
    assert len({state.status.ordinal for state in states}) == 1, (
        "of two values for one step that written later holds, whatever the folder is called"
    )


def test_a_slurm_log_named_by_one_half_or_both(tmp_path):
    for name in ("job.out", "job.err"):
        (tmp_path / name).write_bytes(CONSOLE)
    for specs in (["job.out"], ["job.err"], ["job.err", "job.out"], ["job.*"]):
        runs = Finder([str(tmp_path / spec) for spec in specs]).scan().runs
        assert [
            (run.name, sorted(file.path.name for file in run.files)) for run in runs
        ] == [("job", ["job.err", "job.out"])]


def test_runs_that_only_wandb_has_are_called_as_they_are_there(tree, tmp_path):
    names = {ABC: "out/base", DEF: "base", GHI: "large", wandb("j"): ""}
    assert sorted(tree({path: kept(name) for path, name in names.items()})) == [
        "base (abc)",
        "base (def)",
        "large",
        tmp_path.name,
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


def test_the_parts_of_a_rotated_log_are_one_run(tree, tmp_path):
    tree(
        {
            name: "".join(
                f"step:{step} - actor/pg_loss:{step} - a/b:1 - c/d:1 - e/f:1 - g/h:1\n"
                for step in steps
            ).encode()
            for name, steps in {
                "train.log.2": range(1, 4),
                "train.log.1": range(4, 7),
                "train.log": range(7, 9),
            }.items()
        }
    )
    run = read_run(tmp_path)
    assert values(run, "actor/pg_loss") == {step: step for step in range(1, 9)}
    assert (run.step, list(run.restarts)) == (8, [])
