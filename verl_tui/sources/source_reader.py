"""Read one source of one run, and choose the reader of a file."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from verl_tui import debug_log
from verl_tui.failures import in_full
from verl_tui.records import Batch, Records, SourceStatus
from verl_tui.sources import pipe
from verl_tui.sources.fields.sample_figures import SampleFigures
from verl_tui.sources.files import Source, Tail, file_and_part, is_folder
from verl_tui.sources.folders.dumps import DumpSource
from verl_tui.sources.folders.setting_files import SettingsSource
from verl_tui.sources.folders.step_files import TableFolder
from verl_tui.sources.formats import filelogger, mlflow_files, rollouts, trackio, wandb
from verl_tui.sources.formats.console import reader as console
from verl_tui.sources.formats.mlflow_files import MlflowRun
from verl_tui.sources.formats.tables import parquet
from verl_tui.sources.formats.trackio import TrackioSource
from verl_tui.sources.http.addresses import AddressRun
from verl_tui.sources.pipe import PipeSource
from verl_tui.sources.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from verl_tui.sources.discovery.found import FoundFile
    from verl_tui.sources.host.processes import Writers

_HELD_OPEN = frozenset({console.name, filelogger.name, wandb.name})
"""Formats whose writers keep their file open all the time: where nobody has it open, nobody writes
it.
"""


class SourceReader:
    """Reads one source of one run; an error ends this source alone, and its status says why."""

    def __init__(self, run: str, source: Source, watch: Writers) -> None:
        self.run = run
        self.source = source
        self.file = (
            source.path
            if isinstance(source, FileSource) and not isinstance(source, PipeSource)
            else None
        )
        """The file that a process may hold open."""
        self._figures = SampleFigures()
        self._watch = watch
        self.status = source.status()
        """Status after the last read."""
        self.caught_up = False
        """True if everything there at the start has been read: what follows is live."""
        self.served = isinstance(source, AddressRun)
        """True if it comes over a network: then its records state their own times."""
        self.delivered = False
        """True once its status has been handed on."""
        self.grew = -math.inf
        """When it was last seen to grow, by the clock of whoever reads."""
        self.finished_at = -1
        """Bytes read when last lines without an end were taken."""
        self._broken = False

    def read(self) -> tuple[Batch | None, bool]:
        """Return the next batch, None if nothing is new, and whether more waits."""
        live = self.caught_up and not self.served
        batch, more = self._batch_of(self.source.read, live=live)
        self.caught_up |= not more
        if batch:
            debug_log.note(
                "batch",
                records=len(batch.records),
                read=self.status.bytes_read,
                size=self.status.size,
                live=live,
                path=self.status.path,
            )
        return batch, more

    def finish(self) -> Batch | None:
        """Return the records of a last line without an end, or that it was not read."""
        if self.finished_at == self.status.bytes_read:
            return None
        self.finished_at = self.status.bytes_read
        return self._batch_of(lambda: (self.source.finish(), False))[0]

    def update_writer(self) -> Batch | None:
        """Return a batch if its writer has changed."""
        return self._batch_of(lambda: ((), False))[0]

    def _batch_of(
        self, read: Callable[[], tuple[Records, bool]], *, live: bool = False
    ) -> tuple[Batch | None, bool]:
        """Return what a reading brings as a batch, None if nothing is new, and whether more waits;
        an error ends the source.
        """
        if self._broken:
            return None, False
        before = self.status
        try:
            read_now, more = read()
            records = self._figures.complete(read_now)
            self.status = self._written(self.source.status())
        except Exception as error:  # noqa: BLE001 - a net at the border
            debug_log.note_error(f"reading {self.status.path}", error)
            self._broken = True
            why = f"cannot be read any further: {in_full(error)}"
            # The size is set to what was read: nothing more is to come.
            self.status = self.status._replace(size=self.status.bytes_read, problem=why)
            records, more = (), False
        if not records and self.status == before and self.delivered:
            return None, more
        self.delivered = True
        return Batch(self.run, self.status, records, live), more

    def _written(self, status: SourceStatus) -> SourceStatus:
        """Add the file's writer."""
        if not self.file:
            return status
        unheld = self.file in self._watch.nobodys and status.format in _HELD_OPEN
        return status._replace(writer=self._watch.writers.get(self.file), unheld=unheld)


def source_of(file: FoundFile) -> Source:
    """Return the source that reads a file or a directory of dumps."""
    if file.format is None:
        return SettingsSource(file.path)
    if file.format is rollouts:
        return DumpSource(file.path)
    if file.format is parquet and is_folder(file.path):
        return TableFolder(file.path)
    if file.format is trackio:
        return TrackioSource(file.path)
    if file.format is mlflow_files:
        return MlflowRun(file.path)
    if file.path == pipe.PATH:
        return PipeSource(file.format)
    whole, _ = file_and_part(file.path)
    return FileSource(file.path, file.format, tail=Tail(whole))
