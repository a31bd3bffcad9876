"""Finds distributions among the fields of a record: lists of numbers, and bins with their counts.

Bins come under many names: `np.histogram` gives counts and one edge more, W&B writes `values` and
`bins` (or, of equal width, `packedBins`; wandb/sdk/data_types/histogram.py), TensorBoard's protocol
has `bucket` and `bucket_limit`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from verl_tui.distributions import of_bins, of_limits, of_values
from verl_tui.patterns import pattern
from verl_tui.records import Histogram
from verl_tui.sources.fields.jsonl import Flaw, number
from verl_tui.sources.fields.spellings import ending, names, words
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from verl_tui.distributions import Distribution

_HALF = pattern(
    rf"(?:(.+?)[/_.])?(?:({words('histogram_bounds')})|({words('histogram_counts')}))"
)
_NAMES = names("histogram_name")
"""Fields that name a histogram whose bins are fields of the record itself."""
_NO_METRIC = ending("counted_list")
"""Lists of numbers that count or name something: ids of tokens above all."""
_MEASURED = pattern(
    r"reward|score|loss|kl|entropy|advantage|return|logp|ratio|norm|acc", re.IGNORECASE
)
"""In the name of a list of numbers: where all of them are null, none was finite."""
_NUMBERS = {int, float, bool, type(None)}
_DEEPEST = 4
"""Deepest nesting of a list of numbers; a list of answers for each prompt has two levels."""
_LONGEST_NAME = 250
"""Characters, which leaves room for the name of a quantile."""
_MISSING = object()


@dataclass(slots=True)
class FieldSplit:
    """The fields of a record, with its distributions separated."""

    rest: Mapping[str, Any]
    """Fields that belong to no distribution."""
    found: dict[str, Distribution] = field(default_factory=dict)
    """Distributions by name."""
    flaws: list[Flaw] = field(default_factory=list)
    """Distributions that could not be read."""

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
        self, name: str, read: Callable[..., Distribution | None], *arguments: object
    ) -> None:
        """Add the distribution that `read` returns, or a flaw that says why it cannot be read."""
        try:
            one = read(*arguments)
        except (ArithmeticError, TypeError, ValueError) as error:
            self.flaws.append(Flaw(f"{name}: {error}"))
            return
        if one is None:
            self.flaws.append(Flaw(f"{name}: it is empty"))
        else:
            self.found[safe(name, _LONGEST_NAME)] = one


def split(fields: Mapping[str, Any], joint: str = "/") -> FieldSplit:
    """Find the distributions among a record's fields, whose nested names are joined by `joint`."""
    if list not in map(type, fields.values()):
        return FieldSplit(fields)
    rest = dict(fields)
    found = FieldSplit(rest)
    kind = f"{joint}_type"
    for typed in [one for one in fields if one.endswith(kind)]:
        if fields[typed] == "histogram":
            _take_typed(found, rest, typed.removesuffix(kind), joint)
    for halves in _halves(rest):
        _take_halves(found, rest, *halves, joint)
    for name, value in [*rest.items()]:
        if type(value) is list and _add_list(found, name, value):
            del rest[name]
    return found


def _take_typed(found: FieldSplit, rest: dict[str, Any], name: str, joint: str) -> None:
    """Take the fields of one of W&B's histograms out of a record."""
    within = f"{name}{joint}"
    keys = [key for key in rest if key.startswith(within)]
    parts = {key.removeprefix(within): rest.pop(key) for key in keys}
    found.add(name, _of_wandb, parts, f"packedBins{joint}")


def _take_halves(
    found: FieldSplit,
    rest: dict[str, Any],
    name: str,
    bounds: str,
    counts: str,
    joint: str,
) -> None:
    """Take a histogram made of two lists out of a record; its ends may stand beside them."""
    before = f"{name}{joint}" if name else ""
    ends = (rest.get(f"{before}{end}", _MISSING) for end in ("min", "max"))
    halves = rest.pop(bounds), rest.pop(counts)
    stated = (one for one in map(rest.get, _NAMES) if one and isinstance(one, str))
    found.add(name or next(stated, "histogram"), _histogram, *halves, *ends)


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


