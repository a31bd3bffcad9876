"""The root cause: each entry of `causes.toml` by the line it was written from, and whole ends of logs
with the reason and the remedy that `check` gives.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from file_writing import prefixed

from verl_tui.check.data import report
from verl_tui.config import Config
from verl_tui.health.root_cause import catalogue, cause_of
from verl_tui.monitor import load
from verl_tui.words import lowered

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_790_000_000.0
TRACE = 'Traceback (most recent call last):\n  File "/opt/job/train.py", line 41, in <module>\n    main()\n'
ENTRIES = {cause.id: cause for cause in catalogue()}


def crash_of(
    tmp_path: Path, text: str, steps: int = 9, settings: str = ""
) -> dict[str, Any]:
    """Return the finding on the end of a log that ends so."""
    log = tmp_path / "run_4.log"
    lines = "".join(
        f"(TaskRunner pid=31) step:{at} - actor/entropy:0.4 - critic/rewards/mean:0.3\n"
        for at in range(1, steps + 1)
    )
    log.write_text(f"{settings}{lines}{text}\n")
    os.utime(log, (NOW - 7200, NOW - 7200))
    (run,) = report(load([str(log)], Config(), NOW), NOW)["runs"]
    return next((one for one in run["findings"] if one["id"] == "crash"), {})


def fixed_part(title: str) -> str:
    return max(re.split(r"\{\w+\}", lowered(title)), key=len)


def test_each_entry_is_found_by_the_line_it_was_written_from():
    found = {id: cause_of(cause.line) for id, cause in ENTRIES.items()}
    assert {id: one and one[0].id for id, one in found.items()} == {
        id: id for id in ENTRIES
    }


ENDS = [
    id
    for id, cause in ENTRIES.items()
    if not cause.waiting and cause.kind != "stop" and id != "interrupted"
]
"""Entries that say why a run crashed; Ctrl+C and a run's own limits are told otherwise."""


@pytest.mark.parametrize(
    "id",
    [
        pytest.param(id, marks=() if at % 3 == 0 else pytest.mark.thorough)
        for at, id in enumerate(ENDS)
    ],
)
def test_an_entry_is_the_headline_of_a_run_that_ends_so(tmp_path, id):
    cause = ENTRIES[id]
    is_exception = re.match(r"[\w.]+(?:Error|Exception)\b", cause.line)
    is_last = is_exception or not cause.alone
    found = crash_of(tmp_path, TRACE + cause.line if is_last else cause.line)
    if cause.kind == "harmless" or (cause.kind == "report" and not is_last):
        assert not found or found["message"].startswith("the run ")
    else:
        assert fixed_part(cause.title) in found["message"]
        assert found["advice"]


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB"
IN_LOG_PROB = (
    "Traceback (most recent call last):\n"
    '  File "/opt/verl/workers/fsdp_workers.py", line 905, in compute_log_prob\n'
    "    output = self.actor.compute_log_prob(data)\n"
)
DIED = f"{TRACE}ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."
STARTED = (
    "(TaskRunner pid=31) {'actor_rollout_ref': {'rollout': {'gpu_memory_utilization': 0.7,\n"
    "(TaskRunner pid=31)   'log_prob_micro_batch_size_per_gpu': 24}}}\n"
)
TIMED_OUT = (
    "[rank{rank}]:[E412 09:12:55.104 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective"
    " operation timeout: WorkNCCL(SeqNum=8812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600011 milliseconds before timing out.\n"
)
TABLE = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train_grpo.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-04-12_09:12:55
  host      : node-3
  rank      : 5 (local_rank: 5)
  exitcode  : -9 (pid: 4121)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 4121
