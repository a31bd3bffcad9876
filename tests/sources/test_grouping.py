"""Which files are one run, in the layouts that trainings leave behind, and what it is called."""

from __future__ import annotations

import struct
import zlib

import pytest
from log_reading import read_run, read_runs, values
from wandb_starts import kept as kept_start
from wandb_starts import log, place, starts

from verl_tui.sources.discovery.finder import Finder

CONSOLE = "(TaskRunner pid=1) step:1 - a:1\n"
METRICS = '{"step":1,"data":{"a":1}}\n'
TUTORIAL = '{"scope":"ppo","step":1,"policy_loss":-0.1}\n'
SAMPLE = '{"input":"q","output":"a","score":1}\n'
STATE = '{"best_model_checkpoint": null, "global_step": 1, "log_history": [{"loss": 1, "step": 1}]}'
NAMED = "events.out.tfevents.1700000000.host.1.0"
BEGUN = bytes.fromhex("4800000000000000fe92489d")
"""The header of an events file's first record."""
EXP, SMALL, LARGE = (f"tensorboard_log/proj/{one}/{NAMED}" for one in ("exp", "small", "large"))  # fmt: skip
STARTS = [f"out/runs/{day}_10-00-00_host/{NAMED}" for day in ("Dec01", "Nov30")]


def kept(name=""):
    """Return the beginning of a W&B log: its header, and a record that says what the run is
    called.
    """
    said = b"\x42" + bytes([len(name)]) + name.encode() if name else b""
    run = b"\x0a\x03abc" + said
    body = b"\x01\x8a\x01" + bytes([len(run)]) + run
    return b":W&B\xe1\xbe\0" + struct.pack("<IH", zlib.crc32(body), len(body) - 1) + body  # fmt: skip


def called(name):
    """Return a log of TensorBoard that states a name."""
    return BEGUN + b'{"run_name": "%s"}' % name


def wandb(id_, resumed=0):
    return f"wandb/run-20260101_00000{resumed}-{id_}/run-{id_}.wandb"


def copy(directory, id_):
    """Return what W&B keeps of a run, copied to a directory."""
    log, debug = f"{directory}/run-{id_}.wandb", f"{directory}/logs/debug-internal.log"
    return {log: kept("letters"), f"{directory}/files/output.log": CONSOLE, debug: CONSOLE}  # fmt: skip


def grouped(top):
    """Return the runs below a directory, with the paths of their files."""
    return {
        run.name: sorted(str(file.path.relative_to(top)) for file in run.files)
        for run in Finder([str(top)]).scan().runs
    }


