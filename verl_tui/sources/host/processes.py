"""What this host tells of its processes: the name, directory and ancestors of one that computes on
a GPU.

A container may know another process under the number that the driver means: one whose open files
can be seen and among which there is no NVIDIA device is not it. What is hidden or gone stays
unsaid.

psutil says what a process is. What it has open stands in `/proc`: psutil names only plain files, by
paths that are another's where the process lies in a container.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache

import psutil

from verl_tui.records import GpuProcess
from verl_tui.text import one_line

_KEPT = 30.0
"""Seconds for which what was seen of a process holds at most: to look at all its open files anew
takes milliseconds.
"""
_GENERATIONS = 12
_MOST_OPEN = 4096
"""Open files looked at, of one process."""
_DEVICES = ("/dev/nvidia", "/dev/dxg")
_WHOLE_HOST = "pid:[4026531836]"
"""The first namespace of processes, from which all others can be seen (`PROC_PID_INIT_INO` in
Linux).
"""
_NAME = 80
_INTERPRETERS = ("python", "bash", "sh")


def folder_of(pid: int | str) -> str:
    """Return the directory in which the system tells of a process."""
    return f"{getattr(psutil, 'PROCFS_PATH', '/proc')}/{pid}"


def others() -> list[int]:
    """Return the processes that can be seen, but for our own."""
    try:
        return [pid for pid in psutil.pids() if pid != os.getpid()]
    except (OSError, IndexError):  # no such system, or none can be seen
        return []


def sees_all() -> bool:
    """Return whether all processes of the host can be seen, not only those of a container."""
    return link_at(f"{folder_of('self')}/ns/pid") == _WHOLE_HOST


def link_at(path: str) -> str:
    """Return where a link leads, empty where that cannot be seen."""
    try:
        return os.readlink(path)  # noqa: PTH115 - a path object costs more
    except OSError:
        return ""


def open_files(pid: int) -> list[str]:
    """Return the numbers of the files that a process has open.

    Raises:
        OSError: It is gone, or hidden.
    """
    return os.listdir(f"{folder_of(pid)}/fd")  # noqa: PTH208 - names are enough


def lives(process: psutil.Process) -> bool:
    """Return whether a process is there, and does not only wait to be buried."""
    try:
        return process.is_running() and process.status() not in (
            psutil.STATUS_ZOMBIE,
            psutil.STATUS_DEAD,
        )
    except psutil.Error:
        return False


def name_of(process: psutil.Process) -> str:
    """Return what runs: a title that the process gave itself, a program, or what an interpreter
    was given.
    """
    try:
        first, *words = process.cmdline() or [process.name()]
    except (psutil.Error, OSError):
        return ""
    program = first.rpartition("/")[2] if first.startswith("/") else first
    return one_line(" ".join((program, *_script(program, words))), _NAME)


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


def gpu_process(pid: int, memory: int | None, now: float) -> GpuProcess:
    """Return the known facts about a process; never raises.

    Args:
        pid: Its number, as the driver reports it.
        memory: Bytes it holds on the device.
        now: Seconds since the Unix epoch.
    """
    try:
        # by process, which its number alone is not
        found = _facts(psutil.Process(pid), now // _KEPT)
    except psutil.Error:
        return GpuProcess(pid, memory=memory)
    return replace(found, memory=memory)


@lru_cache(maxsize=1024)
def _facts(process: psutil.Process, _period: float) -> GpuProcess:
    folder = folder_of(process.pid)
    try:
        names = open_files(process.pid)[:_MOST_OPEN]
        links = [link_at(f"{folder}/fd/{name}") for name in names]
    except OSError:  # hidden
        links = [*_DEVICES]
    if not any(link.startswith(_DEVICES) for link in links):
        return GpuProcess(process.pid)
    line = [process, *process.parents()[:_GENERATIONS]]
    return GpuProcess(
        process.pid,
        name_of(process),
        cwd=link_at(f"{folder}/cwd"),
        # the first of all processes is nobody's
        line=frozenset(one.pid for one in line if one.pid > 1),
    )
