"""Adds up the rewards of samples that state none in total: TRL and ms-swift write one column a
reward function.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from verl_tui.sources.fields.jsonl import loads, number
from verl_tui.sources.files.tail import opened
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_TOTAL = {
    "score",
    "reward",
    "total_reward",
    "acc",
    "accuracy",
    "correct",
    "is_correct",
    "passed",
    "success",
}
_COMPLETION = "completion"
_ADVANTAGE = re.compile(r"advantages?", re.IGNORECASE)
_PART = re.compile(r"(?:.*[/_. ])?rewards?(?:[/_. ].*)?", re.IGNORECASE)
_NO_PART = re.compile(
    r"(?:.*[/_. ])?(?:std|id|ids|index|step|steps|length|len|tokens?|weights?|entropy|logprobs?|seed)",
    re.IGNORECASE,
)
_SETTINGS = ("args.json", "config.yaml")
"""Settings beside a file: ms-swift's, and W&B's of its run."""
_LARGEST = 2**20
"""Bytes; a larger file is no configuration."""
_HIGHEST = 4
"""Folders looked into for settings, the file's own and those above it: W&B keeps tables three below
them.
"""


class RewardSum:
    """Gives samples the sum of their rewards where they state no total, weighted where the weights
    are known.
    """

    def __init__(self, weights: Sequence[float] | None = None, path: Path | None = None) -> None:
        """Begin.

        Args:
            weights: The run's `reward_weights`, in the order of its reward functions.
            path: Where the samples lie, to look for weights in the settings beside them.
        """
        self._weights = weights
        self._path = path
        self._added: tuple[str, ...] = ()

    @property
    def note(self) -> str | None:
        """Return how the rewards were added, None where nothing had to be."""
        if len(self._added) < 2:
            return (
                f"the reward of a sample is its {self._added[0]}: no total is stated"
                if self._added
                else None
            )
        weights = self._fitting(self._added)
        parts = (
            (f"{weight:g} × {name}" for name, weight in zip(self._added, weights, strict=True))
            if weights
            else ()
        )
        said = " + ".join(parts or self._added)
        return f"the reward of a sample is {said}: no total is stated{'' if weights else ', no weights are known'}"

    def complete(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a sample's record with its total reward."""
        if any(number(record.get(name, "")) is not None for name in _TOTAL):
            return record
        parts = _parts(record)
        if not parts:
            return record
        names = tuple(parts)
        if self._path is not None:
            self._weights, self._path = weights_beside(self._path), None
        weights = self._fitting(names) or [1.0] * len(names)
        values = [
            weight * value
            for weight, value in zip(weights, parts.values(), strict=True)
            if value is not None and not math.isnan(value)
        ]
        if not values:
            return record
        self._added = tuple(one_line(name, 60) for name in names)
        return {**record, "reward": sum(values)}

    def _fitting(self, names: Sequence[str]) -> Sequence[float] | None:
        return (
            self._weights
            if self._weights is not None and len(self._weights) == len(names)
            else None
        )


def _parts(record: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the rewards that a record holds, in its order: a function that does not apply to a
    sample gives none.

    Where a record has an advantage, as TRL's and ms-swift's have, all numbers between completion
    and advantage are rewards; elsewhere those that are called so.
    """
    nested = record.get("rewards")
    if isinstance(nested, dict):
        return {str(name): number(value) for name, value in nested.items() if _is_number(value)}
    names = list(record)
    end = next((at for at, name in enumerate(names) if _ADVANTAGE.fullmatch(name)), None)
    if _COMPLETION in names and end is not None:
        between = names[names.index(_COMPLETION) + 1 : end]
        return {
            name: number(record[name])
            for name in between
            if _is_number(record[name]) and not _NO_PART.fullmatch(name)
        }
    called = [name for name in names if _PART.fullmatch(name) and not _NO_PART.fullmatch(name)]
    return {name: number(record[name]) for name in called if _is_number(record[name])}


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int | float)


def weights_beside(path: Path) -> list[float] | None:
    """Return the `reward_weights` in the settings beside a file, None where none are stated."""
    for folder in list(path.parents)[:_HIGHEST]:
        for name in _SETTINGS:
            weights = weights_of(_settings(folder / name))
            if weights is not None:
                return weights
    return None


def weights_of(settings: Mapping[str, Any]) -> list[float] | None:
    """Return the `reward_weights` that settings state."""
    weights = settings.get("reward_weights")
    weights = weights.get("value") if isinstance(weights, dict) else weights
    if not isinstance(weights, list):
        return None
    found = [value for value in map(number, weights) if value is not None]
    return found if found and len(found) == len(weights) else None


def _settings(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _LARGEST:
            return {}
        with opened(path) as file:
            text = file.read()
    except OSError:
        return {}
    if b"reward_weights" not in text:
        return {}
    import yaml  # 20 ms, only where there are weights to be read

    try:
        loaded = loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
