"""Trains a random two-layer model with TRL's PPO or RLOO trainer, as they were up to TRL 0.21, on a
CPU.

    python trl_ppo.py OUTPUT {ppo,rloo} [--steps N]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import tiny_chat
import torch
from datasets import Dataset
from transformers import (
    AutoTokenizer,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2ForSequenceClassification,
)
from trl import PPOConfig, PPOTrainer, RLOOConfig, RLOOTrainer

BATCH = 4


def main() -> None:
    """Train, and leave behind what TRL leaves."""
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("kind", choices=("ppo", "rloo"))
    parser.add_argument("--steps", type=int, default=12)
    asked = parser.parse_args()
    torch.manual_seed(0)
    home = tiny_chat.write(asked.output / "model")
    words = AutoTokenizer.from_pretrained(home, padding_side="left")
    prompts = [words(prompt)["input_ids"] for prompt in tiny_chat.PROMPTS * 20]
    data = Dataset.from_dict({"input_ids": prompts})
    common: dict[str, Any] = {
        "output_dir": str(asked.output), "per_device_train_batch_size": BATCH, "gradient_accumulation_steps": 1,
        "total_episodes": BATCH * asked.steps, "response_length": 8, "learning_rate": 1e-3, "use_cpu": True,
        "bf16": False, "report_to": "tensorboard", "num_sample_generations": 0, "num_ppo_epochs": 2,
        "num_mini_batches": 1, "save_steps": asked.steps, "missing_eos_penalty": 1.0,
    }  # fmt: skip
    policy, reference = (Qwen2ForCausalLM.from_pretrained(home) for _ in range(2))
    config = Qwen2Config.from_pretrained(home, num_labels=1)
    reward, value = (Qwen2ForSequenceClassification(config) for _ in range(2))
    trainer: Any
    if asked.kind == "ppo":
        trainer = PPOTrainer(
            args=PPOConfig(**common), processing_class=words, model=policy, ref_model=reference,
            reward_model=reward, value_model=value, train_dataset=data, eval_dataset=data.select(range(4)),
        )  # fmt: skip
    else:
        trainer = RLOOTrainer(
            config=RLOOConfig(**common, rloo_k=2), processing_class=words, policy=policy, ref_policy=reference,
            reward_model=reward, train_dataset=data, eval_dataset=data.select(range(4)),
        )  # fmt: skip
    trainer.train()
    trainer.save_state()


if __name__ == "__main__":
    main()