def _add_list(found: FieldSplit, name: str, value: list[Any]) -> bool:
    """Add the distribution of one list; return False if it holds none."""
    if not value or _NO_METRIC.fullmatch(name):
        return False
    if _is_numpy(value):
        found.add(name, of_bins, *value[::-1])
        return True
    flat = [*_flattened(value)] if list in map(type, value) else value
    kinds = set(map(type, flat))
    if not kinds <= _NUMBERS:
        return False
    if kinds <= {type(None)} and not _MEASURED.search(name):
        return False  # texts or things of which there is none here
    _add_numbers(found, name, flat)
    return True


def _add_numbers(found: FieldSplit, name: str, values: list[Any]) -> None:
    numbers = [math.nan if one is None else number(one) or 0.0 for one in values]
    finite = list(filter(math.isfinite, numbers))
    if len(finite) < len(numbers):
        odd = f"{len(numbers) - len(finite):,} of {len(numbers):,} values"
        found.flaws.append(Flaw(f"{name}: {odd} are not finite"))
    if finite:
        found.add(name, of_values, finite)


def _flattened(value: list[Any], depth: int = _DEEPEST) -> Iterator[Any]:
    """Yield what a list and the lists within it hold; a list that is nested too deeply as such."""
    for one in value:
        if type(one) is list and depth:
            yield from _flattened(one, depth - 1)
        else:
            yield one


def _halves(fields: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the histograms made of two lists: name, list of bounds, list of counts."""
    bounds: dict[str, str] = {}
    counts: dict[str, str] = {}
    for name in [one for one in fields if type(fields[one]) is list]:
        if half := _HALF.fullmatch(name):
            (bounds if half[2] else counts).setdefault(half[1] or "", name)
    return [(name, of, counts[name]) for name, of in bounds.items() if name in counts]


def _histogram(
    bounds: object, counts: object, low: object, high: object
) -> Distribution | None:
    """Return the distribution of two lists; with equal lengths, `min` and `max` complete them."""
    limits, many = _strictly(bounds), _strictly(counts)
    least, most = number(low), number(high)
    if len(limits) == len(many) and least is not None and most is not None:
        return of_limits(least, most, limits, many)
    return of_bins(limits, many)


def _of_wandb(parts: Mapping[str, Any], packed: str) -> Distribution | None:
    """Return the distribution of a W&B histogram: counts with edges, or with start and width."""
    counts = _strictly(parts.get("values"))
    if "bins" in parts or f"{packed}min" not in parts:
        return of_bins(_strictly(parts.get("bins")), counts)
    first, width = _strictly(
        [parts.get(f"{packed}{one}", "") for one in ("min", "size")]
    )
    return of_bins([first + at * width for at in range(len(counts) + 1)], counts)


def _is_numpy(value: list[Any]) -> bool:
    """Return True for the result of `np.histogram`: counts, and edges, one more than these."""
    if len(value) != 2 or not all(type(part) is list and part for part in value):
        return False
    counts, edges = value
    types = set(map(type, (*counts, *edges)))
    if len(edges) != len(counts) + 1 or not types <= {int, float}:
        return False
    return min(counts) >= 0 and all(one < other for one, other in pairwise(edges))


def _strictly(value: object) -> list[float]:
    """Return the numbers of one half of a histogram.

    Raises:
        ValueError: It is none, or an entry is no number.
    """
    if not isinstance(value, list):
        raise ValueError("a histogram without bounds or counts")
    numbers = [known for one in value if (known := number(one)) is not None]
    if len(numbers) < len(value):
        raise ValueError("a histogram of something other than numbers")
    return numbers
