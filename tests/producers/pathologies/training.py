"""What a training of the bench is: what is done to it, and what an expert who looks at its curves
says.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Half = Literal["tuned", "held_out"]

OWN = ("rewards", "weights", "prompts", "gens", "limit", "log", "eval", "samples", "flip", "events")  # fmt: skip
"""Options of `train.py` that are not GRPOConfig's."""

FAMILIES = {
    "collapse": ("policy-collapse", "entropy-collapse"),
    "cost": ("reward-at-cost", "reward-hacking", "component-imbalance"),
    "longer": ("length-explosion", "response-long", "truncation"),
    "shorter": ("response-shrink", "response-short", "length-collapse"),
    "falls": (
        "reward-cliff",
        "reward-slide",
        "circuit-breaker-reward",
        "policy-collapse",
    ),
    "no_learning": ("nothing-learns", "no-learning", "no-signal"),
    "dead": ("dead-groups", "no-signal"),
    "far": ("ref-kl-high", "ref-kl-rising", "ref-kl-above-band", "kl-high"),
}
"""Findings that name one kind of fault."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a training."""

    onset: int
    """First step at which it is there."""
    by: int
    """Step by which an expert who looks at the curves says so."""
    named: tuple[str, ...]
    """Findings that name it; any other warning sees it in part."""


@dataclass(frozen=True)
class Training:
    """One run of the bench."""

    name: str
    why: str
    """The truth about it, by its scalars."""
    task: str
    steps: int
    seed: int
    options: dict[str, Any]
    """See `train.py`."""
    fault: Fault | None = None
    """None where it is healthy."""
    true: tuple[str, ...] = field(default=())
    """Findings that are right although it is healthy, or beside its fault."""

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings by TRL's names, as far as they are chosen here."""
        asked = self.options
        gens = asked.get("gens", 8)
        return {
            "learning_rate": 1e-3,
            "beta": 0.02,
            "epsilon": 0.2,
            "max_grad_norm": 1.0,
            "temperature": 1.0,
            **{key: value for key, value in asked.items() if key not in OWN},
            "max_completion_length": asked.get("limit", 16),
            "num_generations": gens,
            "per_device_train_batch_size": asked.get("prompts", 3) * gens,
            "logging_steps": asked.get("log", 1),
            "max_steps": self.steps,
            **({"eval_steps": asked["eval"]} if "eval" in asked else {}),
        }


@cache
def halves() -> dict[Half, tuple[Training, ...]]:
    """Return all trainings, by the half of the bench."""
    return {
        half: tuple(_listed(Path(__file__).with_name(f"{half}.toml")))
        for half in get_args(Half)
    }


def _listed(path: Path) -> list[Training]:
    entry = tomllib.loads(path.read_text(encoding="utf-8"))["training"]
    return [
        Training(
            **{
                **one,
                "fault": _fault(one.get("fault")),
                "true": tuple(one.get("true", ())),
            }
        )
        for one in entry
    ]


def _fault(entry: dict[str, Any] | None) -> Fault | None:
    if entry is None:
        return None
    named = (id for word in entry["named"] for id in FAMILIES.get(word, (word,)))
    return Fault(entry["onset"], entry["by"], tuple(dict.fromkeys(named)))
