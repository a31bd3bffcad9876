"""Tells apart the consoles of ms-swift, LLaMA-Factory, TRL and other Hugging Face trainers.

All of them print dicts.

ms-swift's and LLaMA-Factory's loggers sign their lines (`[INFO:swift]`, `[INFO|2026-11-22 17:51:29]
llamafactory.hparams.parser:523 >>`, before version 0.9 `- INFO - llamafactory.hparams.parser -`).
TRL signs nothing, but its dicts have keys that Transformers' own lack. The other two use TRL's
trainers, so their signature goes first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

SWIFT, FACTORY, TRL = "ms-swift console", "LLaMA-Factory console", "TRL console"
OTHER = "Hugging Face console"
_FIRST = 2000
"""First lines in which a logger's name is looked for: both trainers print it at once."""
_SIGNED = re.compile(
    rb"(?P<swift>\[(?:DEBUG|INFO|WARNING|ERROR):swift\])"
    rb"|\b(?:llamafactory|llmtuner)(?:\.[a-z_]{1,40}){1,5}(?::\d{1,5} >>| - )"
)
_SWIFT_KEY = "global_step/max_steps"
_TRL_KEYS = (
    # GRPO, RLOO
    "frac_reward_zero_std", "completions/mean_length", "completion_length",
    "clip_ratio/region_mean",
    "rewards/margins", "logps/chosen",  # DPO and those like it
    "objective/rlhf_reward", "mean_token_accuracy",  # PPO; SFT
)  # fmt: skip


class TrainerDetector:
    """Detects which trainer writes a console."""

    def __init__(self) -> None:
        self._signed: str | None = None
        self._likely: str | None = None

    @property
    def name(self) -> str | None:
        """Name of the console's format, None while unknown."""
        return self._signed or self._likely

    def line(self, part: bytes, number: int) -> None:
        """Look for a trainer's signature in a line that is no dict."""
        if number > _FIRST or self._signed is not None:
            return
        if (found := _SIGNED.search(part)) is not None:
            self._signed = SWIFT if found["swift"] else FACTORY

    def dict(self, keys: Container[str]) -> None:
        """Recognise a trainer by the keys of a dict of metrics."""
        if self._signed is not None or self._likely == TRL:
            return
        if _SWIFT_KEY in keys:
            self._signed = SWIFT
        else:
            self._likely = TRL if any(key in keys for key in _TRL_KEYS) else OTHER
