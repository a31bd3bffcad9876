"""A run that addresses tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verl_tui.sources.fields.row_batcher import RowBatcher
from verl_tui.sources.formats.prometheus_text.rows import StepRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from verl_tui.records import Record


class AddressedRun:
    """One run; the records of all its addresses come through the first."""

    format: str
    rank: int
    kind: str
    """What its addresses are."""
    modified: float | None = None
    """When it said something last, where that shows."""
    workers: Mapping[Any, str] = {}
    """Its addresses, where that may be several."""
    waiting = False
    """True if further records wait."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = StepRows()
        self._batcher = RowBatcher()

    @property
    def note(self) -> str | None:
        """Return what should be known of its figures."""
        return self.rows.note

    def take(self) -> tuple[Record, ...]:
        """Return the next records."""
        raise NotImplementedError
