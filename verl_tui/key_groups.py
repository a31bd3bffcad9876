"""Which keys of a log's rows are kept together, where rows ever have other keys.

Most logs write a few kinds of rows over and over: all rows with the same keys make one table. But
the keys of a row may depend on its step's batch: there is one for each of the data sources, or
tools, that it happened to have. Thousands of steps then have thousands of sets of keys, and tables
of one row each would take some twenty times the memory, and the time of every look at a metric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import MetricRows

_MOST_WHOLE = 128
"""Kinds of rows that are kept as they are: devices and workers of a large cluster have one each."""
_MOST_CORES = 64
"""How often the core may become smaller."""


class KeyGroups(NamedTuple):
    """How the keys of a row are kept."""

    core: tuple[str, ...]
    """Those that are kept together; empty where the row has little in common with any other."""
    others: tuple[str, ...] = ()
    """Those that are each kept by themselves."""


class KeyGrouping:
    """Divides the keys of a log's rows, from some number of kinds on.

    Most rows of further kinds have many keys in common, the core. It is learnt as the rows come: at
    first it is all keys of such a row, then those of them that similar rows have, too.
    """

    def __init__(self) -> None:
        self._whole: set[tuple[str, ...]] = set()
        self._core: tuple[str, ...] = ()
        self._left = _MOST_CORES

    def of(self, keys: tuple[str, ...]) -> KeyGroups:
        """Return how the keys of the next row are kept."""
        if len(keys) < 2 or keys in self._whole:
            return KeyGroups(keys)
        if len(self._whole) < _MOST_WHOLE:
            self._whole.add(keys)
            return KeyGroups(keys)
        core = self._shared(keys)
        together = frozenset(core)
        return KeyGroups(core, tuple([key for key in keys if key not in together]))

    def parts(self, rows: MetricRows) -> Sequence[MetricRows]:
        """Return the next rows, which share their keys, with those keys apart that are kept
        apart.
        """
        core, others = self.of(rows.keys)
        if core == rows.keys:
            return (rows,)
        columns = dict(zip(rows.keys, rows.columns, strict=True))
        groups = [core] if core else []
        groups += [(key,) for key in others]
        return [
            rows._replace(keys=keys, columns=tuple(map(columns.__getitem__, keys)))
            for keys in groups
        ]

    def _shared(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return the core of a row's keys, empty where they have little in common with others."""
        own = frozenset(keys)
        shared = tuple(filter(own.__contains__, self._core or keys))
        if 3 * len(shared) < len(keys) or (shared != self._core and not self._left):
            return ()
        self._left -= shared != self._core
        self._core = shared
        return shared
