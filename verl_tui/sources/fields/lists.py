"""Finds distributions among the fields of a record: lists of numbers, and bins with their counts.

Bins come under many names; W&B writes `values` and `bins` or, of equal width, `packedBins`
(wandb/sdk/data_types/histogram.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verl_tui.distributions import of_bins, of_values
from verl_tui.patterns import pattern
from verl_tui.records import Histogram, Unreadable
from verl_tui.sources.fields.jsonl import number
from verl_tui.sources.fields.spellings import ending, words
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from verl_tui.distributions import Distribution

_HALF = pattern(
    rf"(?:(.+?)[/_.])?(?:({words('histogram_bounds')})|({words('histogram_counts')}))"
)
_NO_METRIC = ending("counted_list")
"""Lists of numbers that count or name something: ids of tokens above all."""
_NUMBERS = {int, float, bool, type(None)}
_LONGEST_NAME = 250
"""Characters, which leaves room for the name of a quantile."""


@dataclass(slots=True)
class FieldSplit:
    """The fields of a record, with its distributions separated."""

    rest: Mapping[str, Any]
    """Fields that belong to no distribution."""
    found: dict[str, Distribution] = field(default_factory=dict)
    """Distributions by name."""
    flaws: list[Unreadable] = field(default_factory=list)
    """Distributions that could not be read, of no line."""

    def numbers(self, without: Collection[str] = ()) -> dict[str, float]:
        """Return all numbers except the fields `without`; distributions' are `name/figure`."""
        found: dict[str, float] = {}
        for key, raw in self.rest.items():
            value = raw if type(raw) is float else number(raw)
            if value is not None and key not in without:
                found[key] = value
        for name, one in self.found.items():
            for part, value in one.figures.items():
                found.setdefault(f"{name}/{part}", value)
        return found

    def add(
        self, name: str, read: Callable[..., Distribution | None], *numbers: list[Any]
    ) -> None:
        """Add the distribution that `read` returns, or a flaw that says why it cannot be read."""
        try:
            one = read(*numbers)
        except (ArithmeticError, TypeError, ValueError) as error:
            self.flaws.append(Unreadable(0, f"{name}: {error}", ""))
            return
        if one is None:
            self.flaws.append(Unreadable(0, f"{name}: it is empty", ""))
        else:
            self.found[safe(name, _LONGEST_NAME)] = one


def split(fields: Mapping[str, Any], joint: str = "/") -> FieldSplit:
    """Find the distributions among a record's fields, whose nested names are joined by `joint`."""
    if list not in map(type, fields.values()):
        return FieldSplit(fields)
    rest = dict(fields)
    found = FieldSplit(rest)
    for kind in [one for one in fields if one.endswith(f"{joint}_type")]:
        if rest[kind] == "histogram":
            _unpack(rest, kind.removesuffix("_type"), joint)
    for name, bounds, counts in _halves(rest):
        found.add(name, _histogram, rest.pop(bounds), rest.pop(counts))
    for name, value in [*rest.items()]:
        if type(value) is list and _add_list(found, name, [*_flattened(value)]):
            del rest[name]
    return found


def _halves(fields: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the histograms made of two lists: name, list of bounds, list of counts."""
    bounds: dict[str, str] = {}
    counts: dict[str, str] = {}
    for name in [one for one in fields if type(fields[one]) is list]:
        if half := _HALF.fullmatch(name):
            (bounds if half[2] else counts)[half[1] or "histogram"] = name
    return [(name, of, counts[name]) for name, of in bounds.items() if name in counts]


def _unpack(rest: dict[str, Any], within: str, joint: str) -> None:
    """Make one of W&B's histograms two lists like any other."""
    del rest[f"{within}_type"]
    packed = f"{within}packedBins{joint}"
    if f"{packed}min" in rest:
        first, width, _ = (
            number(rest.pop(f"{packed}{one}", None)) for one in ("min", "size", "count")
        )
        edges = range(len(rest.get(f"{within}values") or ()) + 1)
        rest[f"{within}bins"] = [(first or 0.0) + at * (width or 0.0) for at in edges]


def _histogram(bounds: list[Any], counts: list[Any]) -> Distribution | None:
    known = [number(one) for one in (*bounds, *counts)]
    if None in known:
        raise ValueError("a histogram of something other than numbers")
    return of_bins(known[: len(bounds)], known[len(bounds) :])  # type: ignore[arg-type]


def histograms(
    found: Mapping[str, Distribution],
    step: int,
    prefix: str = "",
    *,
    mean: bool = False,
) -> Iterator[Histogram]:
    """Yield distributions as records of a step, with a prefix before their names."""
    for name, one in found.items():
        yield Histogram(prefix + name, step, *one.bins, mean=mean)


def _add_list(found: FieldSplit, name: str, values: list[Any]) -> bool:
    """Add the distribution of one list; return False if it holds none."""
    kinds = set(map(type, values))
    if not kinds - {type(None)} or kinds - _NUMBERS or _NO_METRIC.fullmatch(name):
        return False
    finite = [
        one for one in map(number, values) if one is not None and math.isfinite(one)
    ]
    if odd := len(values) - len(finite):
        are = f"{odd:,} of {len(values):,} values are not finite"
        found.flaws.append(Unreadable(0, f"{name}: {are}", ""))
    if finite:
        found.add(name, of_values, finite)
    return True


def _flattened(value: list[Any]) -> Iterator[Any]:
    """Yield what a list and the lists within it hold."""
    for one in value:
        if type(one) is list:
            yield from _flattened(one)
        else:
            yield one
