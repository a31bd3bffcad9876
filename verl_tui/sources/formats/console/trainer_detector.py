"""Whose console it is: that of ms-swift, LLaMA-Factory, TRL or another Hugging Face trainer, which
all print dicts.

ms-swift's and LLaMA-Factory's loggers sign their lines (`[INFO:swift]`, `[INFO|2026-11-22 17:51:29]
llamafactory.hparams.parser:523 >>`, before version 0.9 `- INFO - llamafactory.hparams.parser -`).
TRL prints nothing of the kind, but its dicts have keys that Transformers' own have not. The other
two use its trainers, and are named first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

SWIFT, FACTORY, TRL = "ms-swift console", "LLaMA-Factory console", "TRL console"
OTHER = "Hugging Face console"
_FIRST = 2000
"""Lines among which a logger's name is looked for: both trainers print it at once."""
_SIGNED = re.compile(
    rb"(?P<swift>\[(?:DEBUG|INFO|WARNING|ERROR):swift\])"
    rb"|\b(?:llamafactory|llmtuner)(?:\.[a-z_]{1,40}){1,5}(?::\d{1,5} >>| - )"
)
_SWIFT_KEY = "global_step/max_steps"
_TRL_KEYS = (
    "frac_reward_zero_std", "completions/mean_length", "completion_length", "clip_ratio/region_mean",  # GRPO, RLOO
    "rewards/margins", "logps/chosen",  # DPO and those like it
    "objective/rlhf_reward", "mean_token_accuracy",  # PPO; SFT
)  # fmt: skip


class TrainerDetector:
    """Finds out which trainer writes a console."""

    def __init__(self) -> None:
        self._signed: str | None = None
        self._likely: str | None = None

    @property
    def name(self) -> str | None:
        """Return what the console is called, None where nothing has told so far."""
        return self._signed or self._likely

    def line(self, part: bytes, number: int) -> None:
        """Take a line that is no dict."""
        if number > _FIRST or self._signed is not None:
            return
        if (found := _SIGNED.search(part)) is not None:
            self._signed = SWIFT if found["swift"] else FACTORY

    def dict(self, keys: Container[str]) -> None:
        """Take the keys of a dict of metrics."""
        if self._signed is not None or self._likely == TRL:
            return
        if _SWIFT_KEY in keys:
            self._signed = SWIFT
        else:
            self._likely = TRL if any(key in keys for key in _TRL_KEYS) else OTHER
