"""trackio's databases: `<project>.db`, SQLite in WAL mode, with all runs of a project (Hugging
Face's local tracker).

They lie in `$TRACKIO_DIR`, else in `~/.cache/huggingface/trackio` (trackio/utils.py,
`_get_trackio_dir`). A run within is named by a path below its database: `huggingface.db/tiny-grpo`.

The step. trackio counts its own; the trainer's is `train/global_step` of the same row. A row
without one belongs to the last step that a row has stated (TRL's `profiling/…`, several a step, are
averaged); runs that never state one keep trackio's own count. Figures of the machine are not read.

MLflow's databases (verl writes `sqlite:////tmp/mlruns.db`) are seen through views as if trackio
had written them: a row for each metric and step, a configuration of all parameters.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import chain, starmap
from pathlib import Path
from typing import Any
from urllib.parse import quote

from verl_tui.records import Records, Sample, Settings, SourceStatus, Unreadable
from verl_tui.sources.fields.histograms import pop_histograms
from verl_tui.sources.fields.jsonl import (
    Fields,
    flatten,
    loads,
    numbers_in,
    worded_number,
)
from verl_tui.sources.fields.row_batcher import (
    Item,
    MetricRow,
    RowBatcher,
    joined_notes,
)
from verl_tui.sources.fields.sample import (
    RewardSum,
    further_rows,
    is_validation,
    plain_record,
    weights_of,
)
from verl_tui.sources.fields.setting_values import flatten_settings
from verl_tui.sources.fields.steps import TrackerStep
from verl_tui.sources.files import Source, is_file, status_at
from verl_tui.sources.formats.format import WholeReader
from verl_tui.text import decoded, one_line
from verl_tui.times import parse_time

name = "trackio database"
rank = 4
anchor = True

SUFFIX = ".db"
_MAGIC = b"SQLite format 3\0"
_TABLES = {"configs": "NULL, NULL, config", "metrics": "timestamp, step, metrics"}
"""Tables that are read, and what of each row: time, step and JSON."""
_MLFLOWS = {"metrics", "params", "runs"}
_VIEWS = """
CREATE TEMP VIEW named AS SELECT run_uuid, coalesce(nullif(name, ''), run_uuid) || CASE WHEN
  EXISTS (SELECT 1 FROM runs one WHERE one.name = runs.name AND one.rowid < runs.rowid)
  THEN '-' || substr(run_uuid, 1, 8) ELSE '' END AS run_name
  FROM runs WHERE lifecycle_stage = 'active';
CREATE TEMP VIEW metrics AS SELECT m.rowid AS id, run_name, m.timestamp / 1000.0 AS timestamp,
  m.step AS step, json_object(m.key, CASE m.is_nan WHEN 0 THEN m.value ELSE 'NaN' END) AS metrics
  FROM main.metrics m JOIN named USING (run_uuid);
CREATE TEMP VIEW configs AS SELECT max(p.rowid) AS id, run_name,
  json_group_object(key, CASE WHEN json_valid(value) THEN json(value) ELSE value END) AS config
  FROM main.params p JOIN named USING (run_uuid) GROUP BY run_uuid;
"""
"""MLflow's tables (mlflow/store/tracking/dbmodels/models.py) as trackio's. Of runs with one name
all but the first have their id in it.
"""
_LATEST = """
    SELECT run_name FROM (
        SELECT run_name, 0 AS written, id FROM configs
        UNION ALL SELECT run_name, 1, max(id) FROM metrics GROUP BY run_name
    ) ORDER BY written, id