"""


class Ending(NamedTuple):
    text: str
    why: tuple[str, ...]
    """What the reason says, in this order."""
    advice: str
    never: str = "read the log upwards"


ENDINGS = {
    "the cause of a dead worker is in the worker": Ending(
        prefixed("(WorkerDict pid=411) ", f"{IN_LOG_PROB}{OOM}") + DIED,
        ("while computing log-probabilities", "GPU memory", "WorkerDict pid 411"),
        "log_prob_micro_batch_size_per_gpu 24 → 12",
        "host's memory",
    ),
    "the most frequent error is not the first": Ending(
        prefixed("(AgentLoopWorker pid=7) ", f"{TRACE}KeyError: 'answer'")
        + prefixed("(AgentLoopWorker pid=8) ", f"{TRACE}TimeoutError: tool") * 40
        + DIED,
        ("KeyError: 'answer'", "AgentLoopWorker pid 7"),
        "",
        "TimeoutError",
    ),
    "Ray's repetitions decide nothing": Ending(
        prefixed("(A pid=7) ", f"{TRACE}KeyError: 'answer'")
        + prefixed(
            "(B pid=8) ", f"{TRACE}TimeoutError: tool [repeated 61x across cluster]"
        )
        + DIED,
        ("KeyError: 'answer'",),
        "",
        "TimeoutError",
    ),
    "the innermost of chained exceptions": Ending(
        f"{TRACE}OSError: [Errno 28] No space left on device\n\nThe above exception was the direct "
        f"cause of the following exception:\n\n{TRACE}RuntimeError: the checkpoint was not saved",
        ("No space left on device",),
        "",
        "RuntimeError",
    ),
    "a lookup that was handled is no cause": Ending(
        f"{TRACE}KeyError: 'cache'\n\nDuring handling of the above exception, another exception "
        f"occurred:\n\n{TRACE}OSError: [Errno 28] No space left on device",
        ("No space left on device",),
        "",
        "'cache'",
    ),
    "ranks that did not report": Ending(
        "".join(TIMED_OUT.format(rank=rank) for rank in (0, 1, 2, 4, 5, 6, 7)),
        ("on 7 of 8 ranks, rank 3 never reported",),
        "py-spy",
    ),
    "torchrun's table": Ending(TABLE, ("SIGKILL", "rank 5"), "dmesg"),
    "an engine that died of its own error": Ending(
        prefixed(
            "(EngineCore_DP0 pid=91) ERROR 04-12 09:12:55 [core.py:710] ",
            f"{TRACE}{OOM}",
        )
        + f"{TRACE}vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See "
        "stack trace (above) for the root cause.",
        ("GPU memory", "EngineCore_DP0"),
        "",
        "engine died",
    ),
    "a report says more than its head": Ending(
        f"Error executing job with overrides: []\n{DIED}",
        ("a Ray worker died", "ActorDiedError"),
        "dmesg",
        "HYDRA_FULL_ERROR",
    ),
    "a sample's own trouble, not the data worker's": Ending(
        f"{TRACE}ValueError: Caught ValueError in DataLoader worker process 3.\nOriginal {TRACE}"
        "ValueError: odd number of turns",
        ("ValueError: odd number of turns",),
        "train.py:41",
        "Caught",
    ),
    "a check without a message": Ending(
        f"{TRACE}AssertionError".replace("main()", "assert len(a) == len(b)"),
        ("a check of the program failed", "(assert len(a) == len(b))"),
        "assert",
    ),
    "an exception that could not be passed on": Ending(
        f"{TRACE}TypeError: APIStatusError.__init__() missing 2 required keyword-only arguments: "
        "'response' and 'body'\n\nThe above exception was the direct cause of the following "
        f"exception:\n\n{TRACE}RuntimeError: Failed to unpickle serialized exception",
        ("APIStatusError", "missing 2 required"),
        "judge",
        "versions",
    ),
    "a scorer's own mistake": Ending(
        f"{TRACE}IndexError: list index out of range".replace("main()", "parts[1]"),
        ("another form", "IndexError"),
        "train.py:41, which raised it",
        "catalogue",
    ),
    "a worker with brackets in its name": Ending(
        prefixed("(ActorWorker(actor_infer-0) pid=7, ) ", f"{IN_LOG_PROB}{OOM}") + DIED,
        ("GPU memory", "ActorWorker(actor_infer-0) pid 7"),
        "log_prob_micro_batch_size_per_gpu",
    ),
    "an exception that no entry knows": Ending(
        f"{TRACE}arena.MatchLost: the judge fell silent",
        ("arena.MatchLost: the judge fell silent",),
        "train.py:41",
    ),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_the_first_that_nothing_else_explains(tmp_path, ending):
    found = crash_of(tmp_path, ending.text, settings=STARTED)
    at = 0
    for words in ending.why:
        assert words in found["message"][at:], found["message"]
        at = found["message"].index(words, at)
    assert ending.advice in found["advice"]
    said = found["message"] + found["advice"]
    assert ending.never not in said


IN_REWARD = (
    "Traceback (most recent call last):\n"
    '  File "/opt/trl/trainer/grpo_trainer.py", line 1626, in _calculate_rewards\n'
    "    output_reward_func = reward_func(\n"
)


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ("", "Lower per_device_train_batch_size or"),
        ('{"per_device_train_batch_size": 8}', "per_device_train_batch_size 8 → 4 or"),
    ],
)
def test_other_trainers_are_not_told_to_change_settings_of_verl(
    tmp_path, settings, advice
):
    text = "".join(
        f"{{'loss': 0.1, 'grad_norm': 1.2, 'learning_rate': 1e-06, 'reward': 0.2, 'reward_std': 0.1, "
        f"'completions/mean_length': 30.0, 'kl': 0.01, 'epoch': {at / 9}}}\n"
        for at in range(1, 10)
    )
    (tmp_path / "train.log").write_text(f"{text}{IN_REWARD}{OOM}\n")
    if settings:
        (tmp_path / "args.json").write_text(settings)
    (run,) = report(load([str(tmp_path)], Config(), NOW), NOW)["runs"]
    (crash,) = (one for one in run["findings"] if one["id"] == "crash")
    assert "scoring responses" in crash["message"]
    assert advice in crash["advice"]
    assert "reward_model." not in crash["advice"]


def test_a_log_of_20_000_errors_has_one_cause(tmp_path):
    first = prefixed("(WorkerDict pid=411) ", f"{TRACE}{OOM}")
    noise = "".join(
        f"(AgentLoopWorker pid={at % 97}) ERROR: request {at} failed: Connection refused\n"
        for at in range(20_000)
    )
    assert "GPU memory" in crash_of(tmp_path, first + noise + DIED)["message"]


@pytest.mark.parametrize(
    ("said", "id"),
    [
        ("TypeError: Unexpected keyword argument 'prompt'", "argument-changed"),
        ("TypeError: __init__() missing 1 required positional argument: 'cmd'", "launcher-report"),
        ("AttributeError: '_OpNamespace' '_C' object has no attribute 'silu'", "library-abi"),
        ("AssertionError: instance_id: ab:1:0 has 0 actors, but vllm_dp_size: 1 * vllm_tp_size: 4",
         "parallel-size-too-big"),
        ("AssertionError: num_attention_heads 14 must be divisible by ulysses_sp_size 4",
         "heads-not-divisible"),
        ("RuntimeError: Expected there to be 2 prompt updates corresponding to 2 image items",
         "image-tokens-mismatch"),
        ("The raylet exited immediately because the Ray agent failed.", "ray-raylet-died"),
        ("RuntimeError: Failed to unpickle serialized exception", "ray-system-report"),
        ("RuntimeError: call aclnnMatmul failed, detail:EZ1001: no such type", "npu-error"),
        ("RuntimeError: Missing key in checkpoint state_dict: optimizer.state.3.step.",
         "checkpoint-mismatch"),
        ("RuntimeError: torch.cat(): expected a non-empty list of Tensors", "nothing-left"),
        ("ValueError: Unknown advantage estimator simply: grpo2", "name-not-registered"),
        ("ValueError: No tool registered with name 'crop_v2'", "name-not-registered"),
        ("KeyError: 'model.layers.3.self_attn.qkv_proj.base_layer.weight'", "weight-name-unknown"),
        ("KeyError: 'uid'", "batch-field-missing"),
        ("KeyError: 'key \"masks\" not found in TensorDict with keys []'", "batch-field-missing"),
        ("TypeError: 'NoneType' object is not subscriptable", "value-none"),
        ("TypeError: unsupported operand type(s) for +: 'int' and 'NoneType'", "value-none"),
        ("AttributeError: 'str' object has no attribute 'get'", "value-unexpected"),
        ("AttributeError: 'LLM' object has no attribute 'wake_up'", "argument-changed"),
        ("ValueError: Unregistered model type: qwen9, now only support dict_keys([])", "model-not-known"),
        ("ValueError: Following weights were not initialized from checkpoint: {'a.weight'}",
         "checkpoint-mismatch"),
        ("pyarrow.lib.ArrowInvalid: JSON parse error: Column() changed from object to array", "not-json"),
        ("pyarrow.lib.ArrowTypeError: Expected bytes, got a 'list' object", "data-cast"),
        ("KeyError: 'weight'", "key-missing"),
        ("FileNotFoundError: ckpt/step_5/fsdp_config.json does not exist.", "file-missing"),
        ("AssertionError: Attempted to load weight (torch.Size([9])) into parameter (torch.Size([8]))",
         "checkpoint-mismatch"),
        ("RuntimeError: Unsupported block size: 256", "kernel-check-failed"),
        ("ValueError: max_tokens must be at least 1, got -8.", "response-length-zero"),
    ],
)  # fmt: skip
def test_another_wording_of_the_same_cause(said, id):
    found = cause_of(said)
    assert found is not None
    assert found[0].id == id


def test_a_library_that_is_asked_for_is_a_missing_module():
    said = "RuntimeError: WandbCallback requires wandb to be installed. Run `pip install wandb`."
    found = cause_of(said)
    assert found is not None
    assert (found[0].id, found[1]["module"]) == ("module-missing", "wandb")
