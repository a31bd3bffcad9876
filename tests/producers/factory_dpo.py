"""Trains a random two-layer model with LLaMA-Factory's DPO on a CPU.

python factory_dpo.py OUTPUT [--steps N] [--save N] [--raise-at N] [--hang-at N] [--resume]
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import tiny_chat
import wanted
from llamafactory.train.tuner import run_exp
from transformers import TrainerCallback

if TYPE_CHECKING:
    from pathlib import Path


class Fault(TrainerCallback):
    """Fails or hangs where a step begins."""

    def __init__(self, fails: int, hangs: int) -> None:
        self.fails, self.hangs = fails, hangs

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Fail or hang at its step."""
        if self.fails and state.global_step == self.fails:
            raise RuntimeError("reward endpoint answered 503")
        if self.hangs and state.global_step == self.hangs:
            time.sleep(100_000.0)


def data(home: Path) -> str:
    """Write pairs of answers, the better one with the letter a; return their directory."""
    rows = [
        {"instruction": text, "input": "", "chosen": "a" * (at % 7 + 1), "rejected": "zq" * (at % 5 + 1)}
        for at, text in enumerate(tiny_chat.PROMPTS * 40)
    ]  # fmt: skip
    columns = {"prompt": "instruction", "query": "input", "chosen": "chosen", "rejected": "rejected"}  # fmt: skip
    (home / "pairs.json").write_text(json.dumps(rows))
    datasets = {
        "pairs": {"file_name": "pairs.json", "ranking": True, "columns": columns}
    }
    (home / "dataset_info.json").write_text(json.dumps(datasets))
    return str(home)


def main() -> None:
    """Train, and leave behind what LLaMA-Factory leaves."""
    asked = wanted.arguments()
    made = asked.output.parent / "made"
    settings = {
        "model_name_or_path": tiny_chat.write(made / "model"), "stage": "dpo", "do_train": True,
        "finetuning_type": "full", "dataset": "pairs", "dataset_dir": data(made), "template": "qwen",
        "cutoff_len": 128, "output_dir": str(asked.output), "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 1, "learning_rate": 1e-3, "use_cpu": True, "report_to": "tensorboard",
        "dataloader_num_workers": 0, "preprocessing_num_workers": 1, "max_steps": asked.steps, "logging_steps": 2,
        "save_steps": asked.save,
        **({"resume_from_checkpoint": str(asked.output / f"checkpoint-{asked.save}")} if asked.resume else {}),
    }  # fmt: skip
    run_exp(settings, callbacks=[Fault(asked.raise_at, asked.hang_at)])


if __name__ == "__main__":
    main()
