"""Consoles of trainers that print dicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def bar(at: int, total: int) -> str:
    """Return a bar as tqdm draws it."""
    return (
        f"\r{100 * at // total:3d}%|##        | {at}/{total} [00:05<21:00,  5.06s/it]"
    )


def bare_bar(at: int, total: int, seconds: float = 30.0) -> str:
    """Return a bar on a line of its own as Colab and Kaggle print it, without what it draws."""
    took = [round(seconds * steps) for steps in (at, total - at)]
    past, coming = (f"{one // 60:02d}:{one % 60:02d}" for one in took)
    return (
        f"{100 * at // total:3d}% {at}/{total} [{past}<{coming}, {seconds:.2f}s/it]\n"
    )


CLEAR = "\r" + " " * 40 + "\r"


def trained(at: int, total: int = 20, every: int = 2) -> str:
    """Return what Hugging Face prints for `every` steps up to one: bars, the dict, the bar
    again.
    """
    bars = "".join(bar(step, total) for step in range(at - every + 1, at + 1))
    logs = {
        "loss": at / 8,
        "grad_norm": math.nan if at == 4 else 0.5,
        "reward": at / 4,
        "kl": 1e-05,
        "epoch": at / 80,
    }
    return f"{bars}{CLEAR}{logs}\n{bar(at, total)}"


def evaluated(at: int) -> str:
    """Return an evaluation: a bar of its own, a dict, the training's bar again."""
    return f"{bar(0, 8)}{bar(7, 8)}{CLEAR}{CLEAR}{{'eval_loss': 0.25, 'epoch': {at / 80}}}\n{bar(at, 20)}"


TRL = (
    "Loading checkpoint shards: 100%|####| 4/4 [00:01<00:00]\nMap:  50%|####  | 4/8 [00:01<00:00]\n"
    + bar(0, 20)
    + "".join(trained(at) for at in (2, 4, 6))
    + evaluated(6)
    + trained(8)
    + "".join(trained(at) for at in range(10, 21, 2))
    + CLEAR
    + "{'train_runtime': 91.5, 'train_loss': 0.125, 'epoch': 0.25}\n"
    + bar(20, 20)
    + "\n"
)


def repainted(at: int, total: int = 40) -> str:
    """Return what is left of a dict that is kept back: the bar is cleared and painted again."""
    return f"{bar(at, total)}{CLEAR}{bar(at, total)}"


def kept_back(steps: Iterable[int], words: Iterable[str] = ()) -> str:
    """Return dicts that come all at once."""
    return "".join(
        f"{{'loss': {at / 8}, 'epoch': {at / 400:.2f}}}\n" for at in steps
    ) + "".join(words)


EVALUATED = "{'eval_loss': 0.25, 'epoch': 0.05}\n"
SAVING = "Writing model shards:   0%|          | 0/1 [00:00<?, ?it/s]\rWriting model shards: 100%|##| 1/1 [00:00<00:00]\n"
BUFFERED = (
    bar(0, 40)
    + "".join(map(repainted, range(2, 10, 2)))
    # The tenth step's dict makes the buffer overflow: what it held comes in the middle of the
    # clearing.
    + f"{bar(10, 40)}{CLEAR}{kept_back(range(2, 10, 2))}{bar(10, 40)}"
    + "".join(map(repainted, range(12, 22, 2)))
    # Another bar flushes all of it. That of the evaluation is repainted too, and takes its leave.
    + kept_back(range(10, 22, 2))
    + f"{bar(0, 8)}{bar(8, 8)}{CLEAR}\n{CLEAR}{bar(20, 40)}\n{bar(8, 8)}\n\r{' ' * 40}"
    + "".join(map(repainted, range(22, 30, 2)))
    + kept_back((), [EVALUATED])
    + kept_back(range(22, 30, 2))
    + SAVING
    + "".join(map(repainted, range(30, 42, 2)))
    + f"{CLEAR}{bar(40, 40)}\n"
    + kept_back(range(30, 42, 2))
    + "{'train_runtime': 91.5, 'train_loss': 0.125, 'epoch': 0.1}\n"
)
CAPTURED = f"{bar(0, 40)[1:]}warning\n{bar(5, 40)[1:]}\n{kept_back(range(1, 16))}{bar(17, 40)[1:]}\n{kept_back((16, 17, 18))}"
