"""Follows one run in a database of trackio: metrics, settings, system figures, sample tables.

The step. trackio counts its own; the trainer's is `train/global_step` of the same row. A row
without one belongs to the last step that a row has stated (TRL's `profiling/…`, several a step, are
averaged); runs that never state one keep trackio's own count. System figures belong to the step
reached at their time.
"""

from __future__ import annotations

import math
import sqlite3
from bisect import bisect_right
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from verl_tui.patterns import pattern
from verl_tui.records import Record, Sample, Settings, SourceStatus, Unreadable
from verl_tui.sources.fields.jsonl import flatten, integer, loads, number
from verl_tui.sources.fields.lists import histograms, split
from verl_tui.sources.fields.rewards import RewardSum, weights_of
from verl_tui.sources.fields.row_batcher import MetricRow, RowBatcher, joined_notes
from verl_tui.sources.fields.sample import is_validation, plain_record
from verl_tui.sources.fields.sample_figures import SampleFigures
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.sources.fields.steps import stated_step, step_fields
from verl_tui.sources.files.paths import why
from verl_tui.sources.files.polled import PolledSource
from verl_tui.sources.formats.trackio import database as trackio
from verl_tui.text import one_line
from verl_tui.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_ROWS = 1000
"""Rows of one read."""
_TABLE = "trackio.table"
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""How trackio writes numbers that JSON does not know (trackio/utils.py, `serialize_values`)."""
_DEVICE = pattern(
    r"gpu/(\d+)/(utilization|memory_usage|allocated_memory|temp|power|power_limit)"
)
_WANDB: Mapping[str, tuple[str, float]] = {
    "utilization": ("gpu", 1.0),
    "memory_usage": ("memoryAllocated", 100.0),
    "allocated_memory": ("memoryAllocatedBytes", 2.0**30),
    "temp": ("temp", 1.0),
    "power": ("powerWatts", 1.0),
    "power_limit": ("enforcedPowerLimitWatts", 1.0),
}
"""Names of a device's figures: trackio's (trackio/gpu.py) -> W&B's, factor for W&B's unit."""


class TrackioSource(PolledSource):
    """One run of a database; reads its new rows whenever the database has changed."""

    format = trackio.name
    rank = trackio.rank
    absolute = True

    def __init__(self, path: Path, ordinal: int = 0) -> None:
        super().__init__(path, ordinal)
        self._database, self._run = trackio.database_of(path)
        self._batcher = RowBatcher()
        self._figures = SampleFigures()
        self._rewards = RewardSum()
        self._stamp: tuple[tuple[int, int], ...] = ()
        """Sizes and times of the database and its write-ahead log when all had been read."""
        self._last = {"metrics": 0, "system_metrics": 0, "configs": 0}
        """Ids of the last rows read, by table."""
        self._step: int | None = None
        self._stated = False
        """True once a row has stated the trainer's step."""
        self._times: list[float] = []
        self._steps: list[int] = []
        """The steps reached at `_times`."""
        self._tables: dict[str, list[Any]] = {}
        """The last table of each name: a growing one is logged whole each time."""
        self._more = False
        self._program: str | None = None

    def status(self) -> SourceStatus:
        """Return how the source is doing, and whose the database is."""
        return super().status()._replace(program=self._program)

    def read(self) -> tuple[tuple[Record, ...], bool]:
        """Return the records of the next rows, and True if more rows wait."""
        stamp = self._file_stamp()
        if stamp == self._stamp or not stamp:
            return (), False
        try:
            with closing(trackio.open_database(self._database)) as database:
                self._batcher.add(self._read(database))
            self._problem = None
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            self._problem = _why(error)
            self._more = False
        self._stamp = () if self._more or self._problem else stamp
        size = sum(size for size, _ in stamp)
        self._bytes, self._pending = (0, size) if self._more else (size, 0)
        records = self._batcher.take()
        self._unreadable += sum(isinstance(record, Unreadable) for record in records)
        self._records += sum(len(getattr(record, "steps", (0,))) for record in records)
        return self._figures.complete(records), self._more

    @property
    def note(self) -> str | None:
        """Return how rewards were summed, and what is to be said of replaced records."""
        return joined_notes(self._rewards.note, self._batcher.note)

    def _file_stamp(self) -> tuple[tuple[int, int], ...]:
        """Return sizes and times of the database's files, () if it is gone."""
        try:
            stats = [self._database.stat()]
        except OSError as error:
            self._problem = why(error)
            return ()
        with suppress(OSError):
            stats.append(trackio.log_of(self._database).stat())
        self._modified = self._modified or stats[0].st_mtime_ns / 1e9
        return tuple((one.st_size, one.st_mtime_ns) for one in stats)

    def _read(self, database: sqlite3.Connection) -> Iterator[MetricRow | Record]:
        self._more = False
        tables = trackio.tables_of(database)
        self._program = trackio.MLFLOW if "params" in tables else None
        kinds = {
            "configs": ("NULL, NULL, config", self._settings),
            "metrics": ("timestamp, step, metrics", self._metrics),
            # early versions of trackio had none
            "system_metrics": ("timestamp, NULL, metrics", self._figures_of),
        }
        which = ("AND run_name = ?", (self._run,)) if self._run else ("", ())
        for table, (columns, read) in kinds.items():
            if self._more or table not in tables:
                continue
            sql = (  # the table and its columns are words of ours, all else is bound
                f"SELECT id, {columns} FROM {table} WHERE id > ? {which[0]} "  # noqa: S608
                f"ORDER BY id LIMIT {_ROWS}"
            )
            rows = database.execute(sql, (self._last[table], *which[1])).fetchall()
            self._more = len(rows) == _ROWS
            for id, time, step, text in rows:
                self._last[table] = id
                record = _object(text)
                if record is None:
                    yield _flaw(id, f"a row of {table} that is not a JSON object")
                else:
                    yield from read(id, parse_time(time), step, record)

    # -- rows --------------------------------------------------------------------------------------

    def _metrics(
        self, id: int, time: float | None, own: object, record: dict[str, Any]
    ) -> Iterator[MetricRow | Record]:
        """Yield the records of a row of metrics."""
        tables = {key: value for key, value in record.items() if _is_table(value)}
        flat = flatten({key: record[key] for key in record if key not in tables})
        measured = not self._reach(flat, own, time)
        if self._step is None:
            yield _flaw(id, "a row of metrics without a step")
            return
        parts = split({key: _plain_value(value) for key, value in flat.items()})
        yield from histograms(parts.found, self._step, mean=measured)
        yield from (_flaw(id, flaw.reason) for flaw in parts.flaws)
        if numbers := parts.numbers():
            yield MetricRow.of(self._step, numbers, time=time, mean=measured)
        for key, table in tables.items():
            yield from self._samples(id, key, table.get("_value"))

    def _settings(
        self, _id: int, _time: float | None, _own: object, record: dict[str, Any]
    ) -> Iterator[Settings]:
        """Yield the settings of a run."""
        self._rewards = RewardSum(weights_of(record))
        own = {key: value for key, value in record.items() if key[:1] != "_"}
        yield Settings(flatten_settings(own), str(self.path))

    def _reach(self, flat: Mapping[str, Any], own: object, time: float | None) -> bool:
        """Note the step of a row; return False if it lacks the trainer's, which others state."""
        step = None
        with suppress(ValueError):  # a number too large for one
            fields = step_fields(key for key in flat if "global_step" in key)
            step = stated_step(flat, fields)[0]
        if step is None and self._stated:
            return False
        self._stated = self._stated or step is not None
        self._step = step if step is not None else integer(own)
        if time is not None:
            self._modified = max(time, self._times[-1]) if self._times else time
            if self._step is not None:
                self._times.append(self._modified)
                self._steps.append(self._step)
        return True

    def _figures_of(
        self, _: int, time: float | None, _own: object, record: dict[str, Any]
    ) -> Iterator[MetricRow]:
        """Yield figures of the machine, those of devices under W&B's names."""
        numbers = dict(
            _system(key, value)
            for key, raw in flatten(record).items()
            if (value := number(raw)) is not None
        )
        if numbers and self._steps:
            at = bisect_right(self._times, math.inf if time is None else time) - 1
            step = self._steps[max(at, 0)]
            yield MetricRow.of(step, numbers, time=time, mean=True, progress=False)

    def _samples(
        self, id: int, key: str, rows: object
    ) -> Iterator[Sample | Unreadable]:
        """Yield the samples of a table that the last one of its name did not have."""
        if not isinstance(rows, list):
            yield _flaw(id, f"the table {key} is not a list of rows")
            return
        known = self._tables.get(key, [])
        self._tables[key] = rows
        validation = is_validation(key)
        for row in rows[len(known) :] if rows[: len(known)] == known else rows:
            if isinstance(row, dict):
                record = plain_record(row)
                yield from filter(
                    None,
                    [self._rewards.sample(record, self._step, validation=validation)],
                )
            else:
                yield _flaw(id, f"a row of the table {key} is not a JSON object")


def _flaw(id: int, reason: str) -> Unreadable:
    return Unreadable(id, one_line(reason), "")


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and value.get("_type") == _TABLE


def _plain_value(value: object) -> object:
    """Return the number that trackio wrote as a word, else the value."""
    return _WORDS.get(value, value) if isinstance(value, str) else value


def _system(key: str, value: float) -> tuple[str, float]:
    found = _DEVICE.fullmatch(key)
    if found is None:
        return f"system/{key}", value
    name, factor = _WANDB[found[2]]
    return f"system/gpu.{found[1]}.{name}", value * factor


def _object(text: object) -> dict[str, Any] | None:
    """Return the JSON object in a cell, None if there is none."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if not isinstance(data, bytes):
        return None
    try:
        found = loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _why(error: Exception) -> str:
    """Say why a database cannot be read."""
    text = one_line(str(error), 200)
    if "locked" in text or "busy" in text:
        return "locked by another program: it is read as soon as that is done"
    if "malformed" in text or "not a database" in text or "disk I/O" in text:
        return f"damaged, or copied while it was written: {text}"
    if "no such" in text:
        return f"a database of another program, or of an unknown version of trackio: {text}"
    return text
