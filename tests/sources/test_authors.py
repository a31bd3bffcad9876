"""Whether the process that began an event file lives, on a `/proc` of our own making."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil
import pytest
from file_writing import write_file

from verl_tui.records import Writer
from verl_tui.sources.host.processes import Authors

if TYPE_CHECKING:
    from pathlib import Path

BOOT, BEGUN, NOW = 1_790_000_000, 1_795_000_000, 1_795_001_000.0
FIRST = "pid:[4026531836]"
CONTAINER = "pid:[4026532741]"


def proc(root: Path, *, space: str = FIRST) -> Path:
    """Return a `/proc` without processes."""
    (root / "self" / "ns").mkdir(parents=True)
    (root / "self" / "ns" / "pid").symlink_to(space)
    psutil.PROCFS_PATH = str(root)
    (root / "stat").write_text(f"cpu 1 2 3\nbtime {BOOT}\n")
    return root


def process(
    root: Path,
    pid: int,
    *,
    began: float = BEGUN - 60,
    state: str = "S",
    inside: int | None = None,
) -> None:
    """Put a process there; `inside` is its number in a container."""
    folder = root / str(pid)
    folder.mkdir()
    ticks = int((began - BOOT) * os.sysconf("SC_CLK_TCK"))
    (folder / "stat").write_text(
        f"{pid} (a) b) {state} " + " ".join(["0"] * 18) + f" {ticks}" + " 0" * 32 + "\n"
    )
    numbers = f"{pid}\t{inside}" if inside is not None else str(pid)
    (folder / "status").write_text(f"Name:\tpython\nNSpid:\t{numbers}\nThreads:\t1\n")


def event_file(
    folder: Path, *, host: str = "gpu-7.lan", pid: int = 4711, changed: float = NOW - 5
) -> Path:
    path = write_file(folder / f"events.out.tfevents.{BEGUN}.{host}.{pid}.0", b"x")
    os.utime(path, (changed, changed))
    return path


@pytest.fixture(autouse=True)
def _real_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each test's own `/proc` forgotten behind it."""
    monkeypatch.setattr(psutil, "PROCFS_PATH", psutil.PROCFS_PATH)


@pytest.fixture
def system(tmp_path: Path) -> Path:
    return proc(tmp_path / "proc")


def look(path: Path, now: float = NOW) -> Writer | None:
    return Authors("gpu-7.lan").find([path], now).get(path)


def test_a_process_that_is_there_lives_and_one_that_is_not_is_gone(system, tmp_path):
    path = event_file(tmp_path)
    assert look(path) == Writer(4711, "", gone=True, by_name=True)
    process(system, 4711)
    assert look(path) == Writer(4711, "", by_name=True)


def test_a_dead_process_that_nobody_has_waited_for_is_gone(system, tmp_path):
    process(system, 4711, state="Z")
    reported = look(event_file(tmp_path))
    assert reported is not None
    assert reported.gone


@pytest.mark.parametrize(
    "name",
    [
        "events.out.tfevents.1795000000.gpu-8.lan.4711.0",
        "events.out.tfevents.1795000000.gpu-7.lan",
        "train.log",
    ],
)
def test_other_hosts_and_names_without_a_process_tell_nothing(system, tmp_path, name):
    path = write_file(tmp_path / name, b"x")
    os.utime(path, (NOW, NOW))
    assert look(path) is None


def test_in_a_container_only_a_long_silent_file_has_lost_its_process(tmp_path):
    proc(tmp_path / "proc", space=CONTAINER)
    path = event_file(tmp_path)
    assert look(path) is None
    reported = look(path, NOW + 300)
    assert reported is not None
    assert reported.gone


def test_what_cannot_be_seen_is_no_proof(tmp_path):
    psutil.PROCFS_PATH = str(tmp_path / "nowhere")
    assert look(event_file(tmp_path)) is None
    assert (
        Authors("h").find([tmp_path / "events.out.tfevents.1795000000.h.1.0"], NOW)
        == {}
    )
