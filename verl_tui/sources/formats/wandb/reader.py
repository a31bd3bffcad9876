"""W&B's transaction log, `wandb/{,offline-}run-<time>-<id>/run-<id>.wandb`, as it lies on disk,
online or offline.

Its chunks: `verl_tui.sources.formats.record_log`. What the records say:
`verl_tui.sources.formats.wandb.record_decoder`.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

from verl_tui.records import Settings
from verl_tui.sources.files.tail import opened
from verl_tui.sources.formats.format import Parts
from verl_tui.sources.formats.record_log import BLOCK, RecordLog, first_record
from verl_tui.sources.formats.wandb.record_decoder import RecordDecoder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from verl_tui.records import Record
    from verl_tui.sources.fields.row_batcher import MetricRow

name = "W&B run"
rank = 4
anchor = True
absolute = True  # its records state seconds since the epoch

HEADER = b":W&B\xe1\xbe\0"
"""Name, magic number 0xBEE1 and version (wandb's core/pkg/leveldb/header.go)."""
_TITLED = 2 * BLOCK
"""Bytes within which a run states its name."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether a `.wandb` begins as W&B begins it; the header of a young run may still be on
    its way.
    """
    return path.suffix == ".wandb" and HEADER.startswith(head[: len(HEADER)])


def run_title(path: Path) -> str | None:
    """Return the name of a run at W&B, empty if it has none, None if its log does not state it
    yet.
    """
    try:
        return _title(path, min(path.stat().st_size, _TITLED))
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _title(path: Path, size: int) -> str | None:
    with opened(path) as file:
        records = WandbReader(path).feed(file.read(size))
    settings = [record.values for record in records if isinstance(record, Settings)]
    names = [str(values.get("wandb.name") or "") for values in settings]
    return next(filter(None, names), "" if settings else None)


class WandbReader(RecordLog):
    """Reads one file."""

    header = HEADER

    def __init__(self, path: Path | str, at: int = 0) -> None:
        """Begin to read a file at a place."""
        self._origin = str(path)
        super().__init__(at)

    def _begin(self, at: int = 0) -> None:
        super()._begin(at)
        self._decoder = RecordDecoder(self._origin)

    def decode(self, record: bytes, number: int) -> Iterable[MetricRow | Record]:
        """Return what a record says."""
        return self._decoder.decode(record, number)

    def lose(self) -> None:
        """Note that the step is unknown until a record states one: what follows may belong to a
        later one.
        """
        self._decoder.lose()

    @property
    def needs_beginning(self) -> bool:
        """True if its first rows have W&B's steps, while the part before them may have had the
        trainer's.
        """
        return self._start > 0 and self._decoder.began_to_state

    @property
    def knows_steps(self) -> bool:
        """True once the history has shown whose steps its records have."""
        return self._decoder.knows_steps

    def later(self, at: int) -> WandbReader:
        """Return a reader of the records from a later place in the file on."""
        later = WandbReader(self._origin, at)
        later._decoder = self._decoder.skipped()
        return later


reader = WandbReader
parts = Parts(partial(first_record, header=len(HEADER)), WandbReader.later)
"""The beginning shows whose steps the records have. Where the history does not begin there, only
records that state the trainer's step are taken, and those that follow them.
"""
