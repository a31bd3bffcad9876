"""The live logs of ms-swift and LLaMA-Factory: every record at its step, with total, time and
end.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from log_reading import MADE, notes, read_run, read_text, values

from verl_tui.records import EventKind
from verl_tui.runs.views.state import State, state
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.formats.tutorial import llama_factory, swift

SWIFT = """\
{"loss": 0.5, "kl": 0.1, "epoch": 0.01, "global_step/max_steps": "1/40", "elapsed_time": "2s"}
{"loss": 0.25, "kl": 0.2, "epoch": 0.02, "global_step/max_steps": "2/40", "elapsed_time": "1m 4s"}
{"eval_loss": 0.75, "epoch": 0.02, "global_step/max_steps": "2/40", "elapsed_time": "1m 5s"}
"""
END = '{"train_runtime": 3.5, "train_loss": 0.5, "epoch": 0.02, "global_step/max_steps": "40/40", "elapsed_time": "2m"}\n'
SUMMARY = """\
{"model_parameter_info": "tiny", "best_model_checkpoint": "/out/checkpoint-2", "best_metric": null, "global_step": 2, \
"log_history": [{"loss": 0.5, "step": 1}]}
"""
LAST = """\
{"loss": 0.5, "epoch": 1.0, "train_speed(s/it)": 0.66, "global_step/max_steps": "40/40"}
{"train_loss": 0.4, "epoch": 1.0, "train_speed(s/it)": 0.67, "train_runtime": 26.8, "global_step/max_steps": "40/40"}
"""
FACTORY = """\
{"current_steps": 5, "total_steps": 60, "loss": 0.5, "accuracy": 0.75, "lr": 0.001, "epoch": 0.05, "elapsed_time": "0:00:10"}
{"current_steps": 5, "total_steps": 60, "eval_loss": 0.25, "epoch": 0.05, "percentage": 8.33}
{"current_steps": 10, "total_steps": 60, "loss": 0.25, "accuracy": 1.0, "lr": 0.0005, "epoch": 0.1, "reward": null, "predict_loss": null}
"""


@pytest.mark.parametrize(
    ("text", "format"), [(SWIFT, swift), (SUMMARY, swift), (FACTORY, llama_factory)]
)
def test_they_are_recognised(text, format):
    data, path = text.encode(), Path("log.jsonl")
    assert next(one for one in FORMATS if one.matches(path, data)) is format


def test_what_ms_swift_writes(tmp_path):
    run = read_text(tmp_path, SWIFT + END + SUMMARY, "logging.jsonl")
    assert values(run, "loss") == {1: 0.5, 2: 0.25}
    assert values(run, "eval_loss") == {2: 0.75}
    assert values(run, "train_loss") == {40: 0.5}
    assert not {"best_metric", "global_step"} & {*run.keys}, (
        "a summary measures nothing"
    )
    assert run.total_steps == 40
    assert [(one.kind, one.step) for one in run.events] == [(EventKind.FINISHED, 40)]
    assert state(run, 0.0) is State.FINISHED


def test_the_closing_record_takes_no_place_of_the_last_steps(tmp_path):
    run = read_text(tmp_path, LAST, "logging.jsonl")
    assert values(run, "train_speed(s/it)") == {40: 0.66}
    assert values(run, "train_loss") == {40: 0.4}
    assert not notes(run)


def test_what_llama_factory_writes(tmp_path):
    run = read_text(tmp_path, FACTORY, "trainer_log.jsonl")
    assert {key: values(run, key) for key in run.keys} == {
        "loss": {5: 0.5, 10: 0.25},
        "eval_loss": {5: 0.25},
        "learning_rate": {5: 0.001, 10: 0.0005},
        "rewards/accuracies": {5: 0.75, 10: 1.0},
        "epoch": {5: 0.05, 10: 0.1},
    }
    assert run.total_steps == 60


def test_the_history_of_llama_factorys_ppo_is_one_series_with_its_log(tmp_path):
    history = [
        {
            "epoch": 0.0,
            "learning_rate": 0.1,
            "loss": -0.5,
            "reward": float(n),
            "step": n,
        }
        for n in range(3)
    ]
    document = {
        "best_model_checkpoint": None,
        "global_step": 3,
        "max_steps": 9,
        "log_history": history,
    }
    (tmp_path / "trainer_state.json").write_text(json.dumps(document))
    lines = (
        {"current_steps": n + 1, "total_steps": 9, "reward": float(n), "epoch": 0.0}
        for n in range(3)
    )
    log = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "trainer_log.jsonl").write_text(log)
    run = read_run(tmp_path)
    assert values(run, "reward") == {1: 0.0, 2: 1.0, 3: 2.0}
    assert notes(run) == (
        "LLaMA-Factory's PPO counts steps from 0 here: shown from 1, as its other files say"
    )


@pytest.mark.skipif(not MADE.exists(), reason=f"no {MADE}")
@pytest.mark.parametrize(
    ("log", "history"),
    [
        ("swift_resume/out/logging.jsonl", "swift_resume/out/checkpoint-80/trainer_state.json"),
        *(
            (f"{name}/out/trainer_log.jsonl", f"{name}/out/trainer_state.json")
            for name in ("lf_dpo", "lf_kto", "lf93_ppo")
        ),
    ],
)  # fmt: skip
def test_real_ones_against_the_trainers_history(log, history):
    run, history_run = read_run(MADE / log), read_run(MADE / history)
    assert run.total_steps == history_run.total_steps
    shared = [key for key in run.keys if key in history_run.keys]
    assert {"loss", "learning_rate"} <= {*shared}
    for key in shared:
        truth = values(history_run, key)
        assert values(run, key) == pytest.approx(truth, rel=1e-4, abs=1e-7), key
