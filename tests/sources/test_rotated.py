"""Rotated logs are one log: read oldest first, followed over each rotation without loss and without
doubles.
"""

from __future__ import annotations

import gzip
import shutil

import pytest
from log_reading import drain, read_runs, values

from verl_tui.records import MetricRows
from verl_tui.sources.files.rotated import base, parts
from verl_tui.sources.formats import filelogger
from verl_tui.sources.source import FileSource


def lines(*steps):
    return "".join(f'{{"step":{step},"data":{{"a":{step}}}}}\n' for step in steps)


def steps(records):
    return [
        step
        for record in records
        if isinstance(record, MetricRows)
        for step in record.steps
    ]


@pytest.mark.parametrize(
    ("name", "log"),
    [
        ("x.log.1", "x.log"),
        ("x.jsonl.12.gz", "x.jsonl"),
        ("x.log.2024-12-05", "x.log"),
        ("x.log.2024-12-05_13-00", "x.log"),
        ("x.log-20241205", "x.log"),
        ("x.log-20241205.gz", "x.log"),
        ("stdout.1", "stdout"),
        ("x.log", None),
        ("x.log.gz", None),
        ("train_20241205.log", None),
        ("step.10", None),
        ("events.out.tfevents.1700000000.host.1.0", None),
        ("model.1", None),
    ],
)
def test_names(name, log):
    assert base(name) == log


@pytest.mark.parametrize(
    "older",
    [
        ["x.jsonl.10", "x.jsonl.2.gz", "x.jsonl.1"],
        ["x.jsonl.2024-12-05", "x.jsonl.2024-12-06"],
        ["x.jsonl-20241205.gz", "x.jsonl-20241206"],
    ],
)
def test_the_parts_are_one_run_oldest_first(tmp_path, older):
    for at, name in enumerate([*older, "x.jsonl"]):
        data = lines(2 * at + 1, 2 * at + 2).encode()
        (tmp_path / name).write_bytes(
            gzip.compress(data) if name.endswith(".gz") else data
        )
    assert [path.name for path in parts(tmp_path / "x.jsonl")] == older
    count = 2 * len(older) + 2
    for spec in (tmp_path, tmp_path / "x.jsonl", tmp_path / older[0]):
        (run,) = read_runs(spec).values()
        assert values(run, "a") == {step: float(step) for step in range(1, count + 1)}
        assert not run.restarts
        (status,) = [
            state.status for state in run.sources.values() if state.status.rank
        ]
        assert (status.bytes_read, status.problem) == (status.size, None)
        assert status.note == f"read with its {len(older)} older parts"
    (run,) = read_runs(*sorted(tmp_path.iterdir())).values()
    assert run.step == count


def test_a_damaged_part_costs_itself_alone(tmp_path):
    (tmp_path / "x.jsonl.2.gz").write_bytes(b"no gzip at all" * 20)
    (tmp_path / "x.jsonl.1").write_text(lines(1))
    (tmp_path / "x.jsonl").write_text(lines(2))
    (run,) = read_runs(tmp_path).values()
    assert values(run, "a") == {1: 1.0, 2: 2.0}
    (said,) = [
        state.status.problem for state in run.sources.values() if state.status.problem
    ]
    assert said.startswith("x.jsonl.2.gz: ")


class Rotating:
    """A log that is written and rotated in several ways."""

    def __init__(self, directory):
        self.path = directory / "x.jsonl"
        self.source = FileSource(self.path, filelogger)
        self.last = 0

    def write(self, count=1):
        with self.path.open("a") as file:
            for _ in range(count):
                self.last += 1
                file.write(lines(self.last))

    def shift(self):
        for number in (3, 2, 1):
            for suffix in ("", ".gz"):
                old = self.path.with_name(f"x.jsonl.{number}{suffix}")
                if old.exists():
                    old.rename(self.path.with_name(f"x.jsonl.{number + 1}{suffix}"))

    def rename(self):
        self.shift()
        self.path.rename(self.path.with_name("x.jsonl.1"))

    def copy(self):
        self.shift()
        shutil.copy(self.path, self.path.with_name("x.jsonl.1"))
        self.path.write_text("")

    def compress(self):
        self.shift()
        self.path.with_name("x.jsonl.1.gz").write_bytes(
            gzip.compress(self.path.read_bytes())
        )
        self.path.unlink()


@pytest.mark.parametrize("way", ["rename", "copy", "compress"])
@pytest.mark.parametrize("unread", [0, 3])
@pytest.mark.parametrize("times", [1, 2])
def test_rotation_while_it_is_followed(tmp_path, way, unread, times):
    log = Rotating(tmp_path)
    log.write(5)
    found = drain(log.source)
    for _ in range(times):
        log.write(unread + times - 1)
        getattr(log, way)()
    found += drain(log.source)
    log.write(4)
    found += drain(log.source)
    assert steps(found) == list(range(1, log.last + 1))
    assert all(isinstance(record, MetricRows) for record in found), (
        "no restart, nothing unreadable"
    )
    assert log.source.status().problem is None
    assert log.source.status().bytes_read == log.source.status().size


def test_a_file_that_begins_anew_beside_older_parts_is_still_a_restart(tmp_path):
    log = Rotating(tmp_path)
    log.write(5)
    log.rename()
    log.write(3)
    assert steps(drain(log.source)) == list(range(1, 9))
    log.path.write_text(lines(1))
    assert any(
        "file was" in getattr(record, "reason", "") for record in drain(log.source)
    )
