"""Workers: the same records as without them, whatever becomes of them, and none is left behind."""

from __future__ import annotations

import gzip
import json
import os
import select
import signal
import subprocess
import sys
import threading
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import log_writing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verl_tui import debug_log
from verl_tui.check import report
from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.records import MetricRows
from verl_tui.secrets import Mask
from verl_tui.sources.feed import Feed
from verl_tui.sources.files.compressed import uncompressed_name
from verl_tui.sources.files.tail import Tail
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.host.cores import usable_cores
from verl_tui.sources.packing import packed, unpacked
from verl_tui.sources.source import FileSource
from verl_tui.sources.workers import LEAST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.records import Batch, Record
    from verl_tui.sources.discovery.found import FoundFile

NOW = 1_800_000_000.0
LOGS = {
    "verl.jsonl": log_writing.file_log,
    "tutorial.jsonl": log_writing.tutorial_log,
    "swift.jsonl": log_writing.swift_log,
    "trainer_log.jsonl": log_writing.llama_factory_log,
    "console.log": log_writing.console_log,
    "metrics.csv": log_writing.csv_log,
    "events.out.tfevents.1.host": log_writing.event_log,
    "run-x.wandb": log_writing.wandb_log,
}
"""Name and writer of a log of each format that may be large."""

linux = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks processes up"
)


