"""Detects which trainer writes a console from the console itself.

The shape of metrics is the best evidence: verl's step lines, slime's and OpenRLHF's named dicts,
keys that only one trainer's dicts have. ms-swift's and LLaMA-Factory's loggers sign their lines
(`[INFO:swift]`, `[INFO|2026-11-22 17:51:29] llamafactory.hparams.parser:523 >>`, before version 0.9
`- INFO - llamafactory.hparams.parser -`); both use TRL's trainers, so their signature goes before
TRL's keys. A log without metrics, such as a start that failed, has names of modules in it at least.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

VERL, SLIME, OPENRLHF = "verl console", "slime console", "OpenRLHF console"
SWIFT, FACTORY, TRL = "ms-swift console", "LLaMA-Factory console", "TRL console"
NEMO, PRIME, OTHER = "NeMo-RL console", "prime-rl console", "Hugging Face console"
_FIRST = 2000
"""First lines in which a trainer's name is looked for: all of them show it at once."""
_SIGNED = pattern(
    rb"(?P<swift>\[(?:DEBUG|INFO|WARNING|ERROR):swift\])"
    rb"|\b(?:llamafactory|llmtuner)(?:\.[a-z_]{1,40}){1,5}(?::\d{1,5} >>| - )"
)
_MENTIONED = pattern(
    rb"(?P<verl>\bverl[/.](?:trainer|workers|utils|single_controller|experimental|models|recipe)\b"
    rb"|\bactor_rollout_ref\b|\((?:TaskRunner|main_task|WorkerDict) pid="
    rb"|^ray init kwargs: \{|^validation generation end)"
    rb"|(?P<swift>\bswift[/.](?:cli|llm|megatron|pipelines|plugin|rlhf_trainers|trainers)\b)"
    rb"|(?P<factory>\b(?:llamafactory|llmtuner)[/.]"
    rb"(?:chat|cli|data|extras|hparams|launcher|model|train)\b)"
    rb"|(?P<openrlhf>\bopenrlhf[/.](?:cli|datasets|models|trainer|utils)\b)"
    rb"|(?P<slime>\bslime[/.](?:backends|ray|rollout|utils)\b)"
    rb"|(?P<nemo>\bnemo_rl[/.][a-z_])|(?P<prime>\bprime_rl[/.][a-z_])"
    rb"|(?P<trl>\btrl[/.](?:core|data_utils|experimental|extras|import_utils|models|scripts"
    rb"|trainer)\b"
    rb"|\bfrom trl import |No module named 'trl')"
    rb"|(?P<other>\btransformers[/.]train\w{0,20}\b|\*{5} Running training \*{5})"
)
"""Modules of trainers, as tracebacks and loggers name them, and verl's own first lines."""
_NAMES = {
    "verl": VERL, "swift": SWIFT, "factory": FACTORY, "openrlhf": OPENRLHF, "slime": SLIME,
    "nemo": NEMO, "prime": PRIME, "trl": TRL, "other": OTHER,
}  # fmt: skip
"""Trainers by the groups of `_MENTIONED`; those that build on others come before these."""
_ON_TRANSFORMERS = (SWIFT, FACTORY, TRL)
"""Trainers that print the dicts of transformers' trainer."""
_WORDS = {
    VERL: ("verl", "actor_rollout_ref", " pid=", "ray init", "validation generation"),
    SWIFT: ("swift",), FACTORY: ("llamafactory", "llmtuner"), OPENRLHF: ("openrlhf",),
    SLIME: ("slime",), NEMO: ("nemo_rl",), PRIME: ("prime_rl",), TRL: ("trl",),
    OTHER: ("transformers", "Running training"),
}  # fmt: skip
"""Every line that mentions a trainer contains one of these."""
_SWIFT_KEY = "global_step/max_steps"
_TRL_KEYS = (
    # GRPO, RLOO
    "frac_reward_zero_std", "completions/mean_length", "completion_length",
    "clip_ratio/region_mean",
    "rewards/margins", "logps/chosen",  # DPO and those like it
    "objective/rlhf_reward", "mean_token_accuracy",  # PPO; SFT
)  # fmt: skip


class TrainerDetector:
    """Detects which trainer writes a console; what was read in which pieces makes no difference."""

    def __init__(self) -> None:
        self._shown: str | None = None
        """By metrics that only this trainer writes so."""
        self._signed: str | None = None
        self._likely: str | None = None
        """By the keys of dicts."""
        self._mentioned: frozenset[str] = frozenset()

    @property
    def name(self) -> str | None:
        """Name of the console after its trainer, None while nothing shows it."""
        possible = _NAMES.values() if self._likely is None else _ON_TRANSFORMERS
        mentioned = (name for name in possible if name in self._mentioned)
        likely = self._likely if self._likely == TRL else next(mentioned, self._likely)
        return self._shown or self._signed or likely

    def looks_at(self, number: int) -> bool:
        """Return True if a line that holds no metrics may still show a trainer's name."""
        return number <= _FIRST and self._shown is None and self._signed is None

    def line(self, prefix: bytes, part: bytes, number: int) -> None:
        """Look for a trainer's name in a line that holds no metrics, behind its prefix."""
        if not self.looks_at(number):
            return
        line = prefix + part
        signed = _SIGNED.search(line)
        if signed is not None:
            self._signed = SWIFT if signed["swift"] else FACTORY
        elif any(map(line.__contains__, _of_others(self._mentioned))):
            found = _MENTIONED.finditer(line)
            self._mentioned |= {_NAMES[one.lastgroup or ""] for one in found}

    def metrics(self, trainer: str) -> None:
        """Note that there are metrics as only one trainer writes them."""
        if self._shown != VERL:
            self._shown = trainer

    def dict(self, keys: Container[str]) -> None:
        """Recognise a trainer by the keys of a dict of metrics."""
        if _SWIFT_KEY in keys:
            self._signed = self._signed or SWIFT
        elif self._likely != TRL:
            self._likely = TRL if any(key in keys for key in _TRL_KEYS) else OTHER


@lru_cache
def _of_others(mentioned: frozenset[str]) -> Sequence[bytes]:
    """Return words of which all lines that mention other trainers than these contain one."""
    others = (words for name, words in _WORDS.items() if name not in mentioned)
    return [word.encode() for words in others for word in words]
