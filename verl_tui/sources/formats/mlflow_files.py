"""A run in MLflow's file store: `mlruns/<experiment>/<run>/meta.yaml`, which stands for all of its
files; beside it a file for each metric, with `milliseconds value step` a line, and one for each
parameter (mlflow/store/tracking/file_store.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from verl_tui.given_files import why
from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind, Records, Restart, Settings
from verl_tui.sources.fields.jsonl import Fields, integer, unreadable, written_number
from verl_tui.sources.fields.row_batcher import Item, MetricRow, RowBatcher
from verl_tui.sources.fields.setting_values import flatten_settings, scalar
from verl_tui.sources.files import Source, Tail, is_file, opened
from verl_tui.sources.formats.format import WholeReader
from verl_tui.text import decoded, safe

name = "MLflow files"
rank = 4
anchor = True

META = "meta.yaml"


def matches(path: Path, head: bytes) -> bool:
    """Return whether a file describes a run that was not deleted; an experiment has no `run_id`."""
    return (
        path.name == META
        and b"\nrun_id: " in head
        and b"\nlifecycle_stage: active" in head
    )


reader = WholeReader


_LONGEST = 8000
"""Bytes of a parameter, or of a line, that are read: MLflow allows 6,000 characters."""
_STATUS = pattern(rb"^status: (\d)", re.MULTILINE)
_ENDS = {
    b"3": (EventKind.EXITED, "MLflow: the run has finished"),
    b"4": (EventKind.FATAL, "MLflow: the run has failed"),
    b"5": (EventKind.STOPPED, "MLflow: the run was killed"),
}
"""By the number of the status (mlflow/entities/run_status.py)."""


class MlflowRun(Source):
    """Follows the files of one run."""

    format = name
    rank = rank
    absolute = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._metrics: dict[Path, _Metric] = {}
        self._batcher = RowBatcher()
        self._params: list[Path] = []
        self._status = b""

    @property
    def note(self) -> str | None:
        """Return a note on replaced records."""
        return self._batcher.note

    def read(self) -> tuple[Records, bool]:
        """Return what the files say that is new, and whether more waits."""
        folder = self.path.parent / "metrics"
        try:
            self._batcher.add(self._settings(self.path.parent / "params"))
            for file in _files(folder):
                key = safe(file.relative_to(folder).as_posix(), 300)
                metric = self._metrics.setdefault(file, _Metric(file, key))
                self._batcher.add(metric.rows())
            self._batcher.add(self._end())
            self._problem = None
        except OSError as error:
            self._problem = why(error)
        records = self.counted(self._batcher.take())
        tails = [one.tail for one in self._metrics.values()]
        self._bytes = sum(one.offset for one in tails)
        self._pending = sum(one.size for one in tails) - self._bytes
        self._modified = max((one.modified or 0.0 for one in tails), default=0) or None
        return records, self._pending > 0

    def _settings(self, folder: Path) -> Iterator[Settings]:
        """Yield the parameters, whenever there are others than before."""
        found = _files(folder)
        if found == self._params:
            return
        self._params = found
        values: Fields = {}
        for file in found:
            with opened(file) as param:
                text = decoded(param.read(_LONGEST))
            value = scalar(text)
            if isinstance(value, str):  # YAML takes `1e-06` for a text
                value = written_number(value) or value
            values[file.relative_to(folder).as_posix().replace("/", ".")] = value
        yield Settings(flatten_settings(values))

    def _end(self) -> Iterator[Event]:
        """Yield how the run ended, once."""
        with opened(self.path) as file:
            found = _STATUS.search(file.read(_LONGEST))
        before, self._status = self._status, found[1] if found else b""
        if self._status in _ENDS and self._status != before:
            yield Event(*_ENDS[self._status], 1)


class _Metric:
    """The file of one metric, read as it grows."""

    def __init__(self, file: Path, key: str) -> None:
        self.tail = Tail(file)
        self._key = key
        self._number = 0
        """Lines so far."""
        self._rest = b""
        """What was read of a last line without an end."""

    def rows(self) -> Iterator[Item]:
        """Yield what has come."""
        chunk = self.tail.read()
        if chunk.restarted is not None:
            self._rest, self._number = b"", 0
            yield Restart(chunk.restarted)
        *lines, rest = (self._rest + chunk.data).split(b"\n")
        self._rest = rest[:_LONGEST]
        for line in lines:
            self._number += 1
            try:
                time, value, step = line.split()[:3]
                if (at := integer(int(step))) is None:
                    raise ValueError
                yield MetricRow(at, (self._key,), (float(value),), int(time) / 1000)
            except (ValueError, OverflowError):
                reason = f"{self._key}: no time, value and step"
                yield unreadable(line[:200], self._number, reason)


def _files(folder: Path) -> list[Path]:
    return sorted(filter(is_file, folder.rglob("*")))
