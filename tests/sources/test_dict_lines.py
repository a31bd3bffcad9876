"""Consoles that print dicts: which are recognised, what trainer wrote them, and what is no dict."""

from __future__ import annotations

from pathlib import Path

import pytest
from dict_consoles import BUFFERED, CAPTURED, TRL
from log_reading import read_run

from verl_tui.records import Event
from verl_tui.sources.fields.row_batcher import MetricRow
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.console.decoder import ConsoleDecoder

SLIME = """\
(RolloutManager pid=7) [2025-11-02 10:00:00] rollout.py:88 - perf 0: {'perf/rollout_time': 12.5, 'own': tensor(3)}
(Actor pid=8) rollout 0: {'rollout/raw_reward': 0.25, 'rollout/logp': tensor(-0.5, device='cuda:0')}
(Actor pid=8) step 0: {'train/pg_loss': 0.5, 'train/grad_norm': np.float64(2.0), 'train/lr-pg_0': 1e-06}
(Actor pid=8) step 1: {'train/pg_loss': 1.5, 'train/grad_norm': np.float64(4.0), 'train/lr-pg_0': 1e-06}
(RolloutManager pid=7) eval 0: {'eval/aime': 0.125, 'eval/aime-truncated_ratio': None, 'eval/ids': [1, 2]}
(Actor pid=8) rollout 1: {'rollout/raw_reward': 0.75, 'rollout/logp': tensor(-0.25, device='cuda:0')}
(Actor pid=8) step 2: {'train/pg_loss': nan, 'train/grad_norm': inf, 'train/lr-pg_0': 1e-06}
"""
OPENRLHF = """\
(T pid=3) INFO 11-02 10:00:00 ppo_trainer.py:91] ✨ Global step 1: {'policy_loss': -0.5, 'reward': 0.25, 'kl': 0}
(T pid=3) INFO 11-02 10:00:09 ppo.py:91] ✨ Global step 2: {'policy_loss': -0.25, 'reward': 0.5, 'kl': 1e-3}
INFO 11-02 10:00:15 ppo.py:91] ✨ Global step 3: {'policy_loss': -0.125, 'reward': 0.75, 'kl': 2e-3}
"""
CONSOLES = {
    "trl": TRL,
    "buffered": BUFFERED,
    "captured": CAPTURED,
    "slime": SLIME,
    "openrlhf": OPENRLHF,
}


@pytest.mark.parametrize("name", CONSOLES)
def test_a_console_is_recognised(name):
    assert console.matches(Path("a.log"), CONSOLES[name].encode())


TRL_LINE = "{'loss': 0.5, 'completions/mean_length': 24.0, 'frac_reward_zero_std': 0.0, 'epoch': 0.1}\n"
FACTORY_LINE = "[INFO|2026-11-22 17:51:29] llamafactory.hparams.parser:523 >> Process rank: 0, world size: 1\n"
START_OF_TRL = """\
Traceback (most recent call last):
  File "/opt/lib/python3.12/site-packages/trl/trainer/grpo_trainer.py", line 216, in __init__
    raise ValueError("no reward")
ValueError: no reward
"""
OLD_FACTORY_LINE = (
    "11/22/2024 17:51:29 - INFO - llmtuner.hparams.parser - Process rank: 0\n"
)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (BUFFERED, "Hugging Face console"),
        (TRL_LINE, "TRL console"),
        ("{'loss': 0.5, 'epoch': 0.1}\n" + TRL_LINE, "TRL console"),
        (TRL_LINE + "{'eval_loss': 0.5, 'epoch': 0.1}\n", "TRL console"),
        ("[INFO:swift] Global seed set to 42\n" + TRL_LINE, "ms-swift console"),
        (
            TRL_LINE.replace("}", ", 'global_step/max_steps': '1/20'}"),
            "ms-swift console",
        ),
        (FACTORY_LINE + TRL_LINE, "LLaMA-Factory console"),
        (OLD_FACTORY_LINE + BUFFERED, "LLaMA-Factory console"),
        (FACTORY_LINE, "LLaMA-Factory console"),
        ("we compare with llamafactory.\n" + BUFFERED, "Hugging Face console"),
        (SLIME, "slime console"),
        (
            "Global step 1: {'policy_loss': 0.5, 'reward': 0.25}\n",
            "OpenRLHF console",
        ),
        (START_OF_TRL, "TRL console"),
        (START_OF_TRL.replace("trl/trainer/grpo", "verl/trainer/ppo"), "verl console"),
        (
            START_OF_TRL.replace("trl/trainer/grpo", "openrlhf/cli/train_ppo"),
            "OpenRLHF console",
        ),
        (
            START_OF_TRL.replace("trl/trainer/grpo", "swift/llm/train/rlhf"),
            "ms-swift console",
        ),
        (
            START_OF_TRL.replace("trl/trainer/grpo", "nemo_rl/algorithms/grpo"),
            "NeMo-RL console",
        ),
        (
            START_OF_TRL.replace("trl/trainer/grpo_", "transformers/"),
            "Hugging Face console",
        ),
        (START_OF_TRL.replace("trl/trainer/grpo", "mine/"), "console"),
        ("(TaskRunner pid=7) starting\n" + START_OF_TRL, "verl console"),
        (START_OF_TRL + BUFFERED, "TRL console"),
        (
            START_OF_TRL.replace("trl/trainer/grpo", "verl/trainer/ppo") + BUFFERED,
            "Hugging Face console",
        ),
        ("step:1 - actor/loss:1.0\n{'loss': 0.5, 'epoch': 0.1}\n", "verl console"),
        (FACTORY_LINE + "step:1 - actor/loss:1.0\n", "verl console"),
    ],
)
def test_a_console_is_called_its_trainers(tmp_path, text, title):
    path = tmp_path / "train.log"
    path.write_text(text)
    status = read_run(path).sources[str(path)].status
    assert (status.title, status.format) == (title, "console")


@pytest.mark.parametrize(
    "line",
    [
        "{'loss': 0.5}",
        "{'epoch': 1, 'role': 'user', 'content': 'hi'}",
        "The model said {'loss': 0.5, 'epoch': 1}",
        "{'loss': 0.5, 'epoch': 1} is what it said",
        "{'loss': 0.5, 'epoch': 1, 'x': {1, 2}}",
        "{'loss': 0.5, 'epoch': 1, 'x': f(2)}",
        "{'loss': 0.5, 'epoch': 1",
        "{'loss': '0.5s', 'epoch': 1.5.2}",
        "rollout 3: {'a': 1}",
        "step 3: {'rollout/a': 1}",
        "mystep 3: {'train/a': 1}",
        "Global step 3: {'a': 1}",
    ],
)
def test_what_only_looks_like_metrics(line):
    assert not [
        r
        for r in ConsoleDecoder().decode(line.encode(), 1)
        if isinstance(r, MetricRow | Event)
    ]
