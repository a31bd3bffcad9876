"""Numbers of any size, in every place where a log has one: nothing breaks, and no other line is
lost.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from file_writing import write_file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_reading import NOW, read_run, values

from verl_tui.check.data import report
from verl_tui.check.note import note_text
from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.sources.discovery.finder import Finder

DATA = Path(__file__).parents[1] / "data"
DOCUMENTS = {
    **{
        name: (DATA / name).read_text()
        for name in ("filelogger_v06.jsonl", "filelogger_v07.jsonl", "tutorial.jsonl")
    },
    **{
        name: (DATA / name).read_text()
        for name in ("console_v04.log", "console_v09.log", "console_sft.log")
    },
    "7.jsonl": (DATA / "rollout_v1.jsonl").read_text(),
    "bars.log": "step:1 - a:1\nTraining Progress:  1%|x | 1/9 [1:00:01<00:02]\nTotal training steps: 9\n"
    "epoch 0, step 1\nSetting global step to 3\nlocal_global_step_folder: /x/global_step_4\n"
    "Saving model checkpoint to /x/checkpoint-4\n",
    "dicts.log": "{'logging_steps': 1}\n  0%|x | 1/9 [1:00:01<00:02]\n{'loss': 0.5, 'grad_norm': 1.0, 'epoch': 0.1}\n"
    "  0%|x | 2/9 [1:00:02<00:02]\nGlobal step 2: {'policy_loss': 1}\nrollout 3: {'rollout/reward': 1.5}\n"
    "{'loss': 0.5, 'grad_norm': 1.0, 'epoch': 0.2}\n{'train_runtime': 9.5, 'train_loss': 0.5, 'epoch': 1.0}\n",
    "progress.csv": "step,reward,epoch\n1,0.5,0\n2,0.75,0\n3,1,1\n",
    "trainer_state.json": '{"global_step": 2, "max_steps": 9, "num_train_epochs": 3, '
    '"best_model_checkpoint": "checkpoint-1", "log_history": [{"step": 1, "loss": 0.5, "epoch": 0.25}, '
    '{"step": 2, "loss": 0.25, "eval_loss": 1}]}',
    "samples.jsonl": '{"input": "q", "output": "a", "score": 1, "acc": 0.5, "step": 3, "uid": 7, "n": [1, 2]}\n',
    ".hydra/config.yaml": "trainer: {total_training_steps: 9, test_freq: 5, total_epochs: 2}\n"
    "data: {sizes: [1, 2], 3: x}\ndata.train_batch_size: 8\n"
    "actor_rollout_ref: {rollout: {n: 5}, actor: {optim: {lr: 0.1}}}\n",
    ".hydra/overrides.yaml": "- trainer.total_training_steps=9\n- data.sizes=[1, 2]\n",
}
"""By the name of a file: what a program may write into it."""
PLACE = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
NUMBERS = st.one_of(
    st.integers(1, 5000).map(lambda digits: "9" * digits),
    st.integers(1, 5000).map(lambda digits: "-1" + "0" * digits),
    st.sampled_from(
        [
            "1e999",
            "-1e999",
            "1e-999",
            "0",
            "-1",
            "0.5",
            "1e18",
            str(2**63),
            str(-(2**63)),
            str(2**64),
        ]
    ),
)


def look(directory: Path, name: str, text: str) -> None:
    """Have everything read a run with such a file, and everything said of it be written."""
    path = log = directory / name
    write_file(log, text)
    if name.startswith("."):
        path = write_file(directory / "train.log", DOCUMENTS["bars.log"])
    assert Finder([str(directory)]).scan().problems == ()
    monitor = load([str(path)], Config(targets={"reward": 1.0}), NOW)
    (run,) = monitor.runs.values()
    assert [
        source.status.problem
        for source in run.sources.values()
        if source.status.problem
    ] == []
    assert str(log) in run.paths or name == "7.jsonl"
    found = report(monitor, NOW)
    json.dumps(found, allow_nan=False)
    note_text(found, monitor, NOW)
    assert all(run.series(key) for key in run.keys)


@given(st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_number_anywhere(tmp_path_factory, data):
    name = data.draw(st.sampled_from(sorted(DOCUMENTS)))
    text = DOCUMENTS[name]
    chosen = data.draw(
        st.dictionaries(
            st.integers(0, len(PLACE.findall(text)) - 1),
            NUMBERS,
            min_size=1,
            max_size=4,
        )
    )
    places = iter(range(text.count("")))
    look(
        tmp_path_factory.mktemp("any"),
        name,
        PLACE.sub(lambda found: chosen.get(next(places), found[0]), text),
    )


@pytest.mark.parametrize("digits", [19, 25, 400, 5000])
def test_whole_numbers_of_any_length(tmp_path, digits):
    huge, value = "9" * digits, float("9" * digits)
    lines = {
        "log.jsonl": '{"step":1,"data":{"a":%s}}\n{"step":2,"data":{"a":2}}\n{"step":%s,"data":{"a":3}}\n',
        "verl_logs.jsonl": '{"scope":"x","step":1,"a":%s}\n{"step":2,"x/a":2}\n{"step":%s,"x/a":3}\n',
        "m.csv": "step,x/a\n1,%s\n2,2\n%s,3\n",
        "trainer_state.json": '{"log_history":[{"step":1,"a":%s},{"step":2,"a":2},{"step":%s,"a":3}],"global_step":2}',
        "train.log": "step:1 - a:%s\nTotal training steps: %s\nstep:2 - a:2\n",
        "bars.log": "step:1 - a:%s\nTraining Progress:  1%%|x | 1/%s [\nstep:2 - a:2\n",
    }
    for name, text in lines.items():
        path = write_file(tmp_path / name, text % (huge, huge))
        run = read_run(path)
        assert len(run.keys) == 1, name
        (key,) = run.keys
        assert values(run, key) == {1: value, 2: 2.0}, name
        assert (run.total_steps, run.unreadable) == (
            None,
            0 if path.suffix == ".log" else 1,
        ), name
