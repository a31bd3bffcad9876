"""Which process of this host holds a log open for writing: whether a silent run lives, and that it is gone when it is.

On Linux `/proc/PID/fd` says so, by device and inode, so that symlinks and a file's other names do not matter. Behind a
`tee` stands whoever writes to its pipe. What cannot be seen (another host, another container, another user's process)
stays unsaid; other systems tell nothing. All processes are looked through rarely, and once the holders of a file are
known only these are looked at.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import Writer
from verl_tui.sources.authors import Authors
from verl_tui.sources.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Inode = tuple[int, int]
"""Device and number."""

_FRESH = 24 * 3600.0
"""Files that changed within a day may have a writer; of others nobody wants to know."""
_MOST_FILES = 512
_POLL = 1.0
_RESCAN = 10.0
"""Seconds between two looks through all processes while the writer of some file is not known."""
_SHARE = 50.0
"""How many times as long as such a look took is waited for the next: two per cent of a core at most."""
_BREATH = 50
"""Processes after which the look pauses for a moment: others need the interpreter."""
_WRITING = os.O_WRONLY | os.O_RDWR
_BESIDE = ("tee", "bash", "sh", "zsh", "nohup", "script", "timeout", "srun", "env", "stdbuf", "unbuffer")
"""What holds a log for another: where there is another, that one is named."""
_LOCAL = frozenset(("btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "tmpfs", "xfs", "zfs"))
"""File systems of which no other host writes a file."""


class Held(NamedTuple):
    """What is known of a file's writer."""

    writer: Writer | None = None
    unheld: bool = False
    """Whether all processes that might hold it were looked at, and none does."""


class Holder(NamedTuple):
    """A process with a file open for writing."""

    pid: int
    started: str
    """Tells it from a later process of that number."""
    descriptor: str


