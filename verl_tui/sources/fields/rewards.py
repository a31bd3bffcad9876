"""Sums the rewards of samples without a total: TRL and ms-swift write a column a function."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import number
from verl_tui.sources.fields.sample import (
    SCORE_NAMES,
    read_sample,
    summed_score,
)
from verl_tui.sources.fields.spellings import ending
from verl_tui.sources.files import opened
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from verl_tui.records import Sample

_COMPLETION = "completion"
_ADVANTAGE = pattern(r"advantages?", re.IGNORECASE)
_PART = pattern(r"(?:.*[/_. ])?rewards?(?:[/_. ].*)?", re.IGNORECASE)
_NO_PART = ending("no_reward")
_SETTINGS = ("args.json", "config.yaml")
"""Settings beside a file: ms-swift's, and W&B's of its run."""
_LARGEST = 2**20
"""Bytes of such a file that are looked through."""
_WEIGHTS = pattern(
    rb'\breward_weights"?\s*:\s*(?:desc:\s*\S*\s*)?(?:value:\s*)?([][\s,.\deE+-]{1,1000})'
)
"""As both write them: a list of JSON, or of YAML, with W&B's own words around it."""
_WEIGHT = pattern(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_HIGHEST = 4
"""Folders searched for settings, from the file's own up: W&B's tables are three below them."""


class RewardSum:
    """Gives samples without a total reward the sum of their rewards, weighted if possible."""

    def __init__(
        self, weights: Sequence[float] | None = None, path: Path | None = None
    ) -> None:
        """Begin.

        Args:
            weights: The run's `reward_weights`, in the order of its reward functions.
            path: The file of the samples; weights are looked for in the settings beside it.
        """
        self._weights = weights
        self._path = path
        self._added: tuple[str, ...] = ()
        self._tokens = ""
        """A field that holds a list, whose numbers are a sample's score together."""

    @property
    def note(self) -> str | None:
        """Say how the rewards were summed, None if they were not."""
        if self._tokens:
            return f"the score of a sample is the sum of its list {self._tokens}"
        if not self._added:
            return None
        weights, many = self._fitting(self._added), len(self._added) > 1
        unknown = ", no weights are known" if many and not weights else ""
        pairs = zip(weights or self._added, self._added, strict=True)
        terms = [f"{weight:g} × {name}" if weights else name for weight, name in pairs]
        total = " + ".join(terms) if many else f"its {self._added[0]}"
        return f"the reward of a sample is {total}: no total is stated{unknown}"

    def complete(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a sample's record with its total reward."""
        if any(number(record.get(name, "")) is not None for name in SCORE_NAMES):
            return record
        if (name := summed_score(record)) is not None:
            self._tokens = one_line(name, 60)
            return record
        parts = _parts(record)
        total = self._sum(parts) if parts else None
        if total is None:
            return record
        self._added = tuple(one_line(name, 60) for name in parts)
        return {**record, "reward": total}

    def sample(
        self, record: Mapping[str, Any], step: int | None, *, validation: bool = False
    ) -> Sample | None:
        """Return the sample of a record with its total reward, None where it holds none.

        Args:
            record: Its fields by their plain names.
            step: The step to use where the record states none.
            validation: Whether it comes from a validation.
        """
        return read_sample(self.complete(record), step, validation=validation)

    def _sum(self, parts: Mapping[str, float | None]) -> float | None:
        """Return the weighted sum of rewards, None if all are missing."""
        if self._path is not None:
            self._weights = weights_beside(self._path)
            self._path = None
        weights = self._fitting(tuple(parts)) or [1.0] * len(parts)
        pairs = zip(weights, parts.values(), strict=True)
        values = [
            weight * one
            for weight, one in pairs
            if one is not None and one == one  # noqa: PLR0124 - not NaN
        ]
        return sum(values) if values else None

    def _fitting(self, names: Sequence[str]) -> Sequence[float] | None:
        """Return the weights if there is one for each name."""
        fits = self._weights is not None and len(self._weights) == len(names)
        return self._weights if fits else None


def _parts(record: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the rewards of a record in its order, None for a function that does not apply.

    In records with an advantage, such as TRL's and ms-swift's, all numbers between completion and
    advantage are rewards; in others the fields with such a name.
    """
    nested = record.get("rewards")
    rewards: Mapping[str, Any] = nested if isinstance(nested, dict) else record
    names = rewards if rewards is nested else _part_names(list(record))
    parts = {name: rewards[name] for name in names}
    return {
        str(name): number(one)
        for name, one in parts.items()
        if isinstance(one, int | float | None)
    }


def _part_names(names: list[str]) -> list[str]:
    """Return the fields that may be rewards."""
    end = next(filter(_ADVANTAGE.fullmatch, names), None)
    if _COMPLETION in names and end is not None:
        parts = names[names.index(_COMPLETION) + 1 : names.index(end)]
    else:
        parts = [name for name in names if _PART.fullmatch(name)]
    return [name for name in parts if not _NO_PART.fullmatch(name)]


def weights_beside(path: Path) -> list[float] | None:
    """Return the `reward_weights` in the settings beside a file, None if there are none."""
    for folder in list(path.parents)[:_HIGHEST]:
        for name in _SETTINGS:
            with suppress(OSError), opened(folder / name) as file:
                found = _WEIGHTS.search(file.read(_LARGEST))
                if found and (weights := _WEIGHT.findall(found[1])):
                    return list(map(float, weights))
    return None


def weights_of(settings: Mapping[str, Any]) -> list[float] | None:
    """Return the `reward_weights` that settings state."""
    weights = settings.get("reward_weights")
    found = [number(one) for one in weights] if isinstance(weights, list) else []
    known = [one for one in found if one is not None]
    return known if known and len(known) == len(found) else None
