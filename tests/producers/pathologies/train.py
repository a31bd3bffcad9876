"""Trains small models with TRL's GRPO trainer on a CPU, each in a process of its own.

Reads one JSON object a line and says when it is done: importing the libraries takes longer than
many of these trainings, so it is done once. An object has `out` (a directory), `half`, `base` (the
model's directory), `task`, `steps`, `seed` and `options`:

    rewards, weights     names of `rewards.KINDS`
    prompts, gens        prompts a step, responses to each
    limit                most tokens of a response
    log, eval            logging_steps, eval_steps
    samples              whether responses are printed and kept
    flip                 the loss has the wrong sign
    events               list of {"at": STEP, "what": WHAT, "value": X}: `rate` (times), `beta`,
                         `temperature`, `task` (prompts of another one), or a fault of
                         `rewards.Scorer`, with its reward's place in `of`
    anything else        as GRPOConfig has it
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import traceback
from itertools import pairwise
from pathlib import Path

import torch
from datasets import Dataset
from rewards import Scorer
from training import OWN
from transformers import AutoTokenizer, Qwen2ForCausalLM, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from words import questions

OF_TRAINER = ("rate", "beta", "temperature", "task")


class Events(TrainerCallback):
    """What happens to a training at a step."""

    def __init__(self, events: list[dict], scorers: list[Scorer]) -> None:
        self.events, self.scorers = events, scorers
        self.trainer: GRPOTrainer | None = None

    def on_step_begin(
        self, args, state, control, optimizer=None, lr_scheduler=None, **_
    ) -> None:
        """Tell the scorers the step, and change what is to change at it."""
        for scorer in self.scorers:
            scorer.step = state.global_step + 1
        for event in self.events:
            if event["at"] == state.global_step + 1:
                self.change(event["what"], event["value"], optimizer, lr_scheduler)

    def change(self, what: str, value: float, optimizer, schedule) -> None:
        """Change the learning rate, beta or temperature."""
        if what == "rate":
            schedule.base_lrs = [one * value for one in schedule.base_lrs]
            for group in optimizer.param_groups:
                group["lr"] *= value
        elif what == "beta":
            self.trainer.beta = value
        elif what == "temperature":
            self.trainer.temperature = self.trainer.generation_config.temperature = (
                value
            )


class Flipped(GRPOTrainer):
    """A trainer with the wrong sign in its loss."""

    def _compute_loss(self, model, inputs):
        return -super()._compute_loss(model, inputs)


def data(asked: dict, events: list[dict], prompts: int, dice: random.Random) -> Dataset:
    """Return the prompts in the order in which they are trained on."""
    steps, rows = asked["steps"] + 2, []
    changes = [
        (event["at"] - 1, event["value"]) for event in events if event["what"] == "task"
    ]
    marks = [(0, asked["task"]), *changes, (steps, "")]
    for (begin, task), (end, _) in pairwise(marks):
        rows += questions(task, (end - begin) * prompts, dice)
    return Dataset.from_list(rows)


def config(asked: dict, options: dict) -> GRPOConfig:
    """Return TRL's settings."""
    prompts = options.get("prompts", 3)
    gens = options.get("gens", 8)
    every = options.get("eval", 0)
    given = {
        "learning_rate": 1e-3,
        "beta": 0.02,
        **{k: v for k, v in options.items() if k not in OWN},
    }
    if "weights" in options:
        given["reward_weights"] = options["weights"]
    return GRPOConfig(
        output_dir=str(Path(asked["out"]) / "out"), run_name=Path(asked["out"]).name, max_steps=asked["steps"],
        per_device_train_batch_size=prompts * gens, num_generations=gens, per_device_eval_batch_size=4 * gens,
        max_completion_length=options.get("limit", 16), logging_steps=options.get("log", 1), seed=asked["seed"],
        eval_strategy="steps" if every else "no", eval_steps=every or None, shuffle_dataset=False,
        log_completions=options.get("samples", False), num_completions_to_print=4, report_to=["tensorboard"],
        save_strategy="no", use_cpu=True, bf16=False, gradient_checkpointing=False, **given,
    )  # fmt: skip


def train(asked: dict) -> None:
    """Train, and leave behind what TRL leaves."""
    options = asked["options"]
    torch.manual_seed(asked["seed"])
    dice = random.Random(asked["seed"])
    events = options.get("events", [])
    scorers = [
        Scorer(
            kind,
            options.get("limit", 16),
            str(asked["seed"]),
            [
                one
                for one in events
                if one["what"] not in OF_TRAINER and one.get("of", 0) == place
            ],
        )
        for place, kind in enumerate(options["rewards"])
    ]
    happens = Events([one for one in events if one["what"] in OF_TRAINER], scorers)
    trainer = (Flipped if options.get("flip") else GRPOTrainer)(
        model=Qwen2ForCausalLM.from_pretrained(asked["base"]),
        args=config(asked, options),
        reward_funcs=scorers,
        train_dataset=data(asked, events, options.get("prompts", 3), dice),
        eval_dataset=Dataset.from_list(questions(asked["task"], 8, dice))
        if options.get("eval")
        else None,
        processing_class=AutoTokenizer.from_pretrained(asked["base"]),
        callbacks=[happens],
    )
    happens.trainer = trainer
    try:
        trainer.train()
    finally:
        trainer.save_state()


def alone(asked: dict) -> int:
    """Train in a process of its own, whose console is `train.log`; return its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    log = os.open(
        Path(asked["out"]) / "train.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644
    )
    os.dup2(log, 1)
    os.dup2(log, 2)
    status = 0
    try:
        train(asked)
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> None:
    """Train for each line of standard input."""
    torch.set_num_threads(1)
    for line in sys.stdin:
        asked, began = json.loads(line), time.monotonic()
        status = alone(asked)
        print(
            json.dumps(
                {"status": status, "seconds": round(time.monotonic() - began, 1)}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