class Writers:
    """Knows who writes some files; looks at `/proc` only when asked.

    Args:
        root: Where the system tells of processes.
        own: Our own process, which is nobody's writer.
        authors: Know who began files that nobody keeps open.
    """

    def __init__(self, root: Path = Path("/proc"), own: int | None = None, authors: Authors | None = None) -> None:
        self._root = root
        self._authors = Authors(root) if authors is None else authors
        self._began: dict[Path, Writer] = {}
        self._processes = Processes(root)
        self._own = os.getpid() if own is None else own
        self._known: dict[Path, tuple[Inode, list[Holder], Writer]] = {}
        self._nobody: set[Path] = set()

    def held(self, path: Path) -> Held:
        """Return what the last looks told of a file."""
        known = self._known.get(path)
        return Held(known[2] if known is not None else self._began.get(path), path in self._nobody)

    def unknown(self, paths: Iterable[Path]) -> list[Path]:
        """Return the files that no living process is known to write."""
        return [path for path in paths if path not in self._known or self._known[path][2].gone]

    def refresh(self) -> bool:
        """Look at the known processes alone; tell whether a file has lost the last of them."""
        lost = False
        for path, (inode, holders, writer) in list(self._known.items()):
            if writer.gone:
                continue
            holding = [one for one in holders if self._holds(one, inode)]
            if holding:
                self._known[path] = inode, holding, writer
                continue
            lost = True
            if any(self._lives(one) for one in holders):
                del self._known[path]  # it has closed the file and goes on: nothing is known any more
            else:
                self._known[path] = inode, [], replace(writer, gone=True)
        living = [path for path, one in self._began.items() if not one.gone]
        told = self._authors.look(living, time.time()) if living else {}
        self._began |= told
        return lost or any(one.gone for one in told.values())

    def scan(self, paths: Sequence[Path], pause: float = 0.0) -> None:
        """Look through all processes for the holders of some files.

        Args:
            paths: The files.
            pause: Seconds to wait now and then, so that others get on.
        """
        wanted: dict[Inode, Path] = {}
        owners: dict[Path, int] = {}
        for path in paths:
            try:
                info = path.stat()
            except OSError:
                continue
            wanted[info.st_dev, info.st_ino] = path
            owners[path] = info.st_uid
        found: dict[Path, list[Holder]] = {}
        unseen: set[int] = set()
        for count, pid in enumerate(self._pids(), 1):
            if pause and count % _BREATH == 0:
                time.sleep(pause)
            for inode, descriptor in self._open(pid, wanted, unseen):
                if (started := self._started(pid)) is not None:
                    found.setdefault(wanted[inode], []).append(Holder(pid, started, descriptor))
        inodes = {path: inode for inode, path in wanted.items()}
        for path, holders in found.items():
            self._known[path] = inodes[path], holders, self._named(holders)
        free = {path for path in owners if path not in found and owners[path] not in unseen and _is_local(path)}
        self._nobody = (self._nobody - set(owners)) | free
        told = self._authors.look(free, time.time())
        self._began = {path: one for path, one in self._began.items() if path not in owners} | told

    def _pids(self) -> list[int]:
        try:
            names = os.listdir(self._root)  # noqa: PTH208 - names are enough
        except OSError:
            return []
        return [pid for name in names if name.isdigit() and (pid := int(name)) != self._own]

    def _open(self, pid: int, wanted: Mapping[Inode, Path], unseen: set[int]) -> Iterator[tuple[Inode, str]]:
        """Yield the wanted files that a process has open for writing; note the user whose process cannot be seen."""
        folder = f"{self._root}/{pid}/fd"
        try:
            names = os.listdir(folder)  # noqa: PTH208 - names are enough
        except PermissionError:
            try:
                unseen.add(os.stat(f"{self._root}/{pid}").st_uid)  # noqa: PTH116 - a path object costs more
            except OSError:
                return
            return
        except OSError:
            return
        for name in names:
            try:
                info = os.stat(f"{folder}/{name}")  # noqa: PTH116 - the same
            except OSError:
                continue
            inode = info.st_dev, info.st_ino
            if inode in wanted and self._writes(pid, name):
                yield inode, name

    def _writes(self, pid: int, descriptor: str) -> bool:
        try:
            lines = (self._root / str(pid) / "fdinfo" / descriptor).read_text().splitlines()
            flags = next((int(line.split()[1], 8) for line in lines if line.startswith("flags:")), 0)
        except (OSError, ValueError, IndexError):
            return False
        return bool(flags & _WRITING)

    def _holds(self, holder: Holder, inode: Inode) -> bool:
        try:
            info = (self._root / str(holder.pid) / "fd" / holder.descriptor).stat()
        except OSError:
            return False
        return (info.st_dev, info.st_ino) == inode and self._lives(holder)

    def _lives(self, holder: Holder) -> bool:
        return self._started(holder.pid) == holder.started

    def _started(self, pid: int) -> str | None:
        """Return when a process started, None where it is gone or only waits to be buried."""
        try:
            rest = (self._root / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            return None if rest[0] in (b"Z", b"X") else rest[19].decode()
        except (OSError, IndexError):
            return None

    def _named(self, holders: Sequence[Holder]) -> Writer:
        """Return the holder to be named: the oldest one that writes for itself, behind a `tee` who writes to it."""
        named = [Writer(one.pid, self._processes.name(one.pid)) for one in sorted(holders, key=_age)]
        mine = [one for one in named if not one.name.startswith(_BESIDE)]
        return next(iter(mine), None) or self._behind(holders) or named[0]

    def _behind(self, holders: Sequence[Holder]) -> Writer | None:
        """Return the process that writes to the pipe which a holder reads."""
        pipes = {self._link(one.pid, "0") for one in holders} - {""}
        for pid in self._pids() if pipes else ():
            if pipes & {self._link(pid, "1"), self._link(pid, "2")} and not (
                name := self._processes.name(pid)
            ).startswith(_BESIDE):
                return Writer(pid, name)
        return None

    def _link(self, pid: int, descriptor: str) -> str:
        try:
            link = os.readlink(f"{self._root}/{pid}/fd/{descriptor}")  # noqa: PTH115 - the same
        except OSError:
            return ""
        return link if link.startswith("pipe:") else ""


class WriterWatch:
    """A thread that keeps looking who writes the files that somebody wants to know of."""

    def __init__(self, writers: Writers | None = None) -> None:
        self._writers = writers or Writers()
        self._wanted: tuple[Path, ...] = ()
        self._held: dict[Path, Held] = {}
        self._started = False

    def want(self, files: Iterable[tuple[Path, float | None]], now: float) -> None:
        """Say which files are read, each with the time of its last change; the newest of the fresh ones are watched."""
        self._wanted = fresh(files, now)

    def held(self, path: Path) -> Held:
        """Return what is known of a file's writer, without looking."""
        return self._held.get(path, Held())

    def look(self) -> None:
        """Look once, here and now."""
        if self._wanted:
            self._writers.scan(self._wanted)
        self._tell()

    def start(self, stop: threading.Event) -> None:
        """Begin to look, until `stop` is set."""
        if not self._started:
            self._started = True
            threading.Thread(target=self._watch, args=(stop,), name="writers", daemon=True).start()

    def _watch(self, stop: threading.Event) -> None:
        next_scan = 0.0
        while not stop.wait(_POLL):
            wanted, begun = self._wanted, time.monotonic()
            lost = self._writers.refresh()
            missing = self._writers.unknown(wanted)
            if missing and (lost or begun >= next_scan):
                self._writers.scan(missing, pause=0.002)
                took = time.monotonic() - begun
                next_scan = begun + max(_RESCAN, _SHARE * took)
            self._tell()

    def _tell(self) -> None:
        self._held = {path: self._writers.held(path) for path in self._wanted}


def fresh(files: Iterable[tuple[Path, float | None]], now: float) -> tuple[Path, ...]:
    """Return those files that changed lately enough to have a writer, the newest first, not too many."""
    known = sorted(((at, path) for path, at in files if at is not None and abs(now - at) < _FRESH), reverse=True)
    return tuple(path for _, path in known[:_MOST_FILES])


def _age(holder: Holder) -> tuple[int, int]:
    return int(holder.started) if holder.started.isdigit() else 0, holder.pid


def _is_local(path: Path) -> bool:
    """Tell whether a file lies on this host's own disk: a file of a network may be written elsewhere."""
    try:
        place = str(path.resolve())
    except OSError:
        return False
    for mount, kind in _mounts():
        if place == mount or place.startswith(mount.rstrip("/") + "/"):
            return kind in _LOCAL
    return False


@lru_cache(maxsize=1)
def _mounts() -> list[tuple[str, str]]:
    """Return where file systems are mounted and of which kind they are, the deepest first."""
    import psutil  # 15 ms, only where a log has no writer

    try:
        mounted = psutil.disk_partitions(all=True)  # type: ignore[no-untyped-call]
    except OSError:
        return []
    return sorted(((one.mountpoint, one.fstype) for one in mounted), key=lambda one: -len(one[0]))