ABC, DEF, GHI = map(wandb, ("abc", "def", "ghi"))
OUTPUTS = [f"{one.rpartition('/')[0]}/files/output.log" for one in (ABC, DEF)]
RAY = "session_2026-11-22_10-00-00_123456_7/logs"
WORKER = f"{RAY}/worker-" + "ab" * 28
RESUMED = {
    "train.log": starts("abc", 0, range(1, 7)) + starts("def", 1, range(5, 11), 0.5),
    **kept_start("abc", 0, range(1, 7)),
    **kept_start("def", 1, range(5, 11), 0.5),
}
SWEEP = ("abc", "def", "ghi")
ONE = {
    "all that verl writes": {
        "train.log": CONSOLE, "proj/exp.jsonl": METRICS, EXP: BEGUN,
        "wandb/offline-run-20260101_000000-abc/run-abc.wandb": kept(),
        "outputs/2026-01-01/00-00-00/.hydra/overrides.yaml": "- a=1\n",
    },
    "starts of a Hugging Face trainer": {
        "train.log": CONSOLE, "out/trainer_state.json": STATE, **dict.fromkeys(STARTS, BEGUN)
    },
    "starts that state one name": {"train.log": CONSOLE, **dict.fromkeys(STARTS, called(b"grpo-7b"))},
    "hyperparameters that torch puts in a folder": {NAMED: BEGUN, f"1700000001.123/{NAMED}": BEGUN},
    "resumed under another W&B id": {"proj/exp.jsonl": METRICS, EXP: BEGUN, ABC: kept("exp"), DEF: kept("exp")},
    # several ranks
    **{
        f"ranks: {names.split()[0]}": dict.fromkeys(names.split(), CONSOLE)
        for names in (
            "rank0.log rank1.log rank2.log",
            "logs/rank_0.log logs/rank_1.log",
            "train.rank0.out train.rank1.out",
            "rank_0/train.log rank_1/train.log",
            "logs/attempt_1/orchestrator.log logs/attempt_1/trainer.log",
            "orchestrator.log trainer.log",
            "logs/orchestrator.log logs/trainer/rank_0.log",
            "x_1/attempt_0/0/stdout.log x_1/attempt_0/1/stdout.log x_1/attempt_0/0/stderr.log",
            f"{WORKER}-01000000-11.out {WORKER}-01000000-12.out {WORKER}-01000000-11.err",
        )
    },
    # a training that was killed and resumed, wherever console and W&B's runs lie
    **{
        f"resumed: {console} {kept_at}": {
            (kept_at if name.startswith("wandb") else console) + name: data for name, data in RESUMED.items()
        }
        for console, kept_at in (("", ""), ("logs/", ""), ("", "out/"), ("logs/", "out/"))
    },
    "a start that failed before its first step": {
        "train.log": starts("abc", 0, range(1, 7)) + starts("ghi", 1, range(0)) + starts("def", 2, range(5, 11)),
        **kept_start("abc", 0, range(1, 7)), **kept_start("ghi", 1, range(0)), **kept_start("def", 2, range(5, 11)),
    },
}  # fmt: skip


@pytest.mark.parametrize("files", ONE.values(), ids=ONE)
def test_files_of_one_training_are_one_run(tree, files):
    assert [*grouped(tree(files)).values()] == [sorted(files)]


