"""trackio's databases: `<project>.db`, SQLite in WAL mode, with all runs of a project (Hugging
Face's local tracker).

They lie in `$TRACKIO_DIR`, else in `~/.cache/huggingface/trackio` (trackio/utils.py,
`_get_trackio_dir`). A run within is named by a path below its database: `huggingface.db/tiny-grpo`.
How a run is read: `verl_tui.sources.formats.trackio.run_follower`.

MLflow's databases (verl writes `sqlite:////tmp/mlruns.db`) are seen through views as if trackio
had written them: a row for each metric and step, a configuration of all parameters.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import quote

from verl_tui.sources.files.paths import is_file
from verl_tui.sources.formats.documents import WholeReader

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.records import Record

name = "trackio database"
rank = 4
anchor = True

SUFFIX = ".db"
_MAGIC = b"SQLite format 3\0"
MLFLOW = "MLflow database"
_TABLES = {"metrics", "configs"}
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
_BUSY = 0.2
"""Seconds to wait for a writer that holds the database alone; in WAL mode none does."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether a file is a database of trackio, as far as this shows while another program
    holds it.
    """
    if path.suffix.lower() != SUFFIX or not head.startswith(_MAGIC):
        return False
    try:
        with closing(open_database(path)) as database:
            return tables_of(database) >= _TABLES
    except (sqlite3.Error, OSError, UnicodeDecodeError):
        return b"run_name" in head and b"metrics" in head


def tables_of(database: sqlite3.Connection) -> set[str]:
    """Return the names of the tables and views of a database."""
    names = "SELECT name FROM {} WHERE type IN ('table', 'view')"
    stored, seen = (names.format(f"sqlite_{of}master") for of in ("", "temp_"))
    return {name for (name,) in database.execute(f"{stored} UNION {seen}")}


def reader(path: Path) -> NoReader:
    """Return a reader that reads no bytes: a database is queried, not read from end to end."""
    return NoReader(0)


class NoReader(WholeReader):
    """Says that a database has to lie uncompressed on a disk."""

    incomplete = "a database is read only where it lies as a file of its own"

    def feed(self, data: bytes) -> tuple[Record, ...]:
        """Keep that there is something."""
        self._held = self._held or bytearray(data[:1])
        return ()


def open_database(path: Path) -> sqlite3.Connection:
    """Open a database for reading.

    Where no writer has left a log of changes beside it, SQLite is told that nothing changes: it
    would create files.

    Raises:
        sqlite3.Error: It is none, or is locked.
        OSError: It is gone.
    """
    log = log_of(path)
    mode = "ro" if log.exists() and log.stat().st_size else "ro&immutable=1"
    database = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}", uri=True, timeout=_BUSY
    )
    database.text_factory = _text
    try:
        if tables_of(database) >= _MLFLOWS:
            database.executescript(_VIEWS)
    except BaseException:
        database.close()
        raise
    return database


def log_of(path: Path) -> Path:
    """Return where the changes lie that are not in a database yet."""
    return path.with_name(f"{path.name}-wal")


def _text(stored: bytes) -> str:
    """Return a text of a database; a damaged one may hold bytes that are none."""
    return stored.decode("utf-8", "replace")


def database_of(path: Path) -> tuple[Path, str]:
    """Return the database in which a run lies, and what the run is called; the path itself where it
    names none.
    """
    for above in path.parents:
        if above.suffix.lower() == SUFFIX and is_file(above):
            return above, str(path.relative_to(above))
    return path, ""
