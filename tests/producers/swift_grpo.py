"""Trains a random two-layer model with ms-swift's GRPO on a CPU.

python swift_grpo.py OUTPUT [--steps N] [--save N] [--raise-at N] [--hang-at N] [--resume]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import tiny_chat
import wanted


def main() -> None:
    """Make what the training needs, and become it: the process stays the same."""
    asked = wanted.arguments()
    made = asked.output.parent / "made"
    model = tiny_chat.write(made / "model")
    prompts = made / "prompts.jsonl"
    rows = (
        {"messages": [{"role": "user", "content": text}]}
        for text in tiny_chat.PROMPTS * 20
    )
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    saved = sorted(asked.output.glob(f"v*/checkpoint-{asked.save}"))
    words = {
        "rlhf_type": "grpo", "model": model, "model_type": "qwen2", "template": "qwen", "tuner_type": "full",
        "torch_dtype": "float32", "dataset": str(prompts),
        "external_plugins": str(Path(__file__).with_name("swift_reward.py")),
        "reward_funcs": "share_of_a", "per_device_train_batch_size": "8", "num_generations": "8",
        "max_completion_length": "16", "max_length": "128", "learning_rate": "1e-4", "beta": "0.02",
        "output_dir": str(asked.output), "report_to": "tensorboard", "log_completions": "true", "use_vllm": "false",
        "max_steps": str(asked.steps), "logging_steps": "1", "save_steps": str(asked.save),
        **({"resume_from_checkpoint": str(saved[-1].resolve())} if asked.resume else {}),
    }  # fmt: skip
    command = [part for key, value in words.items() for part in (f"--{key}", value)]
    faults = {"RAISE_AT": str(asked.raise_at), "HANG_AT": str(asked.hang_at)}
    more = {"MODELSCOPE_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", **faults}
    # `swift rlhf` would start this as a process of its own, which outlives it when it is killed.
    os.execve(
        sys.executable,
        [sys.executable, "-m", "swift.cli.rlhf", *command],
        {**os.environ, **more},
    )


if __name__ == "__main__":
    main()