SEVERAL = {
    "runs in directories": (
        {"run_1/train.log": CONSOLE, "run_2/verl_logs.jsonl": TUTORIAL, "run_3/a/exp.jsonl": METRICS},
        [["run_1/train.log"], ["run_2/verl_logs.jsonl"], ["run_3/a/exp.jsonl"]],
    ),
    "the console that W&B kept is no second run": (
        {"train.log": CONSOLE, "wandb/run-20260101_000000-abc/files/output.log": CONSOLE}, [["train.log"]]
    ),
    "dumps alone are a run": (
        {"rollouts/3.jsonl": SAMPLE, "rollouts/4.jsonl": "", "rollouts/notes.txt": "nothing"}, [["rollouts"]]
    ),
    "what Ray writes of itself is no log": (
        {
            f"{WORKER}-01000000-11.out": CONSOLE, f"{RAY}/raylet.out": "(raylet) verl.trainer\n",
            f"{RAY}/gcs_server.out": "x\n", f"{RAY}/dashboard.log": "x\n",
        },
        [[f"{WORKER}-01000000-11.out"]],
    ),
    "an experiment whose log alone names it": (
        {"proj/small.jsonl": METRICS, SMALL: BEGUN, LARGE: BEGUN}, [["proj/small.jsonl", SMALL], [LARGE]]
    ),
    "starts of other names in one place": (
        dict(zip(STARTS, map(called, (b"grpo-7b", b"grpo-32b")), strict=True)), [[one] for one in STARTS]
    ),
    "programs started in one place": (dict.fromkeys(STARTS, BEGUN), [[one] for one in STARTS]),
    "halves of Slurm's logs": (
        {"a.out": CONSOLE, "a.err": "nothing\n", "b.out": CONSOLE, "b.err": CONSOLE},
        [["a.err", "a.out"], ["b.err", "b.out"]],
    ),
    "a W&B run that was resumed": (
        dict.fromkeys((ABC, wandb("abc", 7), DEF), kept()), [[ABC, wandb("abc", 7)], [DEF]]
    ),
    "W&B runs that are called as logs are": (
        {
            ABC: kept("large"), DEF: kept("./out/small"), GHI: kept("other"), "proj/small.jsonl": METRICS,
            "proj/large.jsonl": METRICS,
        },
        [["proj/large.jsonl", ABC], ["proj/small.jsonl", DEF], [GHI]],
    ),
    "one that has not said its name": (
        {GHI: kept()[:8], "a.log": CONSOLE, "b.log": CONSOLE}, [["a.log"], ["b.log"]]
    ),
    "settings of one of W&B's runs": (
        {ABC: kept(), "wandb/run-20260101_000009-ghi/files/config.yaml": "a: {value: 1}\n"}, [[ABC]]
    ),
    "copies of consoles that no log names": (
        dict.fromkeys(("a.log", "b.log", *OUTPUTS), CONSOLE), [[one] for one in ("a.log", "b.log", *OUTPUTS)]
    ),
    "the newest one's copy": (
        copy("latest-run", "abc"), [["latest-run/files/output.log", "latest-run/run-abc.wandb"]]
    ),
    "copies in directories of other names": (
        {**copy("exp1", "abc"), **copy("exp2", "def")},
        [["exp1/files/output.log", "exp1/run-abc.wandb"], ["exp2/files/output.log", "exp2/run-def.wandb"]],
    ),
    "each of two logs names a W&B run": (
        {
            "a.log": starts("def", 1, range(1, 7)), "b.log": starts("abc", 0, range(1, 9)),
            **kept_start("abc", 0, range(1, 9)), **kept_start("def", 1, range(1, 7)),
        },
        [["a.log", place("def", 1)], ["b.log", place("abc", 0)]],
    ),
    "trainings of several names in one log": (
        {
            "sweep.log": "".join(starts(run, at, range(1, 7)) for at, run in enumerate(SWEEP)),
            **{place(run, at): log(range(1, 7), name=f"lr-{at}") for at, run in enumerate(SWEEP)},
        },
        [["sweep.log"], *([place(run, at)] for at, run in enumerate(SWEEP))],
    ),
    "an old W&B run beside a log that names another": (
        {
            "train.log": starts("new", 1, range(1, 7)), **kept_start("abc", 0, range(1, 9)),
            **kept_start("new", 1, range(0)),
        },
        [["train.log", place("new", 1)], [place("abc", 0)]],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "runs"), SEVERAL.values(), ids=SEVERAL)
def test_which_files_are_a_run(tree, files, runs):
    assert sorted(grouped(tree(files)).values()) == sorted(map(sorted, runs))


def test_a_run_directory_with_everything(tree):
    top = tree(
        {
            "run/train.log": CONSOLE, "run/proj/exp.jsonl": METRICS, "run/rollouts/1.jsonl": SAMPLE,
            "run/rollouts/10.jsonl": SAMPLE, "run/validation/10.jsonl": SAMPLE, "run/config.yaml": "a: 1",
            "run/.hydra/overrides.yaml": "- a=1", "run/checkpoints/global_step_10/x.log": CONSOLE,
            "run/notes.md": "step:1 - a:1",
        }
    )  # fmt: skip
    files = [
        *(".hydra/overrides.yaml", "config.yaml", "proj/exp.jsonl"),
        *("rollouts", "train.log", "validation"),
    ]
    assert grouped(top / "run") == {"run": files}
    assert [*grouped(top)] == [top.name], "a directory that holds one run is that run"


