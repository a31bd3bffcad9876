"""Databases of trackio: the trainer's steps, live beside a writer, settings, samples, and bad
ones.
"""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from log_reading import read_run, read_runs, values

from verl_tui.records import MetricRows, Sample
from verl_tui.sources.formats.trackio import TrackioSource

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.records import Record

SCHEMA = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, timestamp TEXT, run_name TEXT, step INTEGER,
                      metrics TEXT);
CREATE TABLE configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, run_name TEXT, config TEXT, created_at TEXT);
CREATE TABLE system_metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, timestamp TEXT, run_name TEXT,
                             metrics TEXT);
"""


class Writer:
    """Writes a database as trackio does, and keeps it open as a training does."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(path)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.executescript(SCHEMA)
        self.second = 0

    def __del__(self) -> None:
        self.database.close()

    def log(self, step: int, run: str = "tiny", **metrics: Any) -> None:
        self.second += 1
        time = f"2026-11-22T10:{self.second // 60:02d}:{self.second % 60:02d}+00:00"
        cells = {"timestamp": time, "run_name": run, "step": step}
        self.insert("metrics", {**cells, "metrics": json.dumps(metrics).encode()})

    def config(self, run: str = "tiny", **config: Any) -> None:
        self.insert("configs", {"run_name": run, "config": json.dumps(config).encode()})

    def insert(self, table: str, cells: dict[str, Any]) -> None:
        holes = ", ".join("?" * len(cells))
        self.database.execute(
            f"INSERT INTO {table} ({', '.join(cells)}) VALUES ({holes})",
            tuple(cells.values()),
        )
        self.database.commit()


def training(path: Path) -> Writer:
    writer = Writer(path)
    writer.config(max_steps=50, reward_weights=[1.0, 2.0], _Username="me")
    for step in (10, 20):
        for seconds in (1.0, 3.0):
            writer.log(step // 10, **{"profiling/generate": seconds})
        writer.log(
            step // 10,
            **{"train/loss": 1.0 / step, "train/kl": "NaN", "train/global_step": step},
        )
    return writer


def drained(source: TrackioSource) -> list[Record]:
    records, more = [], True
    while more:
        found, more = source.read()
        records.extend(found)
    return records


def test_steps_are_the_trainers(tmp_path):
    training(tmp_path / "p.db")
    run = read_run(tmp_path)
    assert run.name == "tiny"
    assert values(run, "train/loss") == {10: 0.1, 20: 0.05}
    assert repr(values(run, "train/kl")) == "{10: nan, 20: nan}"
    assert values(run, "profiling/generate")[10] == 2.0, "several measurements a step"
    assert run.settings["max_steps"] == 50
    assert not any("Username" in key for key in run.settings)


def test_it_is_read_while_it_is_written_and_nothing_is_left_beside_it(tmp_path):
    writer = training(tmp_path / "p.db")
    source = TrackioSource(tmp_path / "p.db" / "tiny")
    drained(source)
    assert drained(source) == []
    writer.log(3, **{"train/loss": 0.5, "train/global_step": 30})
    (rows,) = drained(source)
    assert isinstance(rows, MetricRows)
    assert list(rows.steps) == [30]
    writer.database.close()
    before = sorted(path.name for path in tmp_path.iterdir())
    drained(TrackioSource(tmp_path / "p.db" / "tiny"))
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_tables_are_samples_and_one_logged_twice_counts_once(tmp_path):
    writer = training(tmp_path / "p.db")
    rows = [
        {
            "step": "20",
            "prompt": "p",
            "completion": "c",
            "Right": 1.0,
            "Short": 0.25,
            "advantage": 0.1,
        }
    ]
    for table in (rows, rows, [*rows, {**rows[0], "Right": 0.0}]):
        writer.log(3, completions={"_type": "trackio.table", "_value": table})
    source = TrackioSource(tmp_path / "p.db" / "tiny")
    samples = [record for record in drained(source) if isinstance(record, Sample)]
    assert [(sample.step, sample.score) for sample in samples] == [(20, 1.5), (20, 0.5)]
    note = source.status().note or ""
    assert note.startswith(
        "the reward of a sample is 1 × Right + 2 × Short: no total is stated; "
    )
    assert "replaced" in note, (
        "of several times that one step was profiled the last is shown"
    )


def test_whatever_is_dropped_is_reported(tmp_path):
    writer = Writer(tmp_path / "p.db")
    writer.insert("configs", {"run_name": "tiny", "config": b"{"})
    writer.log(0)
    for step, rows in enumerate(({"a": 1}, [None]), 1):
        table = {"_type": "trackio.table", "_value": rows}
        writer.log(0, **{"train/global_step": step, "completions": table})
    writer.log(0, **{"train/global_step": 2**62, "a": 1.0})
    writer.log(2**62, a=1.0)
    (source,) = [
        one for one in read_run(tmp_path / "p.db").sources.values() if one.unreadable
    ]
    assert [(one.line, one.reason) for one in source.unreadable] == [
        (1, "a row of configs that is not a JSON object"),
        (2, "the table completions is not a list of rows"),
        (3, "the table completions is not a list of rows"),
        (4, '"train/global_step" is too large'),
        (5, "a row of metrics without a step"),
    ]


def test_a_locked_database_is_said_and_read_later(tmp_path):
    writer = training(tmp_path / "p.db")
    writer.database.execute("PRAGMA journal_mode = DELETE")
    writer.database.execute("PRAGMA locking_mode = EXCLUSIVE")
    source = TrackioSource(tmp_path / "p.db" / "tiny")
    (tmp_path / "p.db-wal").write_bytes(b"log")
    writer.database.execute("BEGIN EXCLUSIVE")
    assert drained(source) == []
    assert source.status().problem == "database is locked"
    writer.database.rollback()
    writer.database.close()
    (tmp_path / "p.db-wal").unlink(missing_ok=True)
    assert drained(source)
    assert source.status().problem is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(min_size=1, max_size=300), at=st.integers(0, 20_000))