"""
"""The names of the runs in a database, that which was written last at the end."""
_BUSY = 0.2
"""Seconds to wait for a writer that holds the database alone; in WAL mode none does."""
_TABLE = "trackio.table"
_ROWS = 1000
"""Rows of one read."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether a file is a database of trackio, as far as this shows while another program
    holds it.
    """
    if path.suffix.lower() != SUFFIX or not head.startswith(_MAGIC):
        return False
    try:
        with closing(_opened(path)) as database:
            return _tables_of(database) >= _TABLES.keys()
    except (sqlite3.Error, OSError, UnicodeDecodeError):
        return b"run_name" in head and b"metrics" in head


reader = WholeReader


def runs_in(path: Path) -> list[str]:
    """Return the names of the runs in a database, that which was written last at the end.

    Raises:
        sqlite3.Error: It is none, or is locked.
        OSError: It is gone.
    """
    with closing(_opened(path)) as database:
        names = [str(name) for (name,) in database.execute(_LATEST)]
    return [*dict.fromkeys(reversed(names))][::-1]


def log_of(path: Path) -> Path:
    """Return where the changes lie that are not in a database yet."""
    return path.with_name(f"{path.name}-wal")


def database_of(path: Path) -> tuple[Path, str]:
    """Return the database in which a run lies, and what the run is called; the path itself where it
    names none.
    """
    for above in path.parents:
        if above.suffix.lower() == SUFFIX and is_file(above):
            return above, str(path.relative_to(above))
    return path, ""


def _tables_of(database: sqlite3.Connection) -> set[str]:
    """Return the names of the tables and views of a database."""
    names = "SELECT name FROM {} WHERE type IN ('table', 'view')"
    stored, seen = (names.format(f"sqlite_{of}master") for of in ("", "temp_"))
    return {name for (name,) in database.execute(f"{stored} UNION {seen}")}


def _opened(path: Path) -> sqlite3.Connection:
    """Open a database for reading.

    Where no writer has left a log of changes beside it, SQLite is told that nothing changes: it
    would create files.
    """
    log = status_at(log_of(path))
    mode = "ro" if log and log.st_size else "ro&immutable=1"
    place = f"file:{quote(str(path.absolute()))}?mode={mode}"
    database = sqlite3.connect(place, uri=True, timeout=_BUSY)
    # a damaged one may hold bytes that are no text
    database.text_factory = decoded
    try:
        if _tables_of(database) >= _MLFLOWS:
            database.executescript(_VIEWS)
    except BaseException:
        database.close()
        raise
    return database


class TrackioSource(Source):
    """One run of a database; reads its new rows whenever the database has changed."""

    format = name
    rank = rank
    absolute = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._database, self._run = database_of(path)
        self._batcher = RowBatcher()
        self._rewards = RewardSum()
        self._stamp: list[tuple[int, int]] = []
        """Sizes and times of the database and its write-ahead log when all had been read."""
        self._last = {"configs": 0, "metrics": 0}
        """Ids of the last rows read, by table."""
        self._place = TrackerStep()
        self._tables: dict[str, list[Any]] = {}
        """The last table of each name: a growing one is logged whole each time."""
        self._program: str | None = None

    def status(self) -> SourceStatus:
        """Return how the source is doing, and whose the database is."""
        return super().status()._replace(program=self._program)

    @property
    def note(self) -> str | None:
        """Return how rewards were summed, and a note on replaced records."""
        return joined_notes(self._rewards.note, self._batcher.note)

    def read(self) -> tuple[Records, bool]:
        """Return the records of the next rows, and True if more rows wait."""
        states = filter(None, map(status_at, (self._database, log_of(self._database))))
        stamp = [(one.st_size, one.st_mtime_ns) for one in states]
        if stamp == self._stamp:
            return (), False
        self._modified = self._modified or stamp[0][1] / 1e9
        more = False
        try:
            more = self._read()
            self._problem = None
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            self._problem = one_line(str(error), 200)
        self._stamp = [] if more or self._problem else stamp
        size = sum(size for size, _ in stamp)
        self._bytes, self._pending = (0, size) if more else (size, 0)
        return self.counted(self._batcher.take()), more

    def _read(self) -> bool:
        """Take the next rows; return whether more wait."""
        more = False
        with closing(_opened(self._database)) as database:
            is_mlflows = "params" in _tables_of(database)
            self._program = "MLflow database" if is_mlflows else None
            for table in self._last:
                rows = self._rows(database, table)
                more |= len(rows) == _ROWS
                self._batcher.add(chain(*starmap(partial(self._row, table), rows)))
        return more

    def _rows(self, database: sqlite3.Connection, table: str) -> list[Any]:
        """Return the next rows of a table: id, time, step and JSON of each."""
        sql = (  # the table and its columns are words of ours, all else is bound
            f"SELECT id, {_TABLES[table]} FROM {table} "  # noqa: S608
            f"WHERE id > ? AND run_name = ? ORDER BY id LIMIT {_ROWS}"
        )
        return database.execute(sql, (self._last[table], self._run)).fetchall()

    def _row(
        self, table: str, at: int, time: object, step: object, text: str | bytes
    ) -> Iterator[Item]:
        """Yield what one row says."""
        self._last[table] = at
        try:
            written = text.encode() if isinstance(text, str) else text
            record = loads(written or b"")
        except ValueError:
            record = None
        if not isinstance(record, dict):
            yield Unreadable(at, f"a row of {table} that is not a JSON object", "")
        elif table == "metrics":
            for one in self._metrics(parse_time(time), step, record):
                yield one._replace(line=at) if isinstance(one, Unreadable) else one
        else:
            self._rewards = RewardSum(weights_of(record))
            own = {key: value for key, value in record.items() if key[:1] != "_"}
            yield Settings(flatten_settings(own))

    def _metrics(
        self, time: float | None, own: object, record: Fields
    ) -> Iterator[Item]:
        """Yield the records of a row of metrics; what is wrong with it of any line."""
        tables = _tables_in(record)
        flat = flatten({key: record[key] for key in record if key not in tables})
        why = "a row of metrics without a step"
        try:
            measured = not self._place.reach(flat, own)
        except ValueError as error:
            self._place.step, why = None, str(error)
        if (at := self._place.step) is None:
            yield Unreadable(0, why, "")
            return
        self._modified = time or self._modified
        found = pop_histograms(flat)
        yield from found.records(at)
        for flaw in found.flaws:
            yield Unreadable(0, one_line(flaw), "")
        words = {key: worded_number(value) for key, value in flat.items()}
        if numbers := numbers_in(words) | found.figures:
            yield MetricRow.of(at, numbers, time=time, mean=measured)
        for key, rows in tables.items():
            yield from self._samples(key, rows)

    def _samples(self, key: str, rows: object) -> Iterator[Sample | Unreadable]:
        """Yield the samples of a table that the last one of its name did not have."""
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            yield Unreadable(0, f"the table {one_line(key)} is not a list of rows", "")
            return
        known = self._tables.get(key, [])
        self._tables[key] = rows
        validation = is_validation(key)
        for row in further_rows(rows, known):
            record = plain_record(row)
            found = self._rewards.sample(
                record, self._place.step, validation=validation
            )
            yield from filter(None, [found])


def _tables_in(record: Fields) -> Fields:
    """Return the rows of the tables in a row of metrics."""
    own = ((key, one) for key, one in record.items() if isinstance(one, dict))
    return {key: one.get("_value") for key, one in own if one.get("_type") == _TABLE}
