"""A training's directory is one run with a name that says something; its checkpoints are found,
links make no run.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from log_reading import read_runs, values

from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.finder import Finder

CONSOLE = "(TaskRunner pid=1) step:1 - a:1\n"
METRICS = '{"step":1,"data":{"a":1}}\n'
STATE = '{"best_model_checkpoint": null, "global_step": 1, "log_history": [{"loss": 1, "step": 1}]}'
EVENTS = "events.out.tfevents.1700000000.host.1.0"
BEGUN = bytes.fromhex("4800000000000000fe92489d")


@pytest.fixture
def tree(tmp_path):
    """Make files from a mapping of paths to contents; a path that ends with a slash is a
    directory.
    """

    def make(files):
        for name, content in files.items():
            path = tmp_path / name
            if name.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
        return tmp_path

    return make


def runs(*paths):
    return Finder([str(path) for path in paths]).scan().runs


def names(*paths):
    return [run.name for run in runs(*paths)]


def checkpoints(*paths):
    """Return the steps of the checkpoints of each run."""
    return {name: sorted(run.checkpoints) for name, run in read_runs(*paths).items()}


# -- links -----------------------------------------------------------------------------------------


def swift(folder):
    """Return what ms-swift leaves in a folder, but for the link to the last checkpoint."""
    return {
        f"{folder}/logging.jsonl": '{"loss": 1.0, "global_step/max_steps": "1/2"}\n',
        f"{folder}/args.json": "{}",
        f"{folder}/checkpoint-1/trainer_state.json": STATE,
        f"{folder}/checkpoint-2/trainer_state.json": STATE,
        f"{folder}/runs/{EVENTS}": BEGUN,
    }


def test_the_directory_of_ms_swift_is_one_run_whatever_links_lead_into_it(tree):
    top = tree({"train.log": CONSOLE, **swift("out/v0-20261122-104659")})
    folder = top / "out" / "v0-20261122-104659"
    (folder / "last-checkpoint").symlink_to(folder / "checkpoint-2")
    (top / "out" / "latest").symlink_to(folder)
    (top / "latest.log").symlink_to(top / "train.log")
    (folder / "round").symlink_to(top)
    for path in (top, top / "out", folder):
        assert len(runs(path)) == 1, path
        assert [sorted(run.checkpoints) for run in read_runs(path).values()] == [[1, 2]]


# -- ranks -----------------------------------------------------------------------------------------

RAY = "session_2026-11-22_10-00-00_123456_7/logs"
WORKER = "worker-" + "ab" * 28


@pytest.mark.parametrize(
    "files",
    [
        ["rank0.log", "rank1.log", "rank2.log"],
        ["logs/rank_0.log", "logs/rank_1.log"],
        ["train.rank0.out", "train.rank1.out"],
        ["rank_0/train.log", "rank_1/train.log"],
        ["logs/attempt_1/orchestrator.log", "logs/attempt_1/trainer.log"],
        ["orchestrator.log", "trainer.log"],
        ["logs/orchestrator.log", "logs/trainer/rank_0.log"],
        [
            "x_1/attempt_0/0/stdout.log",
            "x_1/attempt_0/1/stdout.log",
            "x_1/attempt_0/0/stderr.log",
        ],
        [
            f"{RAY}/{WORKER}-01000000-11.out",
            f"{RAY}/{WORKER}-01000000-12.out",
            f"{RAY}/{WORKER}-01000000-11.err",
        ],
    ],
)
def test_the_logs_of_several_ranks_are_one_run(tree, files):
    top = tree(dict.fromkeys(files, CONSOLE))
    (run,) = runs(top)
    assert sorted(str(file.path.relative_to(top)) for file in run.files) == sorted(
        files
    )


def test_what_ray_writes_of_itself_is_no_log(tree):
    top = tree(
        {
            f"{RAY}/{WORKER}-01000000-11.out": CONSOLE,
            f"{RAY}/raylet.out": "(raylet) verl.trainer\n",
            f"{RAY}/gcs_server.out": "x\n",
            f"{RAY}/dashboard.log": "x\n",
        }
    )
    discovery = Finder([str(top)]).scan()
    assert [[file.path.name for file in run.files] for run in discovery.runs] == [
        [f"{WORKER}-01000000-11.out"]
    ]
    assert discovery.passed == ()


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"trainer:\n  project_name: p\n  experiment_name: qwen-7b\n",
        b"- trainer.project_name=p\n- trainer.experiment_name=qwen-7b\n",
        b"{'trainer': {'experiment_name': 'qwen-7b', 'x': 1}}",
        b'{"run_name": "out/qwen-7b", "x": null}',
        b"GRPOConfig(\nrun_name=out/qwen-7b,\nsave=1)",
        b"python train.py --run_name qwen-7b --lr 1",
        b"run_name:\n  desc: null\n  value: qwen-7b\n",
        b"experiment_name: null\nrun_name: qwen-7b\n",
        b"experiment_name: ${name}\nexp_name: 'qwen-7b'\n",
        b"usage: rl.py [--run_name RUN_NAME]\npython rl.py --run_name qwen-7b\n",
        b"['trainer.experiment_name=qwen-7b', 'trainer.nnodes=1']",
        b'python rl.py "run_name=qwen-7b"',
    ],
)
def test_what_settings_call_the_experiment(text):
    assert naming.experiment_name(text) == "qwen-7b"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"my_run_name_x=1",
        b"run_name=None",
        b"run_name: ./out/",
        b"run_name='1a2b3c4'",
        b"usage: train.py [-h] [--run_name RUN_NAME] [--lr LR]\n",
        b"  --wandb_run_name WANDB_RUN_NAME\n  --exp_name NAME  of the run\n",
        b"run_name=<your run>",
        b"run_name: your_run_name",
        b"    wandb.init(project=p, run_name=args.run_name)\n",
        b"    run_name=f\"{model}-{seed}\",\n    exp_name='{model}_%d',\n",
        b"experiment_name=os.path.join(root, sub)",
        b"run_name=config['title']",
    ],
)
def test_settings_that_call_it_nothing(text):
    assert naming.experiment_name(text) == ""


# -- checkpoints -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "home"),
    [
        ("train.log", "out/checkpoint-{}"),
        ("train.log", "out/v0-20261122-104659/checkpoint-{}"),
        ("train.log", "a/b/c/global_step_{}"),
        ("train.log", "checkpoints/project/experiment/global_step_{}"),
        ("logs/train.log", "checkpoints/global_step_{}"),
        ("logs/train.log", "out/checkpoint-{}"),
        ("proj/exp.jsonl", "checkpoints/proj/exp/global_step_{}"),
    ],
)
def test_checkpoints_are_found_from_the_directory_of_the_run(tree, log, home):
    top = tree(
        {
            log: METRICS if log.endswith("jsonl") else CONSOLE,
            home.format(1) + "/": "",
            home.format(20) + "/": "",
        }
    )
    assert list(checkpoints(top).values()) == [[1, 20]]


def test_of_several_runs_each_has_the_checkpoints_that_are_called_like_it(tree):
    top = tree(
        {
            "proj/small.jsonl": METRICS,
            "proj/large.jsonl": METRICS,
            "checkpoints/proj/small/global_step_1/": "",
            "checkpoints/proj/large/global_step_2/": "",
        }
    )
    assert checkpoints(top) == {"small": [1], "large": [2]}


def test_runs_in_directories_of_their_own_have_their_own(tree):
    top = tree(
        {
            f"run_{n}/{name}": CONSOLE
            for n in (1, 2)
            for name in ("train.log", f"out/checkpoint-{n}/x.txt")
        }
    )
    assert checkpoints(top) == {"run_1": [1], "run_2": [2]}


# -- directories that trainers made ----------------------------------------------------------------

LOGS = Path(
    os.environ.get("VERL_TUI_LOGS", Path(__file__).parents[3] / "shared" / "logs")
)
MADE = LOGS.parent / "made"
CALLED = {
    "lf93_ppo": "lf93_ppo",
    "lf_dpo": "lf_dpo",
    "lf_dpo_raise": "lf_dpo_raise",
    "lf_kto": "lf_kto",
    "swift_log1": "swift_log1",
    "swift_raise": "swift_raise",
    "swift_resume": "swift_resume",
    "t014_log1": "tiny-old",
    "t019_resume": "tiny-old",
    "t116_rloo_raise": "t116_rloo_raise",
    "verl061_defaults": "letters",
    "verl061_healthy": "letters",
    "verl061_resume": "letters",
    "verl061_startfail_ray": "letters",
    "verl091_raise": "letters",
}
"""What some directories are called by themselves."""


@pytest.mark.skipif(not MADE.is_dir(), reason=f"no runs of real trainers in {MADE}")
def test_each_directory_that_a_trainer_made_is_one_run():
    for folder, name in CALLED.items():
        discovery = Finder([str(MADE / folder)]).scan()
        assert [run.name for run in discovery.runs] == [name], folder
        assert (discovery.problems, discovery.waiting, discovery.passed) == (
            (),
            (),
            (),
        ), folder
    together = Finder([str(MADE)]).scan()
    found = {
        run.directory.relative_to(MADE).parts[0]
        for run in together.runs
        if run.directory != MADE
    }
    assert found >= CALLED.keys()
    assert len(found) == len(together.runs) == len({run.name for run in together.runs})
    assert together.passed == ()


# -- starts of ms-swift ----------------------------------------------------------------------------


def version(number, steps, came_from=None):
    """Return what a start of ms-swift leaves."""
    folder = f"out/v{number}-20261122-18{number:02}00"
    rows = [
        f'{{"loss": {step}.5, "global_step/max_steps": "{step}/9"}}\n' for step in steps
    ]
    stated = (
        "null"
        if came_from is None
        else f'"/home/me/out/v{came_from}-20261122-18{came_from:02}00/checkpoint-2"'
    )
    return {
        f"{folder}/logging.jsonl": "".join(rows),
        f"{folder}/runs/{EVENTS}{number}": BEGUN,
        f"{folder}/args.json": f'{{"resume_from_checkpoint": {stated}, "seed": {number}}}',
    }


def test_starts_that_go_on_from_each_other_are_one_run(tree):
    top = tree(
        {
            **version(0, range(1, 4)),
            **version(1, range(3, 6), 0),
            **version(10, range(5, 10), 1),
        }
    )
    for named in (top, top / "out"):
        (run,) = read_runs(named).values()
        assert values(run, "loss") == {step: step + 0.5 for step in range(1, 10)}
        assert run.step == 9
