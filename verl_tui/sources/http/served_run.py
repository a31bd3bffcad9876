"""One run that a Prometheus server has series of, and the rows of it that wait to be read."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from time import localtime, strftime
from typing import TYPE_CHECKING

from verl_tui.sources.fields.row_batcher import RowBatcher
from verl_tui.sources.http.prometheus_answers import AnswerRows

if TYPE_CHECKING:
    from verl_tui.records import Record
    from verl_tui.sources.http.prometheus_queries import Labels

_STALE = 300.0
"""Seconds for which Prometheus takes a series for alive after its last sample."""


@dataclass(slots=True)
class ServedRun:
    """One run that a server has series of."""

    name: str
    labels: Labels
    """Labels that distinguish its series from those of others; empty for figures of no run."""
    names: set[str] = field(default_factory=set)
    series: int = 0
    """How many it has at most at a time."""
    span: tuple[float, float] | None = None
    """When its steps were seen first and last."""
    rows: AnswerRows = field(default_factory=AnswerRows)
    batcher: RowBatcher = field(default_factory=RowBatcher)
    waiting: deque[tuple[Record, ...]] = field(default_factory=deque)
    """Batches of rows that wait to be read."""
    loaded: bool = False
    coarse: float | None = None
    """Seconds between two points of its past, where that is more than between two scrapes."""
    received: int = 0
    """Bytes of the answers about it; its share of those about several runs."""
    absent: float | None = None
    """Since when the server has had nothing new of it."""

    def goes_on(self, now: float) -> bool:
        """Return whether the server still has something new of it."""
        if self.loaded:
            return self.absent is None
        return self.span is not None and now - self.span[1] <= _STALE

    def hand_on(self) -> None:
        """Put what has been gathered where it is taken from."""
        if records := self.batcher.take():
            self.waiting.append(records)

    def note(self, interval: float) -> str | None:
        """Say how exact its past is, given the seconds between two scrapes."""
        parts = []
        if not self.labels:
            parts = ["what no run is named for: as steps minutes are counted"]
        if self.coarse is not None and self.coarse > interval:
            parts.append(
                f"its past is shown by a point every {self.coarse:,.0f} s,"
                f" of a scrape every {interval:g} s"
            )
        if self.absent is not None:
            parts.append(
                f"nothing new since {strftime('%H:%M:%S', localtime(self.absent))}"
            )
        return "; ".join(parts) or None
