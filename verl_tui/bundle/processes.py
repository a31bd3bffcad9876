"""The processes of a run on this host, and on request what they are doing just now."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_tui.text import one_line

if TYPE_CHECKING:
    from psutil import Process

    from verl_tui.runs.run import Run

_MOST = 16
"""Processes described and, of these, dumped: those of a node with eight devices."""
_PATIENCE = 30.0
"""Seconds to wait for one dump; a stopped process never gives one."""
_WORDS = 20_000
"""Characters of a dump or a command line that are kept."""
_FACTS = (
    "pid",
    "ppid",
    "name",
    "cmdline",
    "create_time",
    "status",
    "cwd",
    "num_threads",
    "memory_info",
)
"""What psutil is asked about a process."""
NO_PROCESS = "no process of this host is known to write this run's logs"
NO_PROGRAM = (
    "py-spy is not installed: pip install 'verl-tui[stacks]', or put it on the PATH"
)
_DENIED = (
    "reading another process needs permission: root, the capability SYS_PTRACE in a container, or "
    "kernel.yama.ptrace_scope 0"
)
_SIGNS_OF_DENIAL = ("permission", "not permitted", "root")


def processes_of(run: Run) -> list[Process]:
    """Return the processes of this host that write a run's logs, with those that they have started:
    these compute for it.
    """
    import psutil

    found: dict[int, Process] = {}
    for status in run.statuses:
        writer = status.writer
        if writer and not writer.gone and not writer.by_name:
            with suppress(psutil.Error):
                process = psutil.Process(writer.pid)
                children = process.children(recursive=True)
                found |= {one.pid: one for one in (process, *children)}
    return list(found.values())[:_MOST]


def process_facts(process: Process) -> dict[str, Any]:
    """Return what this host knows of a process."""
    import psutil

    try:
        known: dict[str, Any] = process.as_dict(_FACTS)
    except psutil.Error as error:
        return {"pid": process.pid, "problem": one_line(str(error))}
    memory = known.pop("memory_info")
    known["command"] = " ".join(known.pop("cmdline") or ())[:_WORDS]
    return known | {"resident_bytes": memory and memory.rss}


def stacks(found: Sequence[Process]) -> tuple[dict[int, str], list[str]]:
    """Return py-spy's output for processes, by process id, and a sentence for each that it cannot
    read. Programs other than Python are skipped silently.
    """
    # On the PATH, or installed beside this Python.
    here = str(Path(sys.executable).parent)
    program = shutil.which("py-spy") or shutil.which("py-spy", path=here)
    if not found or program is None:
        return {}, [NO_PROGRAM if found else NO_PROCESS]
    chosen = list(filter(_is_python, found))
    texts: dict[int, str] = {}
    problems = [] if chosen else ["none of the run's processes is a Python program"]
    for process in chosen:
        text, problem = _dump(program, process.pid)
        if problem:
            problems.append(f"process {process.pid}: {problem}")
        else:
            texts[process.pid] = text
    return texts, problems


def _is_python(process: Process) -> bool:
    import psutil

    try:
        return "python" in Path(process.exe() or process.name()).name
    except psutil.Error as error:  # py-spy says why one cannot be read
        return isinstance(error, psutil.AccessDenied)


def _dump(program: str, pid: int) -> tuple[str, str]:
    """Return a process's stacks, or why there are none."""
    try:
        done = subprocess.run(  # noqa: S603 - a program that was found, a number, and no shell
            [program, "dump", "--pid", str(pid)],
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return "", f"py-spy gave no answer within {_PATIENCE:.0f} s"
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")[:_WORDS], ""
    said = one_line(done.stderr.decode("utf-8", "replace"), 300)
    denied = any(word in said.lower() for word in _SIGNS_OF_DENIAL)
    return "", f"py-spy cannot read it: {_DENIED if denied else said}"
