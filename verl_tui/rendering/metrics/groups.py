"""Metrics by the prefix of their keys, and shelves of a grid."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

OTHER = "other"
"""Keys that share their prefix with no other."""
_MANY = 24
"""Keys from which on a group is divided by the next part of their names."""
_FEW = 3
"""Keys that such a part needs for a group of its own."""
_MACHINES = "system"
"""Prefix of what W&B and the tutorials log of GPUs, processors, disks and networks."""
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Metrics whose keys begin alike."""

    name: str
    """The prefix without its slash, `other` where there is none; empty for a list that is not
    grouped.
    """
    keys: tuple[str, ...]

    def short(self, key: str) -> str:
        """Return a key without what the group's name says already."""
        return key.removeprefix(f"{self.name}/")


@dataclass(frozen=True, slots=True)
class Shelf:
    """One row of a grid: neighbours of one group."""

    group: MetricGroup
    first: int
    """Place of the first one within the group."""
    keys: tuple[str, ...]


def grouped(keys: Iterable[str]) -> tuple[MetricGroup, ...]:
    """Return all keys by their prefixes: both in the order in which people look for names, then the
    loners.

    Figures of the machines come after all others: W&B logs a dozen of each GPU.
    """
    groups: list[MetricGroup] = []
    machines: list[MetricGroup] = []
    loners: list[str] = []
    for prefix, members in _by_prefix(sorted(keys, key=natural), 1).items():
        if len(members) == 1 or not prefix:
            loners += members
            continue
        found = (
            _divided(prefix, members)
            if len(members) >= _MANY
            else [MetricGroup(prefix, tuple(members))]
        )
        (machines if prefix == _MACHINES else groups).extend(found)
    if loners:
        groups.append(MetricGroup(OTHER, tuple(sorted(loners, key=natural))))
    return (*groups, *machines)


def _divided(prefix: str, members: list[str]) -> Iterator[MetricGroup]:
    parts = {
        name: keys for name, keys in _by_prefix(members, 2).items() if name and len(keys) >= _FEW
    }
    taken = {key for keys in parts.values() for key in keys}
    rest = tuple(key for key in members if key not in taken)
    if rest:
        yield MetricGroup(prefix, rest)
    for name, keys in parts.items():
        yield MetricGroup(name, tuple(keys))


def _by_prefix(keys: Iterable[str], parts: int) -> dict[str, list[str]]:
    """Return keys by so many parts of their names; those that have no more than that are under the
    empty name.
    """
    found: dict[str, list[str]] = {}
    for key in keys:
        words = key.split("/", parts)
        found.setdefault("/".join(words[:parts]) if len(words) > parts else "", []).append(key)
    return found


def natural(key: str) -> tuple[object, ...]:
    """Return what sorts names as people do: `layer2` before `layer10`, capitals beside small
    letters.
    """
    parts = _DIGITS.split(key.lower())
    return (
        *(
            (part, len(digits), digits)
            for part, digits in zip(parts[::2], [*parts[1::2], ""], strict=True)
        ),
        key,
    )


def shelves(groups: Sequence[MetricGroup], columns: int) -> tuple[Shelf, ...]:
    """Return the rows of a grid of so many columns; each group begins a new one."""
    return tuple(
        Shelf(group, at, group.keys[at : at + columns])
        for group in groups
        for at in range(0, len(group.keys), max(1, columns))
    )