@pytest.mark.parametrize(
    ("specs", "names"),
    [
        (["run_[12]"], ["run_1", "run_2"]),
        (["run_2/rollouts"], ["run_2"]),
        (["run_2/rollouts/3.jsonl"], ["run_2"]),
        (["job.out"], ["job"]),
        (["job.err"], ["job"]),
        (["job.err", "job.out"], ["job"]),
        (["job.*"], ["job"]),
    ],
)
def test_what_runs_are_called_by_the_paths_that_are_given(tree, specs, names):
    top = tree(
        {"run_1/train.log": CONSOLE, "run_2/rollouts/3.jsonl": SAMPLE, "job.out": CONSOLE, "job.err": CONSOLE}
    )  # fmt: skip
    runs = Finder([str(top / spec) for spec in specs]).scan().runs
    assert [run.name for run in runs] == names


def test_event_files_of_several_starts_are_one_log(tree):
    (run,) = read_runs(tree(ONE["starts of a Hugging Face trainer"])).values()
    states = [state for path, state in run.sources.items() if path.endswith(NAMED)]
    assert len(states) == 2
    assert len({state.status.ordinal for state in states}) == 1, (
        "of two values for one step that written later holds, whatever the folder is called"
    )


def test_runs_that_only_wandb_has_are_called_as_they_are_there(tree, tmp_path):
    names = {ABC: "out/base", DEF: "base", GHI: "large", wandb("j"): ""}
    found = grouped(tree({path: kept(name) for path, name in names.items()}))
    assert sorted(found) == ["base (abc)", "base (def)", "large", tmp_path.name]


def test_a_tree_without_end_is_left_after_many_directories(tmp_path, monkeypatch):
    monkeypatch.setattr("verl_tui.sources.discovery.directory_walk.MOST_DIRECTORIES", 5)
    for n in range(9):
        (tmp_path / str(n)).mkdir()
    assert "more than 5 directories" in Finder([str(tmp_path)]).scan().problems[0]


def test_a_number_makes_no_name_that_another_run_has(tree):
    files = {f"{name}/train.log": CONSOLE for name in ("a", "a ", "a (2)")}
    found = grouped(tree(files))
    assert sorted(found) == ["a", "a (2)", "a (3)"]
    assert sorted(found.values()) == sorted([name] for name in files)


def test_the_parts_of_a_rotated_log_are_one_run(tree):
    step = "step:{0} - actor/pg_loss:{0} - a/b:1 - c/d:1 - e/f:1 - g/h:1\n"
    parts = {"train.log.2": range(1, 4), "train.log.1": range(4, 7), "train.log": range(7, 9)}  # fmt: skip
    run = read_run(tree({name: "".join(map(step.format, steps)) for name, steps in parts.items()}))  # fmt: skip
    assert values(run, "actor/pg_loss") == {step: step for step in range(1, 9)}
    assert (run.step, list(run.restarts)) == (8, [])


# -- links -----------------------------------------------------------------------------------------


def test_a_link_to_the_latest_run_is_no_second_run(tree):
    top = tree({"run_6/train.log": CONSOLE, "run_7/train.log": CONSOLE})
    (top / "latest").symlink_to(top / "run_7")
    assert [*grouped(top)] == ["run_6", "run_7"]


def test_the_directory_of_ms_swift_is_one_run_whatever_links_lead_into_it(tree):
    home = "out/v0-20261122-104659"
    top = tree(
        {
            "train.log": CONSOLE, f"{home}/args.json": "{}", f"{home}/runs/{NAMED}": BEGUN,
            f"{home}/logging.jsonl": '{"loss": 1.0, "global_step/max_steps": "1/2"}\n',
            f"{home}/checkpoint-1/trainer_state.json": STATE, f"{home}/checkpoint-2/trainer_state.json": STATE,
        }
    )  # fmt: skip
    folder = top / home
    (folder / "last-checkpoint").symlink_to(folder / "checkpoint-2")
    (top / "out" / "latest").symlink_to(folder)
    (top / "latest.log").symlink_to(top / "train.log")
    (folder / "round").symlink_to(top)
    for path in (top, top / "out", folder):
        (run,) = read_runs(path).values()
        assert sorted(run.checkpoints) == [1, 2], path
