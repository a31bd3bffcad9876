"""Find the process of this host that holds a log open for writing: is a silent run alive?

On Linux `/proc/PID/fd` says so, by device and inode, so that symlinks and a file's other names do
not matter. For a `tee`, the process that writes to its pipe is the writer. No statement is made
about processes that cannot be seen (another host, container or user), and nothing on other systems.
All processes are searched rarely; once the holders of a file are known, only these are checked.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import psutil

from verl_tui.records import Writer
from verl_tui.sources.files.paths import status_at
from verl_tui.sources.host.event_file_authors import Authors
from verl_tui.sources.host.processes import (
    folder_of,
    is_written,
    lives,
    name_of,
    pids,
    pipe_of,
    sees_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

Inode = tuple[int, int]
"""Device and number."""

_BREATH = 50
"""Processes after which the search pauses: other threads need the interpreter."""
_KINDS = {
    "filter": {
        "tee", "ts", "grep", "sed", "awk", "gawk", "mawk", "perl", "cat", "tr", "rotatelogs",
    },
    "launcher": {
        "nohup", "script", "timeout", "srun", "env", "stdbuf", "unbuffer", "setsid", "nice",
    },
    "outliving": {
        "bash", "sh", "dash", "zsh", "ksh", "fish", "sleep", "make",
        "wandb-core", "wandb-service", "gpu_stats",
    },
}  # fmt: skip
"""Programs that hold a log and train nothing: for the process that writes to their pipe; for what
they started, which is named if it holds the log too; and those that may outlive the trainer.
"""


_LOCAL = {
    "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "tmpfs", "xfs", "zfs",
}  # fmt: skip
"""File systems whose files no other host writes."""


class WriterState(NamedTuple):
    """The writer of a file, as far as it is known."""

    writer: Writer | None = None
    unheld: bool = False
    """True if all processes that could hold it were checked, and none does."""


class Holder(NamedTuple):
    """A process with a file open for writing."""

    process: psutil.Process
    descriptor: str
    """Number of the open file; empty if it writes to a pipe that another process reads."""


@dataclass(slots=True)
class _KnownWriter:
    """The processes that have had a file open for writing."""

    inode: Inode
    holders: list[Holder]
    named: Holder
    writer: Writer
    size: int = 0
    """Bytes of the file when its writer was seen to be gone."""
    stops: list[int] = field(default_factory=list)
    """Of those of its processes that were stopped at the last look, how often they had been
    switched to and from.
    """


class Writers:
    """Finds the writers of files; looks only when called."""

    def __init__(self) -> None:
        self._authors = Authors()
        """Finds the process that began a file which no process keeps open."""
        self._began: dict[Path, Writer] = {}
        self._known: dict[Path, _KnownWriter] = {}
        self._nobody: set[Path] = set()

    def held(self, path: Path) -> WriterState:
        """Return a file's writer as of the last look."""
        known = self._known.get(path)
        return WriterState(
            known.writer if known is not None else self._began.get(path),
            path in self._nobody,
        )

    def unknown(self, paths: Iterable[Path]) -> list[Path]:
        """Return the files that no living process is known to write.

        Whoever goes on holding a file when its writer is gone (a shell, an orphan) is of interest
        once the file grows.
        """
        unknown = []
        for path in paths:
            known = self._known.get(path)
            if known is None or (known.writer.gone and known.size != _size(path)):
                unknown.append(path)
        return unknown

    def refresh(self) -> bool:
        """Check the known processes alone; return whether a file has lost its writer."""
        lost = False
        for path, known in list(self._known.items()):
            if known.writer.gone:
                continue
            if not lives(known.named.process):
                lost = True
                known.writer = known.writer._replace(gone=True, stopped=False)
                known.size = _size(path)
            elif known.named.descriptor and not _holds(known.named, known.inode):
                lost = True
                # it closed the file and goes on: the writer is unknown
                del self._known[path]
            else:
                self._note_stop(known)
        return self._refresh_authors() or lost

    def _refresh_authors(self) -> bool:
        """Check the processes that began files; return whether one is gone."""
        living = [path for path, one in self._began.items() if not one.gone]
        found = self._authors.look(living, time.time()) if living else {}
        self._began |= found
        return any(one.gone for one in found.values())

    def may_stand(self) -> bool:
        """Return whether a process that writes is stopped just now: a second look tells for how
        long.
        """
        return any(known.stops for known in self._known.values())

    def _note_stop(self, known: _KnownWriter) -> None:
        """Note whether a process that writes has been stopped since the last look: `cpulimit` does
        so for moments.
        """
        switches = [_stopped(one.process) for one in {known.named, *known.holders}]
        before = known.stops
        known.stops = [count for count in switches if count is not None]
        stopped = bool(known.stops) and known.stops == before
        if stopped != known.writer.stopped:
            known.writer = known.writer._replace(stopped=stopped)

    def scan(self, paths: Sequence[Path], pause: float = 0.0) -> None:
        """Search all processes for the holders of some files.

        Args:
            paths: The files.
            pause: Seconds to wait now and then, so that other threads get on.
        """
        stats = _stats(paths)
        wanted = {(info.st_dev, info.st_ino): path for path, info in stats.items()}
        unseen: set[int] = set()
        ours = {wanted[inode] for inode, _ in _open(os.getpid(), wanted, unseen)}
        found = _holders(wanted, unseen, pause)
        named = {
            wanted[inode]
            for inode, holders in found.items()
            if self._knows(wanted[inode], inode, holders)
        }
        hidden = {path for path, info in stats.items() if info.st_uid in unseen}
        free = _only_here(stats.keys() - hidden - named - ours)
        self._nobody = (self._nobody - stats.keys()) | free
        kept = {path: one for path, one in self._began.items() if path not in stats}
        self._began = kept | self._authors.look(free, time.time())

    def _knows(self, path: Path, inode: Inode, holders: list[Holder]) -> bool:
        """Note who writes a file; return whether one of its holders does."""
        named = self._named(holders)
        if named is None:
            return False
        writer = Writer(named.process.pid, name_of(named.process.pid))
        self._known[path] = _KnownWriter(inode, holders, named, writer)
        self._note_stop(self._known[path])
        return True

    def _named(self, holders: Sequence[Holder]) -> Holder | None:
        """Return the holder to be named: the oldest one that writes for itself, else whoever writes
        to its pipe.

        None if only a shell is left, which holds the log for a trainer that is not there.
        """
        by_kind: dict[str, list[Holder]] = defaultdict(list)
        for one in sorted(holders, key=_age):
            by_kind[_kind(one.process.pid)].append(one)
        if by_kind["trainer"]:
            return by_kind["trainer"][0]
        behind = _behind(by_kind["filter"])
        if behind:
            return self._named(behind)
        return min([*by_kind["filter"], *by_kind["launcher"]], key=_age, default=None)


