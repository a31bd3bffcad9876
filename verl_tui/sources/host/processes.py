"""Name, directory and ancestors of a process of this host that computes on a GPU.

Only the processes that the driver names and what started them are looked at. Everything there can
be hidden or gone; what cannot be seen stays unsaid. A container may know another process under the
number that the driver means: one whose open files can be seen and among which there is no NVIDIA
device is not it.

psutil says what a process is. What it has open stands in `/proc`: psutil names only plain files, by
paths that are another's where the process lies in a container.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from verl_tui.records import GpuProcess
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEPT = 30.0
"""Seconds for which what was seen of a process holds at most: to look at all its open files anew
takes milliseconds.
"""
_GENERATIONS = 12
_MOST_OPEN = 4096
"""Open files looked at, of one process."""
_DEVICES = ("/dev/nvidia", "/dev/dxg")
_WRITING = os.O_WRONLY | os.O_RDWR
_WHOLE_HOST = "pid:[4026531836]"
"""The first namespace of processes, from which all others can be seen (`PROC_PID_INIT_INO` in
Linux).
"""
_NAME = 80
_INTERPRETERS = ("python", "bash", "sh")


def folder_of(pid: int | str) -> Path:
    """Return the directory in which the system tells of a process."""
    return Path(getattr(psutil, "PROCFS_PATH", "/proc"), str(pid))


def pids() -> list[int]:
    """Return the processes that can be seen."""
    try:
        names = os.listdir(folder_of(""))  # noqa: PTH208 - names are enough
    except OSError:
        return []
    return [int(name) for name in names if name.isdigit()]


def sees_all() -> bool:
    """Return whether all processes of the host can be seen, not only those of a container."""
    return _link(folder_of("self") / "ns" / "pid") == _WHOLE_HOST


def lives(process: psutil.Process) -> bool:
    """Return whether a process is there, and does not only wait to be buried."""
    try:
        return process.is_running() and process.status() not in (
            psutil.STATUS_ZOMBIE,
            psutil.STATUS_DEAD,
        )
    except psutil.Error:
        return False


def is_written(pid: int, descriptor: str) -> bool:
    """Return whether a process has an open file open for writing."""
    try:
        info = (folder_of(pid) / "fdinfo" / descriptor).read_text()
        flags = next(
            (line for line in info.splitlines() if line.startswith("flags:")), "0 0"
        )
        return bool(int(flags.split()[1], 8) & _WRITING)
    except (OSError, ValueError, IndexError):
        return False


def pipe_of(pid: int, descriptor: str) -> str:
    """Return the pipe that a process has open, empty if that is none."""
    link = _link(folder_of(pid) / "fd" / descriptor)
    return link if link.startswith("pipe:") else ""


def name_of(pid: int) -> str:
    """Return what runs: a title that the process gave itself, a program, or what an interpreter
    was given.
    """
    folder = folder_of(pid)
    try:
        with (folder / "cmdline").open("rb") as file:
            written = file.read(4096).rstrip(b"\0")
        words = written.decode(errors="replace").split("\0")
        if not words[0]:
            words = [(folder / "comm").read_text(errors="replace").strip()]
    except OSError:
        return ""
    program = words[0].rpartition("/")[2] if words[0].startswith("/") else words[0]
    return one_line(" ".join((program, *_script(program, words[1:]))), _NAME)


class Processes:
    """Processes by number; looks again when what it knows is old."""

    def __init__(self) -> None:
        # by process, which its number alone is not
        self._read = lru_cache(maxsize=1024)(_read)

    def look(self, pid: int, memory: int | None, now: float) -> GpuProcess:
        """Return the known facts about a process; never raises.

        Args:
            pid: Its number, as the driver reports it.
            memory: Bytes it holds on the device.
            now: Seconds since the Unix epoch.
        """
        try:
            found = self._read(psutil.Process(pid), now // _KEPT)
        except psutil.Error:
            return GpuProcess(pid, memory=memory)
        return replace(found, memory=memory)


def _read(process: psutil.Process, _period: float) -> GpuProcess:
    folder = folder_of(process.pid)
    try:
        links = [_link(path) for path in islice((folder / "fd").iterdir(), _MOST_OPEN)]
    except OSError:  # hidden
        links = [*_DEVICES]
    if not any(link.startswith(_DEVICES) for link in links):
        return GpuProcess(process.pid)
    return GpuProcess(
        process.pid,
        name_of(process.pid),
        cwd=_link(folder / "cwd"),
        line=frozenset(_line(process)),
    )


def _line(process: psutil.Process) -> Iterator[int]:
    """Yield a process and what started it, but for the first of all, which is nobody's."""
    one: psutil.Process | None = process
    for _ in range(_GENERATIONS):
        if one is None or one.pid <= 1:
            return
        yield one.pid
        one = one.parent()


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _script(program: str, words: list[str]) -> list[str]:
    """Return the script or module an interpreter runs; further words may be secrets."""
    if not program.startswith(_INTERPRETERS):
        return []
    for at, word in enumerate(words):
        if word == "-m":
            return words[at : at + 2]
        if word == "-c":
            return ["-c"]
        if not word.startswith("-"):
            return [word.rpartition("/")[2]]
    return []