@example(data=b"\x80", at=3579)
def test_any_damage_does_no_harm(tmp_path, data, at):
    path = tmp_path / "p.db"
    path.unlink(missing_ok=True)
    writer = training(path)
    writer.database.close()
    whole = path.read_bytes()
    at %= len(whole)
    path.write_bytes(whole[:at] + data + whole[at + len(data) :])
    drained(TrackioSource(path / "tiny"))
    read_runs(path)
    path.write_bytes(whole[:at])
    drained(TrackioSource(path / "tiny"))


MLFLOWS = """
CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, name VARCHAR(250), lifecycle_stage VARCHAR(20));
CREATE TABLE metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, run_uuid VARCHAR(32), step BIGINT,
                      is_nan BOOLEAN, PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan));
CREATE TABLE params (key VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32), PRIMARY KEY (key, run_uuid));
INSERT INTO runs VALUES ('aa', 'grpo-a', 'active'), ('bb', '', 'active'), ('dd', 'grpo-a', 'active'), ('cc', 'old', 'deleted');
INSERT INTO params VALUES ('actor.lr', '1e-06', 'aa'), ('name', 'it''s', 'aa'), ('actor.lr', '2', 'cc');
"""
"""As MLflow makes them (mlflow/store/tracking/dbmodels/models.py), with three runs and a deleted one."""


def test_the_runs_of_a_database_of_mlflow(tmp_path):
    with closing(sqlite3.connect(tmp_path / "mlruns.db")) as database:
        database.executescript(MLFLOWS)
        database.executemany(
            "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)",
            [
                (key, value, 1_787_140_000_000 + step, run, step, key == "entropy")
                for run in ("aa", "bb", "cc", "dd")
                for step in (1, 2, 3)
                for key, value in (("critic/score/mean", step / 4), ("entropy", 0))
            ],
        )
        database.commit()
    runs = read_runs(tmp_path)
    assert sorted(runs) == ["bb", "grpo-a", "grpo-a-dd"]
    run = runs["grpo-a"]
    assert values(run, "critic/score/mean") == {1: 0.25, 2: 0.5, 3: 0.75}
    assert all(math.isnan(value) for value in values(run, "entropy").values())
    assert run.config.find(["actor.lr"]) == ("actor.lr", 1e-06)
    assert run.config.find(["name"]) == ("name", "it's")
    (status,) = [
        one.status for one in run.sources.values() if one.status.format != "checkpoints"
    ]
    assert status.title == "MLflow database"