def _only_here(paths: Iterable[Path]) -> set[Path]:
    """Return those files that only processes which can be seen here write.

    A network's file may be written elsewhere. In a container only its own root is nobody else's: a
    volume may be written by another one's processes, or the host's.
    """
    try:
        # A later mount at the same place hides earlier ones.
        kinds = {one.mountpoint: one.fstype for one in psutil.disk_partitions(all=True)}
    except OSError:
        return set()
    whole = sees_all()
    return {path for path in paths if _is_here(path, kinds, whole=whole)}


def _is_here(path: Path, kinds: Mapping[str, str], *, whole: bool) -> bool:
    try:
        real = path.resolve()
    except OSError:
        return False
    places = map(str, (real, *real.parents))
    top = next((place for place in places if place in kinds), "")
    kind = kinds.get(top)
    return kind in _LOCAL and (whole or top == "/" or kind == "overlay")


def _others() -> list[int]:
    """Return the processes that can be seen, but for our own, which writes no log."""
    own = os.getpid()
    return [pid for pid in pids() if pid != own]


def _holders(
    wanted: Mapping[Inode, Path], unseen: set[int], pause: float
) -> dict[Inode, list[Holder]]:
    """Return the processes that hold each file; add users whose processes are hidden."""
    found: dict[Inode, list[Holder]] = defaultdict(list)
    for count, pid in enumerate(_others(), 1):
        if pause and count % _BREATH == 0:
            time.sleep(pause)
        for inode, descriptor in _open(pid, wanted, unseen):
            found[inode] += _holder(pid, descriptor)
    return found


def _behind(readers: Sequence[Holder]) -> list[Holder]:
    """Return the processes that write to the pipes which some others read; a pipe may lead to a
    further one.
    """
    pipes = {pipe_of(one.process.pid, "0") for one in readers} - {""}
    own = {one.process.pid for one in readers}
    found = []
    for pid in _others() if pipes else ():
        if pid not in own and pipes & {pipe_of(pid, "1"), pipe_of(pid, "2")}:
            found += _holder(pid, "")
    return found


def _holder(pid: int, descriptor: str) -> list[Holder]:
    """Return a process with what it holds; none if it is gone, or only waits to be buried."""
    try:
        process = psutil.Process(pid)
    except psutil.Error:
        return []
    return [Holder(process, descriptor)] if lives(process) else []


def _open(
    pid: int, wanted: Mapping[Inode, Path], unseen: set[int]
) -> Iterator[tuple[Inode, str]]:
    """Yield the wanted files that a process has open for writing; note the user whose process
    cannot be seen.

    By inode: a path that is another's, or none here, is what a process in a container has.
    """
    folder = f"{folder_of(pid)}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names are enough
    except PermissionError:
        with suppress(OSError):
            unseen.add(folder_of(pid).stat().st_uid)
        return
    except OSError:
        return
    for name in names:
        try:
            info = os.stat(f"{folder}/{name}")  # noqa: PTH116 - a path object costs more
        except OSError:
            continue
        inode = info.st_dev, info.st_ino
        if inode in wanted and is_written(pid, name):
            yield inode, name


def _holds(holder: Holder, inode: Inode) -> bool:
    info = status_at(folder_of(holder.process.pid) / "fd" / holder.descriptor)
    return info is not None and (info.st_dev, info.st_ino) == inode


def _stopped(process: psutil.Process) -> int | None:
    """Return how often a process that is stopped has been switched to and from, None if it is not
    stopped.
    """
    try:
        if process.status() != psutil.STATUS_STOPPED:
            return None
        switches: int = sum(process.num_ctx_switches())
    except psutil.Error:
        return None
    return switches


def _kind(pid: int) -> str:
    """Return what a process is to a log that it holds, by the name of its program."""
    program = name_of(pid).partition(" ")[0].rpartition("/")[2]
    return next((kind for kind, names in _KINDS.items() if program in names), "trainer")


def _age(holder: Holder) -> tuple[float, int]:
    return holder.process.create_time(), holder.process.pid


def _stats(paths: Iterable[Path]) -> dict[Path, os.stat_result]:
    """Return the status of the files that exist."""
    return {path: info for path in paths if (info := status_at(path)) is not None}


def _size(path: Path) -> int:
    info = status_at(path)
    return -1 if info is None else info.st_size
