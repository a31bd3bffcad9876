"""What /proc tells of a process on a GPU, read from a directory that looks like it."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil
import pytest
from file_writing import write_file

from verl_tui.sources.host.processes import gpu_process

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.records import GpuProcess
TIMES = itertools.count(0.0, 1000.0)
"""What was seen of a process holds for a while."""
NVIDIA = ("9", "/dev/nvidia0", "02")


@dataclass
class Proc:
    """A directory like /proc."""

    root: Path
    children: dict[int, list[int]] = field(default_factory=dict)

    def add(
        self,
        pid: int,
        parent: int,
        *command: str,
        started: int = 100,
        cwd: str = "/work",
        files: tuple[tuple[str, str, str], ...] = (NVIDIA,),
    ) -> None:
        """Add a process; each open file has a number, a target and its flags."""
        folder = self.root / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "fdinfo").mkdir()
        rest = ["S", str(parent), *["0"] * 17, str(started), *["0"] * 32]
        (folder / "stat").write_text(f"{pid} (a) name) {' '.join(rest)}\n")
        (folder / "cmdline").write_bytes(
            b"".join(os.fsencode(word) + b"\0" for word in command)
        )
        (folder / "cwd").symlink_to(cwd)
        for number, target, flags in files:
            (folder / "fd" / number).symlink_to(target)
            (folder / "fdinfo" / number).write_text(
                f"pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n"
            )
        self.children.setdefault(parent, []).append(pid)
        for task, own in self.children.items():
            listed = self.root / str(task) / "task" / str(task)
            write_file(listed / "children", " ".join(map(str, own)))


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    root = tmp_path / "proc"
    write_file(root / "stat", "btime 1790000000\n")
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(root))
    return Proc(root)


def look(pid: int = 50) -> GpuProcess:
    return gpu_process(pid, 7, next(TIMES))


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (
            ("/usr/bin/python3", "-u", "-m", "verl.trainer.main_ppo", "token=secret"),
            "python3 -m verl.trainer.main_ppo",
        ),
        (("python", "/home/me/train.py", "--key", "secret"), "python train.py"),
        (("python", "-c", "secret"), "python -c"),
        (("python",), "python"),
        (("ray::WorkerDict.generate()",), "ray::WorkerDict.generate()"),
        (("/opt/sglang/bin/server", "--api-key", "secret"), "server"),
        (("evil\x1b[2J\nname",), "evil name"),
        ((), "a) name"),
    ],
)
def test_name_tells_the_program_and_no_secret(proc, command, name):
    proc.add(50, 1, *command)
    assert look().name == name


def test_a_process_descends_from_all_that_started_it(proc):
    proc.add(10, 1, "python", files=())
    proc.add(20, 10, "raylet", files=())
    proc.add(30, 10, "tee", files=())
    proc.add(50, 20, "ray::Worker")
    found = look()
    assert found.line == {10, 20, 50}
    assert found.cwd == "/work"
