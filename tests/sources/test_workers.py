"""Workers: the same records as without them, whatever becomes of them, and none is left behind."""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import subprocess
import sys
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
from verl_tui.sources.ahead import LEAST
from verl_tui.sources.feed import Feed
from verl_tui.sources.formats.catalog import FORMATS
from verl_tui.sources.host.processes import usable_cores
from verl_tui.sources.source import FileSource
from verl_tui.sources.source_reader import source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.source import Source

NOW = 1_800_000_000.0
LOGS = {
    "verl.jsonl": log_writing.file_log,
    "tutorial.jsonl": log_writing.tutorial_log,
    "swift.jsonl": log_writing.swift_log,
    "trainer_log.jsonl": log_writing.llama_factory_log,
    "console.log": log_writing.console_log,
    "events.out.tfevents.1.host": log_writing.event_log,
    "run-x.wandb": log_writing.wandb_log,
}
"""Name and writer of a log of each format that may be large."""

linux = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks processes up"
)


@cache
def log_of(name: str) -> bytes:
    """Return a log that goes back once."""
    steps = (
        [*range(1, 30), *range(20, 40)] if "tfevents" not in name else [*range(1, 50)]
    )
    return LOGS[name](steps)


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from([*LOGS]),
    chunk=st.integers(100, 4000),
    cuts=st.sets(st.integers(0, 12)),
    grown=st.integers(0, 100),
)
def test_a_source_that_is_copied_gives_the_same_records(
    name: str, chunk: int, cuts: set[int], grown: int
) -> None:
    data = log_of(name)
    with TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(data[: len(data) * grown // 100])
        format = next(one for one in FORMATS if one.matches(path, data))
        here, away = (FileSource(path, format, 3, chunk) for _ in range(2))
        alike = ([], [])
        for turn in count():
            if turn in cuts:
                away = pickle.loads(pickle.dumps(away))
            more = [
                read(source, found)
                for source, found in zip((here, away), alike, strict=True)
            ]
            if turn == 8:
                path.write_bytes(data)
            if turn > 8 and not any(more):
                break
        away = pickle.loads(pickle.dumps(away))
        assert flat(here.finish()) == flat(away.finish())
        assert alike[0] == alike[1]
        assert here.status() == away.status()


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
    """Two runs that are just large enough for workers: of the one all lines may be decoded apart,
    of the other none.
    """
    root = tmp_path_factory.mktemp("large")
    keys = [f"other/metric_{at}" for at in range(100)]
    numbers = ", ".join(f'"{key}": {at / 7}' for at, key in enumerate(keys))
    told = " - ".join(f"{key}:{at / 7}" for at, key in enumerate(keys))
    lines = {
        "file.jsonl": f'{{{{"step": {{}}, "data": {{{{{numbers}}}}}}}}}',
        "train.log": f"step:{{}} - {told}",
    }
    for name, line in lines.items():
        (root / name).mkdir()
        steps = range(1, LEAST // 2 // len(line) + 300)
        text = "\n".join(map(line.format, steps))
        (root / name / name).write_text(text + "\n")
    return root


def checked(root: Path, workers: int | None) -> str:
    monitor = load([str(root)], Config(workers=workers), NOW)
    return json.dumps(report(monitor, NOW)) + repr(monitor.verdicts)


def test_a_check_with_workers_finds_the_same(large: Path, tmp_path: Path) -> None:
    out = tmp_path / "debug.log"
    with debug_log.recording(out, Mask({})):
        assert checked(large, 2) == checked(large, 0)
    assert "started=2 sources=2" in out.read_text()
    assert "in a worker" not in out.read_text(), "nothing went wrong there"


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


def rows_of(
    root: Path,
    workers: int,
    *,
    kill: int = 0,
    source_of: Callable[..., Source] = source_of,
) -> list[str]:
    """Return what is read of each run.

    Args:
        root: Holds them.
        workers: Workers that read them.
        kill: How many of these are killed meanwhile.
        source_of: Makes a file's source.
    """
    feed = Feed([str(root)], workers=workers, source_of=source_of)
    before = children(os.getpid()) if kill else set()
    found = []
    feed.scan()
    for at, batch in enumerate(feed.read()):
        if at == 10:
            started = sorted(children(os.getpid()) - before) if kill else []
            for process in started[:kill]:
                assert os.getsid(process) != os.getsid(0), "Ctrl+C would reach it"
                os.kill(process, signal.SIGKILL)
        found += [f"{batch.run} {row}" for row in flat(batch.records)]
    assert not kill or children(os.getpid()) == before, "none is left"
    return sorted(found)


@linux
def test_workers_that_are_killed_cost_nothing(large: Path, tmp_path: Path) -> None:
    out = tmp_path / "debug.log"
    with debug_log.recording(out, Mask({})):
        assert rows_of(large, 2, kill=2) == rows_of(large, 0)
    assert "in a worker" in out.read_text(), "something was missing"


_STUCK = """
import sys
from verl_tui.sources.ahead import LEAST
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
