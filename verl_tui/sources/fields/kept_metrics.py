"""Bounds how many metrics are kept of a source: a broken file, or one with a name for each sample,
has any number of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import MetricRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import Histogram

MOST = 20_000
"""Metrics of a source: some times what verl logs of hundreds of data sources."""


class KeptMetrics:
    """The metrics that are kept of one source: those that came first."""

    def __init__(self) -> None:
        self._kept: set[str] = set()
        self._is_full = False
        """True if there were more."""

    @property
    def note(self) -> str | None:
        """Say that not all metrics are kept, None if they are."""
        return f"only the first {MOST:,} metrics are kept" if self._is_full else None

    def of(self, record: MetricRows | Histogram) -> MetricRows | Histogram | None:
        """Return a record with the metrics in it that are kept, None for another's histogram."""
        keys = record.keys if isinstance(record, MetricRows) else (record.key,)
        if self._kept.issuperset(keys) or self._learns(keys):
            return record
        if not isinstance(record, MetricRows):
            return None
        places = [at for at, key in enumerate(keys) if key in self._kept]
        return record._replace(
            keys=tuple([keys[at] for at in places]),
            columns=tuple([record.columns[at] for at in places]),
        )

    def _learns(self, keys: Sequence[str]) -> bool:
        """Keep new metrics as far as there is room; return whether there is for all."""
        new = [key for key in keys if key not in self._kept]
        room = MOST - len(self._kept)
        self._kept.update(new[:room])
        self._is_full |= len(new) > room
        return len(new) <= room