@cache
def log_of(name: str) -> bytes:
    """Return a log that goes back once; of two members where it is compressed."""
    steps = (
        [*range(1, 30), *range(20, 40)] if "tfevents" not in name else [*range(1, 50)]
    )
    data = LOGS[name.removesuffix(".gz")](steps)
    half = len(data) // 2
    return (
        gzip.compress(data[:half]) + gzip.compress(data[half:])
        if ".gz" in name
        else data
    )


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from([*LOGS, "verl.jsonl.gz", "console.log.gz"]),
    chunk=st.integers(100, 4000),
    cuts=st.sets(st.integers(0, 12)),
    grown=st.integers(0, 100),
)
def test_a_source_that_travels_gives_the_same_records(
    name: str, chunk: int, cuts: set[int], grown: int
) -> None:
    data = log_of(name)
    with TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(data[: len(data) * grown // 100])
        head = gzip.decompress(data) if name.endswith(".gz") else data
        format = next(
            one for one in FORMATS if one.matches(uncompressed_name(path), head)
        )
        here, away = (FileSource(path, format, 3, chunk) for _ in range(2))
        alike = ([], [])
        for turn in count():
            if turn in cuts:
                away = unpacked(packed(away))
            more = [
                read(source, found)
                for source, found in zip((here, away), alike, strict=True)
            ]
            if turn == 8:
                path.write_bytes(data)
            if turn > 8 and not any(more):
                break
        away = unpacked(packed(away))
        assert flat(here.finish()) == flat(away.finish())
        # A compressed log's turns may be others; of one turn the rows of the same metrics are one.
        assert sorted(alike[0]) == sorted(alike[1])
        assert here.status() == away.status()


@pytest.mark.parametrize("name", LOGS)
def test_records_travel_unchanged(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(log_of(name))
    format = next(one for one in FORMATS if one.matches(path, log_of(name)))
    records, _ = FileSource(path, format).read()
    assert records
    assert flat(unpacked(packed(records))) == flat(records)


def read(source: FileSource, found: list[str]) -> bool:
    """Read a little of a source; return whether more waits."""
    records, more = source.read()
    found += flat(records)
    return more


def flat(records: Sequence[Record]) -> list[str]:
    """Return records one by one, rows, too."""
    found = []
    for record in records:
        if isinstance(record, MetricRows):
            times = record.times or record.steps
            rows = zip(record.steps, record.orders, times, *record.columns, strict=True)
            about = f"{record.keys} {record.mean} {record.progress} {record.estimated}"
            found += [f"{about} {row}" for row in rows]
        else:
            found.append(repr(record))
    return found


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that are just large enough for workers. Most of it are long notes, which are quickly
    read; the numbers are more than a pipe holds, so that no worker is done before they are taken.
    """
    root = tmp_path_factory.mktemp("large")
    numbers = json.dumps({f"other/metric_{at}": at / 7 for at in range(100)})
    lines = [
        f'{{"step": {step}, "data": {{"actor/ppo_kl": 0.05}}}}' for step in range(20)
    ]
    note = "x" * 200_000
    lines += [
        f'{{"step": {step}, "data": {{"note": "{note}"}}}}' for step in range(20, 100)
    ]
    lines += [f'{{"step": {step}, "data": {numbers}}}' for step in range(100, 1900)]
    for name in ("a", "b"):
        (root / name).mkdir()
        (root / name / "train.jsonl").write_text("\n".join(lines) + "\n")
    assert sum(log.stat().st_size for log in root.rglob("*.jsonl")) > LEAST + 2**20
    return root


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run that is just large enough for workers, of the same lines."""
    path = tmp_path_factory.mktemp("single") / "train.jsonl"
    numbers = json.dumps({f"other/metric_{at}": at / 7 for at in range(100)})
    note = "x" * 200_000
    with path.open("w") as file:
        for step in range(2000):
            numbered = step % 13 or step > 1900
            data = (
                numbers if numbered else f'{{"actor/ppo_kl": 0.05, "note": "{note}"}}'
            )
            file.write(f'{{"step": {step}, "data": {data}}}\n')
    assert path.stat().st_size > LEAST + 2**20
    return path


def checked(root: Path, workers: int | None) -> str:
    monitor = load([str(root)], Config(workers=workers), NOW)
    return json.dumps(report(monitor, NOW)) + repr(monitor.verdicts)


def noted(root: Path, workers: int | None, out: Path) -> str:
    """Return what is noted of workers while runs are read."""
    with debug_log.recording(out, Mask({})):
        checked(root, workers)
    lines = (line for line in out.read_text().splitlines() if "worker" in line)
    return "\n".join(lines)


def test_a_check_with_workers_finds_the_same(large: Path, tmp_path: Path) -> None:
    out = tmp_path / "debug.log"
    with debug_log.recording(out, Mask({})):
        assert checked(large, 2) == checked(large, 0)
    assert "started=2" in out.read_text()
    assert "read without" not in out.read_text()


def test_small_logs_start_none(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_bytes(log_of("verl.jsonl"))
    assert noted(tmp_path, None, tmp_path / "debug.log") == ""


def children(of: int) -> set[int]:
    """Return the processes that a process has started."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(after[1]) == of and after[0] != "Z":
            found.add(int(stat.parent.name))
    return found


def summed(batch: Batch) -> str:
    """Return a batch in a few words; of rows their steps and the sums of their columns."""
    reported = [
        (record.keys, *record.steps, *map(sum, record.columns))
        if isinstance(record, MetricRows)
        else record
        for record in batch.records
    ]
    return f"{batch.run} {batch.status} {reported}"


@linux
def test_a_worker_that_is_killed_costs_nothing(large: Path, tmp_path: Path) -> None:
    def batches(workers: int, *, kill: bool) -> list[str]:
        feed = Feed([str(large)], workers=workers)
        before = children(os.getpid())
        found = []
        feed.scan()
        for at, batch in enumerate(feed.read()):
            started = children(os.getpid()) - before if kill and at == 10 else set()
            for process in started:
                assert os.getsid(process) != os.getsid(0), "Ctrl+C would reach it"
                os.kill(process, signal.SIGKILL)
            killed.extend(started)
            found.append(summed(batch))
        assert children(os.getpid()) == before, "none is left"
        return found

    killed: list[int] = []
    out = tmp_path / "debug.log"
    with debug_log.recording(out, Mask({})):
        assert batches(2, kill=True) == batches(0, kill=False)
    assert len(killed) == 2
    assert out.read_text().count("read without a worker") == 2


def read_singly(path: Path, workers: int, *, kill: bool = False) -> list[str]:
    """Return the rows of a file; kill the first worker meanwhile, if that is wanted."""
    feed = Feed([str(path)], workers=workers)
    before = children(os.getpid())
    found = []
    feed.scan()
    for at, batch in enumerate(feed.read()):
        if kill and at == 2:
            os.kill(min(children(os.getpid()) - before), signal.SIGKILL)
        found += flat(batch.records)
    assert children(os.getpid()) == before, "none is left"
    return sorted(found)


@linux
def test_a_single_file_is_read_by_several_workers(single: Path, tmp_path: Path) -> None:
    usual = tmp_path / "usual.log"
    killed = tmp_path / "killed.log"
    alone = read_singly(single, 0)
    with debug_log.recording(usual, Mask({})):
        assert read_singly(single, 2) == alone
    assert "started=2 stretched=1" in usual.read_text()
    assert "stretch read" not in usual.read_text()
    with debug_log.recording(killed, Mask({})):
        assert read_singly(single, 2, kill=True) == alone
    assert "stretch read without a worker" in killed.read_text()


_STUCK = """
import sys
from verl_tui.sources.feed import Feed
feed = Feed(sys.argv[1:], workers=1)
feed.scan()
for at, batch in enumerate(feed.read()):
    if at == 10:
        print("reading", flush=True)
        sys.stdin.read()
"""


@linux
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for another's child")
@pytest.mark.parametrize("stands_still", [False, True], ids=["reads", "stands still"])
def test_no_worker_outlives_the_app(stands_still: bool, large: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _STUCK, large],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as app:
        assert app.stdout is not None
        assert app.stdout.readline() == b"reading\n"
        (worker,) = children(app.pid)
        end = os.pidfd_open(worker)
        if stands_still:  # as on a file system that does not answer
            os.kill(worker, signal.SIGSTOP)
        app.kill()
        assert select.select([end], [], [], 20)[0], "it has ended"
        os.close(end)


class Locked(Tail):
    """Holds what cannot be written down."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.lock = threading.Lock()


def test_what_cannot_travel_is_read_here(large: Path, tmp_path: Path) -> None:
    def batches(workers: int) -> list[str]:
        feed = Feed([str(large)], workers=workers, source_of=locked)
        feed.scan()
        return [summed(batch) for batch in feed.read()]

    def locked(file: FoundFile, ordinal: int) -> FileSource:
        assert file.format is not None
        return FileSource(file.path, file.format, ordinal, tail=Locked(file.path))

    out = tmp_path / "debug.log"
    with debug_log.recording(out, Mask({})):
        assert batches(1) == batches(0)
    assert out.read_text().count("cannot pickle") == 2


@pytest.mark.parametrize(
    ("text", "least"),
    [("200000 100000", 2), ("150000 100000\n", 1), ("1000 100000", 1)],
)
def test_no_more_cores_are_used_than_a_container_may(
    tmp_path: Path, text: str, least: int
) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(text)
    assert usable_cores(quota) == min(least, usable_cores(tmp_path / "none"))


@pytest.mark.parametrize("text", ["max 100000", "", "no numbers"])
def test_without_a_limit_all_cores_are_used(tmp_path: Path, text: str) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(text)
    assert usable_cores(quota) == usable_cores(tmp_path / "none") >= 1
