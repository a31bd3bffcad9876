"""Metrics grouped by the prefix of their keys, and the rows of a grid of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from verl_tui.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

OTHER = "other"
"""Group of the keys that share their prefix with no other."""
_MANY = 24
"""Size from which on a group is divided by the next part of the keys."""
_FEW = 3
"""Smallest size of such a subgroup."""
_MACHINES = "system"
"""Prefix of the machine metrics (GPUs, CPUs, disks, networks) of W&B and the tutorials."""
_DIGITS = pattern(r"(\d+)")


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Metrics whose keys begin alike."""

    name: str
    """The prefix without its slash, `other` without one; empty for a list without groups."""
    keys: tuple[str, ...]

    def short(self, key: str) -> str:
        """Return a key without the group's prefix."""
        return key.removeprefix(f"{self.name}/")


@dataclass(frozen=True, slots=True)
class Shelf:
    """One row of a grid: neighbours of one group."""

    group: MetricGroup
    first: int
    """Position of the first key within the group."""
    keys: tuple[str, ...]


def grouped(keys: Iterable[str]) -> tuple[MetricGroup, ...]:
    """Group keys by prefix in natural order; lone keys come late, machine metrics last."""
    groups: list[MetricGroup] = []
    machines: list[MetricGroup] = []
    loners: list[str] = []
    for prefix, members in _by_prefix(sorted(keys, key=natural), 1).items():
        if len(members) == 1 or not prefix:
            loners += members
            continue
        (machines if prefix == _MACHINES else groups).extend(_divided(prefix, members))
    if loners:
        groups.append(MetricGroup(OTHER, tuple(sorted(loners, key=natural))))
    return (*groups, *machines)


def _divided(prefix: str, members: list[str]) -> Iterator[MetricGroup]:
    """Yield a group, if it is large with its subgroups as groups of their own."""
    if len(members) < _MANY:
        yield MetricGroup(prefix, tuple(members))
        return
    parts = _by_prefix(members, 2)
    large = {name: keys for name, keys in parts.items() if name and len(keys) >= _FEW}
    taken = set(chain.from_iterable(large.values()))
    if rest := tuple(key for key in members if key not in taken):
        yield MetricGroup(prefix, rest)
    for name, keys in large.items():
        yield MetricGroup(name, tuple(keys))


def _by_prefix(keys: Iterable[str], parts: int) -> dict[str, list[str]]:
    """Map the first `parts` parts of keys to the keys; shorter keys come under the empty name."""
    found: dict[str, list[str]] = {}
    for key in keys:
        words = key.split("/", parts)
        found.setdefault("/".join(words[:parts]) if len(words) > parts else "", []).append(key)
    return found


def natural(key: str) -> tuple[object, ...]:
    """Return a sort key for natural order: `layer2` before `layer10`, case ignored."""
    parts = _DIGITS.split(key.lower())
    return (
        *(
            (part, len(digits), digits)
            for part, digits in zip(parts[::2], [*parts[1::2], ""], strict=True)
        ),
        key,
    )


def shelves(groups: Sequence[MetricGroup], columns: int) -> tuple[Shelf, ...]:
    """Return the rows of a grid with `columns` columns; each group begins a new row."""
    return tuple(
        Shelf(group, at, group.keys[at : at + columns])
        for group in groups
        for at in range(0, len(group.keys), max(1, columns))
    )
