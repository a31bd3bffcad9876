"""The processes of a run on this host, and on request what they are doing just now."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.runs.run import Run

_MOST = 16
"""Processes described and, of these, dumped: those of a node with eight devices."""
_PATIENCE = 30.0
"""Seconds to wait for one dump; a stopped process never gives one."""
_WORDS = 20_000
"""Characters of a dump or a command line that are kept."""
_FACTS = (
    *("pid", "ppid", "name", "cmdline", "create_time", "status", "cwd"),
    *("num_threads", "memory_info"),
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


def pids(run: Run) -> list[int]:
    """Return the processes of this host that write a run's logs; those that compute for it are
    among their children.
    """
    writers = (state.status.writer for state in run.sources.values())
    known = [one for one in writers if one is not None]
    found = [one.pid for one in known if not one.gone and not one.by_name]
    return list(dict.fromkeys(found))


def with_children(found: Sequence[int]) -> list[int]:
    """Return processes together with those that they have started, each once."""
    import psutil

    every: dict[int, None] = {}
    for pid in found:
        every[pid] = None
        try:
            children = _process(pid).children(recursive=True)
            every |= dict.fromkeys(child.pid for child in children)
        except psutil.Error:
            continue
    return list(every)


def process_facts(found: Sequence[int]) -> list[dict[str, Any]]:
    """Return what this host knows of processes; only the first of many."""
    described = [_facts(pid) for pid in found[:_MOST]]
    left = len(found) - _MOST
    more = {"note": f"{left} further processes left out"}
    return [*described, more] if left > 0 else described


def stacks(found: Sequence[int]) -> tuple[dict[int, str], list[str]]:
    """Return py-spy's output for processes, by process id, and a sentence for each that it cannot
    read. Programs other than Python are skipped silently.
    """
    if not found:
        return {}, [NO_PROCESS]
    program = _program()
    if program is None:
        return {}, [NO_PROGRAM]
    chosen = [pid for pid in found if _is_python(pid)]
    texts: dict[int, str] = {}
    problems = [] if chosen else ["none of the run's processes is a Python program"]
    for pid in chosen[:_MOST]:
        text, problem = _dump(program, pid)
        if problem:
            problems.append(f"process {pid}: {problem}")
        else:
            texts[pid] = text
    left = len(chosen) - _MOST
    if left > 0:
        problems.append(f"{left} further processes left out")
    return texts, problems


def _facts(pid: int) -> dict[str, Any]:
    import psutil

    try:
        known: dict[str, Any] = _process(pid).as_dict(_FACTS)
    except psutil.Error as error:
        return {"pid": pid, "problem": one_line(str(error))}
    memory = known.pop("memory_info")
    known["command"] = " ".join(known.pop("cmdline") or ())[:_WORDS]
    return known | {"resident_bytes": memory and memory.rss}


def _process(pid: int) -> Any:
    import psutil

    return psutil.Process(pid)


def _program() -> str | None:
    """Return where py-spy is: on the PATH, or installed beside this Python."""
    return shutil.which("py-spy") or shutil.which(
        "py-spy", path=str(Path(sys.executable).parent)
    )


def _is_python(pid: int) -> bool:
    import psutil

    try:
        process = _process(pid)
        return "python" in Path(process.exe() or process.name()).name
    except psutil.AccessDenied:
        return True  # py-spy then says why it cannot be read
    except psutil.Error:
        return False


def _dump(program: str, pid: int) -> tuple[str, str]:
    """Return a process's stacks, or why there are none."""
    command = [program, "dump", "--pid", str(pid)]
    try:
        done = subprocess.run(  # noqa: S603 - a program that was found, a number, and no shell
            command,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return "", f"py-spy gave no answer within {_PATIENCE:.0f} s"
    except OSError as error:
        return "", f"py-spy cannot be started: {(error.strerror or str(error)).lower()}"
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")[:_WORDS], ""
    said = one_line(done.stderr.decode("utf-8", "replace"), 300)
    denied = any(
        word in said.lower() for word in ("permission", "not permitted", "root")
    )
    return (
        "",
        f"py-spy cannot read it: {_DENIED if denied else said or 'it says nothing'}",
    )
