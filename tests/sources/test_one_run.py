"""A training's directory is one run with a name that says something, and its checkpoints are found."""

from __future__ import annotations

import pytest
from log_reading import MADE, read_runs, values

from verl_tui.sources.discovery import naming
from verl_tui.sources.discovery.finder import Finder

CONSOLE = "(TaskRunner pid=1) step:1 - a:1\n"
METRICS = '{"step":1,"data":{"a":1}}\n'
EVENTS = "events.out.tfevents.1700000000.host.1.0"
BEGUN = bytes.fromhex("4800000000000000fe92489d")


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
    ("names", "expected"),
    [
        (["train.log", "out/checkpoint-1/", "out/checkpoint-20/"], [[1, 20]]),
        (["train.log", "out/v0-20261122-104659/checkpoint-1/"], [[1]]),
        (["train.log", "a/b/c/global_step_1/"], [[1]]),
        (["train.log", "checkpoints/project/experiment/global_step_1/"], [[1]]),
        (["logs/train.log", "checkpoints/global_step_1/"], [[1]]),
        (["logs/train.log", "out/checkpoint-1/"], [[1]]),
        (["proj/exp.jsonl", "checkpoints/proj/exp/global_step_1/"], [[1]]),
        # of several runs each has those that are called like it, or lie in its directory
        (
            ["proj/large.jsonl", "proj/small.jsonl", "checkpoints/proj/small/global_step_1/",
             "checkpoints/proj/large/global_step_2/"],
            [[2], [1]],
        ),
        (["run_1/train.log", "run_1/out/checkpoint-1/", "run_2/train.log", "run_2/out/checkpoint-2/"], [[1], [2]]),
    ],
)  # fmt: skip
def test_checkpoints_are_found_from_the_directory_of_the_run(tree, names, expected):
    top = tree({name: METRICS if name.endswith("jsonl") else CONSOLE for name in names})
    runs = sorted(read_runs(top).items())
    assert [sorted(run.checkpoints) for _, run in runs] == expected


# -- directories that trainers made ----------------------------------------------------------------

CALLED = {
    "t014_log1": "tiny-old", "t019_resume": "tiny-old", "verl061_defaults": "letters", "verl061_healthy": "letters",
    "verl061_resume": "letters", "verl061_startfail_ray": "letters", "verl091_raise": "letters",
    **{
        name: name
        for name in ("lf93_ppo", "lf_dpo", "lf_dpo_raise", "lf_kto", "swift_log1", "swift_raise", "swift_resume",
                     "t116_rloo_raise")
    },
}  # fmt: skip
"""What some directories are called by themselves."""


@pytest.mark.skipif(not MADE.is_dir(), reason=f"no runs of real trainers in {MADE}")
def test_each_directory_that_a_trainer_made_is_one_run():
    for folder, name in CALLED.items():
        discovery = Finder([str(MADE / folder)]).scan()
        assert [run.name for run in discovery.runs] == [name], folder
        said = (discovery.problems, discovery.waiting, discovery.passed)
        assert said == ((), (), ()), folder
    together = Finder([str(MADE)]).scan()
    homes = [run.directory for run in together.runs if run.directory != MADE]
    found = {home.relative_to(MADE).parts[0] for home in homes}
    assert found >= CALLED.keys()
    assert len(found) == len(together.runs) == len({run.name for run in together.runs})
    assert together.passed == ()


# -- starts of ms-swift ----------------------------------------------------------------------------


def version(number, steps, came_from=None):
    """Return what a start of ms-swift leaves."""
    home = "out/v{0}-20261122-18{0:02}00".format
    came = "null" if came_from is None else f'"/home/me/{home(came_from)}/checkpoint-2"'
    row = '{{"loss": {0}.5, "global_step/max_steps": "{0}/9"}}\n'
    return {
        f"{home(number)}/logging.jsonl": "".join(map(row.format, steps)),
        f"{home(number)}/runs/{EVENTS}{number}": BEGUN,
        f"{home(number)}/args.json": f'{{"resume_from_checkpoint": {came}, "seed": {number}}}',
    }


def test_starts_that_go_on_from_each_other_are_one_run(tree):
    first, second = version(0, range(1, 4)), version(1, range(3, 6), 0)
    top = tree({**first, **second, **version(10, range(5, 10), 1)})
    for named in (top, top / "out"):
        (run,) = read_runs(named).values()
        assert values(run, "loss") == {step: step + 0.5 for step in range(1, 10)}
        assert run.step == 9
