"""Settings as consoles state them: printed by the trainer, dumped as arguments, in the command that
started it.
"""

from __future__ import annotations

from pprint import pformat

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from verl_tui.records import CONSOLE, LAUNCH, Settings, Unreadable
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.sources.formats.console import reader as console

CONFIG = {
    "actor_rollout_ref": {
        "actor": {"clip_ratio": 0.2, "optim": {"lr": 1e-06, "total_training_steps": -1}, "use_kl_loss": True},
        "model": {"external_lib": None, "override_config": {}, "path": "/models/Qwen2.5-3B-Instruct"},
        "rollout": {"n": 8, "name": "vllm", "stop": ["a" * 40, "b" * 40], "val_kwargs": {"n": 1, "top_k": -1}},
    },
    "algorithm": {"adv_estimator": "grpo", "kl_ctrl": {"kl_coef": 0.001, "type": "fixed"}},
    "data": {"max_response_length": 1024, "train_files": "~/data/gsm8k/train.parquet"},
    "trainer": {"experiment_name": "it's", "nnodes": 1, "total_epochs": 15},
}  # fmt: skip
PRINTED = pformat(CONFIG).split("\n")
STEP = "step:1 - actor/pg_loss:0.1 - critic/score/mean:0.5"


def read(*lines: str) -> tuple[dict[str, dict], list[Unreadable]]:
    """Return what a console states by origin, and what was said to be unreadable."""
    records = console.reader(None).feed(("\n".join(lines) + "\n").encode())
    found: dict[str, dict] = {}
    for record in records:
        if isinstance(record, Settings):
            found.setdefault(record.origin, {}).update(record.values)
    return found, [record for record in records if isinstance(record, Unreadable)]


@pytest.mark.parametrize("at", range(1, len(PRINTED)))
def test_a_configuration_into_which_a_line_cuts_is_not_read(at):
    lines = list(PRINTED)
    half = lines[at][: len(lines[at].rstrip()) - 4]
    cut = "2026-02-07 12:14:22,356\tINFO worker.py:2012 -- Started a local {Ray} instance."
    lines[at] = half + cut
    found, (unreadable,) = read(*lines, STEP)
    assert found == {}
    assert unreadable.line == 1
    assert unreadable.reason.startswith("the printed configuration is cut, or ")


STATED = {
    "a printed dict of metrics": (["{'a': 1,", " 'b': 2}", "{'x': 1}"], {}),
    "a launch command as a shell traces it": (
        [
            "+ python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo 'data.train_files=['\\''a b'\\'', c]' "
            "+trainer.val_before_train=False data.max_response_length=1024 actor.optim.lr=1e-6",
        ],
        {LAUNCH: {
            "algorithm.adv_estimator": "grpo", "data.train_files": "['a b', 'c']", "trainer.val_before_train": False,
            "data.max_response_length": 1024, "actor.optim.lr": "1e-6",
        }},
    ),
    "one as it stands in a script": (
        [
            "python3 -m verl.trainer.main_ppo \\", "    algorithm.adv_estimator=gae \\",
            "    data.train_batch_size=256 \\", "    trainer.n_gpus_per_node=$N_GPUS \\",
            "    trainer.total_epochs=15 $@",
        ],
        {LAUNCH: {
            "algorithm.adv_estimator": "gae", "data.train_batch_size": 256, "trainer.n_gpus_per_node": "$N_GPUS",
            "trainer.total_epochs": 15,
        }},
    ),
    "overrides of a start that failed": (
        ["Error executing job with overrides: ['a.b=1', 'data.x=two', 'trainer.nnodes=1']"],
        {LAUNCH: {"a.b": 1, "data.x": "two", "trainer.nnodes": 1}},
    ),
    "arguments on one line": (
        [
            "INFO args: Namespace(pretrain='Qwen/Qwen3-8B', rollout_batch_size=1024, kl_coef=1e-3, dtype=torch.bfloat16, "
            "eval=<IntervalStrategy.NO: 'no'>, thing=<object at 0x7f>, betas=[0.9, 0.95])",
        ],
        {CONSOLE: {
            "pretrain": "Qwen/Qwen3-8B", "rollout_batch_size": 1024, "kl_coef": 0.001, "dtype": "torch.bfloat16",
            "eval": "no", "thing": None, "betas": "[0.9, 0.95]",
        }},
    ),
    "arguments a line each": (
        [
            "[INFO] Training/evaluation parameters GRPOConfig(", "_n_gpu=1,",
            "accelerator_config={'split_batches': False},", "lr_scheduler_type=SchedulerType.LINEAR,",
            "learning_rate=1e-06,", "output_dir=/home/me/out,", "num_train_epochs=3.0,", "run_name=None,", ")",
        ],
        {CONSOLE: {
            "_n_gpu": 1, "accelerator_config.split_batches": False, "lr_scheduler_type": "SchedulerType.LINEAR",
            "learning_rate": 1e-06, "output_dir": "/home/me/out", "num_train_epochs": 3.0, "run_name": None,
        }},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), STATED.values(), ids=STATED)
def test_what_a_console_states(lines, expected):
    assert read(*lines, STEP)[0] == expected


def test_a_second_start_states_its_own_settings():
    again = [line.replace("15", "20") for line in PRINTED]
    started = "2026 INFO worker.py:1 -- Started a local Ray instance."
    found, _ = read(*PRINTED, STEP, started, *again, STEP)
    assert found[CONSOLE]["trainer.total_epochs"] == 20


KEYS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12
)
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-99, 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | KEYS
)


@given(
    st.dictionaries(
        KEYS,
        st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES) | VALUES),
        min_size=2,
        max_size=6,
    )
)
@settings(max_examples=20)
@example({"0": {}, "'\"{": {}})  # repr escapes the quote
@example({"it's {": {"b": 1}, "a\\": {"'\"": "}"}})
def test_any_printed_configuration_is_read_as_it_was(config):
    lines = pformat({"a": {"b": 1, "c": 2}, **config}, sort_dicts=False).split("\n")
    assert read(*lines, STEP)[0] == {
        CONSOLE: flatten_settings({"a": {"b": 1, "c": 2}, **config})
    }
