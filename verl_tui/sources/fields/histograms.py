"""Histograms among the fields of a record, as W&B and trackio write them: objects whose `_type`
says so, with `values`, which are counts, and `bins` or, of equal width, `packedBins`
(wandb/sdk/data_types/histogram.py, trackio/histogram.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from verl_tui.distributions import Distribution, of_bins
from verl_tui.records import Histogram
from verl_tui.sources.fields.jsonl import Fields, number
from verl_tui.text import safe

_TYPES = ("histogram", "trackio.histogram")
_LONGEST_NAME = 250
"""Characters, which leaves room for the name of a quantile."""


class FieldHistograms(NamedTuple):
    """The histograms of a record."""

    of: dict[str, Distribution]
    """By name."""
    flaws: list[str]
    """What is wrong with others."""

    @property
    def figures(self) -> dict[str, float]:
        """Their quantiles as metrics, `name/p50`."""
        return {
            f"{name}/{part}": value
            for name, one in self.of.items()
            for part, value in one.figures.items()
        }

    def records(self, step: int) -> Iterator[Histogram]:
        """Yield them as records of a step."""
        for name, one in self.of.items():
            yield Histogram(name, step, *one.bins)


def pop_histograms(fields: Fields, joint: str = "/") -> FieldHistograms:
    """Take the histograms out of fields, whose nested names are joined by a sign."""
    found = FieldHistograms({}, [])
    kind = f"{joint}_type"
    typed = [one for one in fields if one.endswith(kind)]
    for name in [one.removesuffix(kind) for one in typed if fields[one] in _TYPES]:
        parts = _popped(fields, f"{name}{joint}")
        try:
            one = _histogram(parts, f"packedBins{joint}")
            found.of[safe(name, _LONGEST_NAME)] = one
        except (ArithmeticError, ValueError) as error:
            found.flaws.append(f"{name}: {error}")
    return found


def _popped(fields: Fields, prefix: str) -> Fields:
    own = [one for one in fields if one.startswith(prefix)]
    return {one.removeprefix(prefix): fields.pop(one) for one in own}


def _histogram(parts: Fields, packed: str) -> Distribution:
    counts = _numbers(parts.get("values"))
    if f"{packed}min" in parts:
        first, width = _numbers([parts[f"{packed}min"], parts.get(f"{packed}size")])
        edges = [first + at * width for at in range(len(counts) + 1)]
    else:
        edges = _numbers(parts.get("bins"))
    found = of_bins(edges, counts) if counts else None
    if not found:
        raise ValueError("it is empty")
    return found


def _numbers(values: object) -> list[float]:
    known = list(map(number, values)) if isinstance(values, list) else [None]
    found = [one for one in known if one is not None]
    if found != known:
        raise ValueError("a histogram of something other than numbers")
    return found
