"""Trains a random two-layer model with TRL's GRPO trainer on a CPU, in some ten seconds: a real run
to be watched.

    python trl_grpo.py OUTPUT [--steps N] [--log N] [--eval N] [--sleep SECONDS] [--raise-at N]
                              [--hang-at N] [--resume] [--report TRACKER]

The reward is the share of the letter `a` in a response, which the model learns to write.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import tiny_chat
import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer


def options() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--log", type=int, default=1)
    parser.add_argument("--eval", type=int, default=0)
    parser.add_argument("--save", type=int, default=10)
    parser.add_argument("--sleep", type=float, default=0.0)
    parser.add_argument("--raise-at", type=int, default=0)
    parser.add_argument("--hang-at", type=int, default=0)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--report", default="tensorboard")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of letters, trained on the spot."""
    pairs = Tokenizer(models.BPE(unk_token="<unk>"))
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.decoder = decoders.ByteLevel()
    special = {"unk_token": "<unk>", "pad_token": "<pad>", "eos_token": "<eos>"}
    trainer = trainers.BpeTrainer(vocab_size=100, special_tokens=list(special.values()))
    pairs.train_from_iterator(
        [*tiny_chat.PROMPTS, "abcdefghijklmnopqrstuvwxyz 0123456789"] * 10, trainer
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=pairs,
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
        **special,
    )


class ShareOfA:
    """Rewards the letter a; takes its time, fails or waits for ever where it is told to."""

    __name__ = "share_of_a"

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.calls = 0

    def __call__(self, completions: list[str], **_: object) -> list[float]:
        """Return the share of the letter a in each completion."""
        self.calls += 1
        time.sleep(self.asked.sleep)
        if self.calls == self.asked.raise_at:
            raise RuntimeError("reward endpoint answered 503")
        if self.calls == self.asked.hang_at:
            time.sleep(3600)
        return [text.count("a") / max(1, len(text)) for text in completions]


def main() -> None:
    """Train, and leave behind what TRL leaves."""
    asked = options()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    words = tokenizer()
    data = Dataset.from_dict({"prompt": tiny_chat.PROMPTS * 40})
    trainer = GRPOTrainer(
        model=tiny_chat.write(asked.output / "model", words),
        args=GRPOConfig(
            output_dir=str(asked.output), max_steps=asked.steps, per_device_train_batch_size=8, num_generations=8,
            gradient_accumulation_steps=1,
            per_device_eval_batch_size=8, max_completion_length=16, logging_steps=asked.log, learning_rate=asked.rate,
            beta=0.02, report_to=[asked.report], save_steps=asked.save, use_cpu=True, bf16=False, run_name="letters",
            eval_strategy="steps" if asked.eval else "no", eval_steps=asked.eval or None,
            **({"log_completions": True} if "log_completions" in GRPOConfig.__dataclass_fields__ else {}),
        ),
        reward_funcs=[ShareOfA(asked)],
        train_dataset=data,
        eval_dataset=data.select(range(8)),
        processing_class=words,
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=asked.resume or None)
    trainer.save_state()


if __name__ == "__main__":
    main()
