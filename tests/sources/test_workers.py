"""Workers: the same records as without them, whatever becomes of them, and none is left behind."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from verl_tui import debug_log
from verl_tui.check.data import report
from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.records import MetricRows
from verl_tui.secrets import Mask
from verl_tui.sources import ahead
from verl_tui.sources.feed import Feed
from verl_tui.sources.host.processes import usable_cores
from verl_tui.sources.source_reader import source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.records import Record
    from verl_tui.sources.files.any_source import Source

NOW = 1_800_000_000.0

linux = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks processes up"
)


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


LEAST = 8 * 2**20
"""Bytes from which on workers read here."""


@pytest.fixture(autouse=True)
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "LEAST", LEAST)
    monkeypatch.setattr(ahead, "SHARE", LEAST // 2)


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
        if at == 3:
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
from verl_tui.sources import ahead
from verl_tui.sources.feed import Feed
ahead.LEAST, ahead.SHARE = 8 * 2**20, 2**22
feed = Feed(sys.argv[1:], workers=1)
feed.scan()
for at, batch in enumerate(feed.read()):
    if at == 3:
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
