"""Finds numbers and distributions among the fields of a record: numbers that were written as texts,
lists of numbers, and bins with their counts. A field may hold a number that names something.

Bins come under many names; W&B writes `values` and `bins` or, of equal width, `packedBins`
(wandb/sdk/data_types/histogram.py).
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.distributions import of_bins, of_values
from verl_tui.patterns import NamePattern, pattern
from verl_tui.records import Histogram, Unreadable
from verl_tui.sources.fields.jsonl import number
from verl_tui.sources.fields.spellings import ending, words
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from verl_tui.distributions import Distribution

_HALF = pattern(
    rf"(?:(.+?)[/_.])?(?:({words('histogram_bounds')})|({words('histogram_counts')}))"
)
_NO_METRIC = ending("counted_list")
"""Lists of numbers that count or name something: ids of tokens above all."""
_NUMBERS = {int, float, bool, type(None)}
_LONGEST_NAME = 250
"""Characters, which leaves room for the name of a quantile."""


class FieldSplit(NamedTuple):
    """The numbers of a record, with its distributions separated."""

    numbers: dict[str, float]
    """Those of distributions are `name/figure`."""
    found: dict[str, Distribution]
    """Distributions by name."""
    flaws: list[Unreadable]
    """Distributions that could not be read, of no line."""


def split(
    fields: Mapping[str, Any], without: Container[str] = (), joint: str = "/"
) -> FieldSplit:
    """Return what a record measures.

    Args:
        fields: Its fields.
        without: Those whose numbers are left out.
        joint: What joins nested names.
    """
    numbers: dict[str, float] = {}
    found: dict[str, Distribution] = {}
    flaws: list[Unreadable] = []
    if list in map(type, fields.values()):
        fields = dict(fields)
        for lists in _lists(fields, joint):
            _add(FieldSplit(numbers, found, flaws), *lists)
    for key, raw in fields.items():
        value = raw if type(raw) is float else number(raw)
        if value is not None and key not in without:
            numbers[key] = value
    for name, one in found.items():
        for part, value in one.figures.items():
            numbers.setdefault(f"{name}/{part}", value)
    return FieldSplit(numbers, found, flaws)


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


def _lists(
    fields: dict[str, Any], joint: str
) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Take the lists of numbers from fields, and yield each with the bounds of bins that it counts
    the values in, if any.
    """
    for kind in [one for one in fields if one.endswith(f"{joint}_type")]:
        if fields[kind] == "histogram":
            _unpack(fields, kind.removesuffix("_type"), joint)
    lists = [name for name, one in fields.items() if type(one) is list]
    for name, of, counts in _halves(lists):
        yield name, fields.pop(counts), fields.pop(of)
    for name in filter(fields.__contains__, lists):
        values = [*_flattened(fields[name])]
        if _is_measured(name, set(map(type, values))):
            del fields[name]
            yield name, values, []


def _halves(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the histograms made of two lists: name, list of bounds, list of counts."""
    halves = list(filter(None, map(_HALF.fullmatch, names)))
    counts = {half[1]: half[0] for half in halves if half[3]}
    bounds = {half[1]: half[0] for half in halves if half[2]}
    both = [one for one in bounds if one in counts]
    return [(one or "histogram", bounds[one], counts[one]) for one in both]


def _is_measured(name: str, kinds: set[type]) -> bool:
    """Return whether a list of things of these kinds is one of numbers that mean something."""
    numbers = bool(kinds - {type(None)}) and not kinds - _NUMBERS
    return numbers and not _NO_METRIC.fullmatch(name)


def _unpack(fields: dict[str, Any], within: str, joint: str) -> None:
    """Make one of W&B's histograms two lists like any other."""
    packed = f"{within}packedBins{joint}"
    first, width, _ = (
        fields.pop(f"{packed}{one}", None) for one in ("min", "size", "count")
    )
    if isinstance(first, int | float) and isinstance(width, int | float):
        edges = range(len(fields.get(f"{within}values") or ()) + 1)
        fields[f"{within}bins"] = [first + at * width for at in edges]


def _add(to: FieldSplit, name: str, values: list[Any], bounds: list[Any]) -> None:
    """Add a distribution, or what is wrong with it."""
    try:
        one = _of_bins(bounds, values) if bounds else _of_list(to, name, values)
    except (ArithmeticError, ValueError) as error:
        to.flaws.append(Unreadable(0, f"{name}: {error}", ""))
        return
    if one is not None:
        to.found[safe(name, _LONGEST_NAME)] = one
    elif bounds:
        to.flaws.append(Unreadable(0, f"{name}: it is empty", ""))


def _of_list(to: FieldSplit, name: str, values: list[Any]) -> Distribution | None:
    known = [math.nan if one is None else float(one) for one in map(number, values)]
    finite = list(filter(math.isfinite, known))
    if odd := len(values) - len(finite):
        are = f"{odd:,} of {len(values):,} values are not finite"
        to.flaws.append(Unreadable(0, f"{name}: {are}", ""))
    return of_values(finite)


def _of_bins(bounds: list[Any], counts: list[Any]) -> Distribution | None:
    known = [number(one) for one in (*bounds, *counts)]
    if None in known:
        raise ValueError("a histogram of something other than numbers")
    numbers = [one for one in known if one is not None]
    return of_bins(numbers[: len(bounds)], numbers[len(bounds) :])


def _flattened(value: list[Any]) -> Iterator[Any]:
    """Yield what a list and the lists within it hold."""
    for one in value:
        if type(one) is list:
            yield from _flattened(one)
        else:
            yield one


# -- what is no number -----------------------------------------------------------------------------

_NAME = NamePattern(
    r"(?:.*[/.])?(?:(?:.+_)?(?:id|idx|index|pid|ppid|port|seed|uuid)|rank|device|node|host"
    r"|hostname|worker"
    r"|(?:local|global|world|node|group|worker|replica|[dtpsec]p)_rank)",
    re.IGNORECASE,
)
"""Fields whose numbers are names. `effective_rank` and `mean_rank` are measurements."""
_QUOTED = pattern(
    r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[-+]?\d{1,4})?|nan|[-+]?inf(?:inity)?",
    re.IGNORECASE,
)
_WORDS = ending("text")
"""Fields whose texts stay texts though they may be digits."""


@lru_cache(10_000)
def is_name(field: str) -> bool:
    """Return True if a field's number is a name and not a measurement."""
    return _NAME.fullmatch(field) is not None


def unquoted(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with numbers that were written as texts, unless these name something."""
    if str not in map(type, fields.values()):
        return fields
    return {name: _unquoted(name, value) for name, value in fields.items()}


def _unquoted(name: str, value: object) -> object:
    if not isinstance(value, str) or not _QUOTED.fullmatch(value):
        return value
    return value if is_name(name) or _WORDS.fullmatch(name) else float(value)
