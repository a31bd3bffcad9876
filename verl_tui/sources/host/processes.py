"""Name, directory and written files of a process of this host that computes on a GPU.

Only `/proc` of the processes that the driver names, of what started them, and of a `tee` that these
write to is read. Everything there can be hidden or gone; what cannot be seen stays unsaid. A
container may know another process under the number that the driver means: one whose open files can
be seen and among which there is no NVIDIA device is not it.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import GpuProcess
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEPT = 30.0
"""Seconds for which what was seen of a process holds: to look at all its open files anew takes
milliseconds.
"""
_GENERATIONS = 12
_MOST_OPEN = 4096
"""Open files looked at, of one process."""
_DEVICES = ("/dev/nvidia", "/dev/dxg")
_NO_FILES = ("/dev/", "/proc/", "/sys/", "/memfd:")
_WRITING = os.O_WRONLY | os.O_RDWR
_NAME = 80
_INTERPRETERS = ("python", "bash", "sh")


class _Seen(NamedTuple):
    """A process as it was when it was looked at."""

    started: str
    """Start time: distinguishes it from a later process with the same number."""
    time: float
    process: GpuProcess


class OpenFiles(NamedTuple):
    """The files that a process has open."""

    device: bool | None
    """True if an NVIDIA device is among it, None if nothing can be seen."""
    files: frozenset[str]
    """Files that it writes."""
    pipes: frozenset[str]
    """Pipes at its standard output and error."""


class Processes:
    """Processes by number; looks again when what it knows is old.

    Args:
        root: The system's directory of processes.
    """

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root
        self._seen: dict[int, _Seen] = {}

    def look(self, pid: int, memory: int | None, now: float) -> GpuProcess:
        """Return the known facts about a process; never raises.

        Args:
            pid: Its number, as the driver reports it.
            memory: Bytes it holds on the device.
            now: Seconds since the Unix epoch.
        """
        status = self._status(pid)
        if status is None:
            return GpuProcess(pid, memory=memory)
        _, started = status
        seen = self._seen.get(pid)
        if seen is None or seen.started != started or not 0 <= now - seen.time < _KEPT:
            seen = self._seen[pid] = _Seen(started, now, self._read(pid))
        known = seen.process
        return GpuProcess(pid, known.name, memory, known.cwd, known.files)

    def name(self, pid: int) -> str:
        """Return what runs: a title that the process gave itself, a program, or what an interpreter
        was given.
        """
        folder = self._root / str(pid)
        try:
            with (folder / "cmdline").open("rb") as file:
                words = [
                    word.decode(errors="replace")
                    for word in file.read(4096).rstrip(b"\0").split(b"\0")
                ]
            if not words[0]:
                words = [(folder / "comm").read_text(errors="replace").strip()]
        except OSError:
            return ""
        program = words[0].rpartition("/")[2] if words[0].startswith("/") else words[0]
        return one_line(" ".join((program, *_script(program, words[1:]))), _NAME)

    def forget(self, now: float) -> None:
        """Drop processes that have not been asked for in a long time."""
        self._seen = {
            pid: seen
            for pid, seen in self._seen.items()
            if 0 <= now - seen.time < 2 * _KEPT
        }

    def _read(self, pid: int) -> GpuProcess:
        own = self.opened(pid)
        if own.device is False:
            return GpuProcess(pid)
        files = set(own.files)
        for ancestor, parent in self._line(pid):
            opened = own if ancestor == pid else self.opened(ancestor)
            files |= opened.files
            if opened.pipes:
                files |= self._behind(parent, opened.pipes)
        return GpuProcess(
            pid,
            self.name(pid),
            None,
            self._link(self._root / str(pid) / "cwd"),
            frozenset(files),
        )

    def _line(self, pid: int) -> Iterator[tuple[int, int]]:
        """Yield a process and what started it, each with its parent; the first process of all is
        nobody's.
        """
        for _ in range(_GENERATIONS):
            status = self._status(pid)
            if status is None or pid <= 1:
                return
            yield pid, status[0]
            pid = status[0]

    def _behind(self, parent: int, pipes: frozenset[str]) -> frozenset[str]:
        """Return what is written by a `tee` that was started beside a process and reads one of its
        pipes.
        """
        try:
            children = (
                (self._root / str(parent) / "task" / str(parent) / "children")
                .read_text()
                .split()
            )
        except OSError:
            return frozenset()
        readers = [
            int(child)
            for child in children
            if self._link(self._root / child / "fd" / "0") in pipes
        ]
        return frozenset(
            path for reader in readers for path in self.opened(reader).files
        )

    def _status(self, pid: int) -> tuple[int, str] | None:
        """Return the parent of a process and when it started; proc(5) has the fields of `stat`."""
        try:
            rest = (
                (self._root / str(pid) / "stat")
                .read_bytes()
                .rpartition(b")")[2]
                .split()
            )
            return int(rest[1]), rest[19].decode()
        except (OSError, ValueError, IndexError):
            return None

    def opened(self, pid: int) -> OpenFiles:
        """Return what a process has open, as far as that can be seen; never raises."""
        folder = self._root / str(pid) / "fd"
        try:
            links = {
                path.name: self._link(path)
                for path in islice(folder.iterdir(), _MOST_OPEN)
            }
        except OSError:
            return OpenFiles(None, frozenset(), frozenset())
        written = (
            link for number, link in links.items() if self._writes(pid, number, link)
        )
        return OpenFiles(
            any(link.startswith(_DEVICES) for link in links.values()),
            frozenset(written),
            frozenset(
                link
                for number in ("1", "2")
                if (link := links.get(number, "")).startswith("pipe:")
            ),
        )

    def _writes(self, pid: int, number: str, link: str) -> bool:
        """Return whether an open file is written, and is the one that has this path here too."""
        if not link.startswith("/") or link.startswith(_NO_FILES):
            return False
        try:
            info = (self._root / str(pid) / "fdinfo" / number).read_text()
            flags = next(
                (
                    int(line.split()[1], 8)
                    for line in info.splitlines()
                    if line.startswith("flags:")
                ),
                0,
            )
            return bool(flags & _WRITING) and Path(link).samefile(
                self._root / str(pid) / "fd" / number
            )
        except (OSError, ValueError, IndexError):
            return False

    def _link(self, path: Path) -> str:
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
