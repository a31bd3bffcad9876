"""Bounds how many metrics are kept of a source: a broken file, or one with a name for each sample,
has any number of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import MetricRows
from verl_tui.words import counted

if TYPE_CHECKING:
    from verl_tui.records import Histogram

MOST = 20_000
"""Metrics of a source: some times what verl logs of hundreds of data sources."""
_MOST_COUNTED = 500_000
"""Names of further metrics that are remembered, to count them."""


class KeptMetrics:
    """The metrics that are kept of one source: those that came first."""

    def __init__(self) -> None:
        self._kept: set[str] = set()
        self._further: set[str] = set()

    @property
    def note(self) -> str | None:
        """Say how many metrics are not kept, None if all are."""
        count = len(self._further)
        if not count:
            return None
        many = counted(count, "further metric is", "further metrics are")
        least = "at least " if count >= _MOST_COUNTED else ""
        return f"{least}{many} not kept: only the first {MOST:,}"

    def of(self, record: MetricRows | Histogram) -> MetricRows | Histogram | None:
        """Return a record with the metrics in it that are kept, None for another's histogram."""
        if not isinstance(record, MetricRows):
            return record if self._keeps(record.key) else None
        if self._kept.issuperset(record.keys):
            return record
        places = [at for at, key in enumerate(record.keys) if self._keeps(key)]
        if len(places) == len(record.keys):
            return record
        return record._replace(
            keys=tuple([record.keys[at] for at in places]),
            columns=tuple([record.columns[at] for at in places]),
        )

    def _keeps(self, key: str) -> bool:
        """Return whether a metric is kept; note it."""
        if key in self._kept:
            return True
        if len(self._kept) < MOST:
            self._kept.add(key)
            return True
        if len(self._further) < _MOST_COUNTED:
            self._further.add(key)
        return False
