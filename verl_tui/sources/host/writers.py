"""Which process of this host holds a log open for writing: whether a silent run lives, and that it
is gone when it is.

On Linux `/proc/PID/fd` says so, by device and inode, so that symlinks and a file's other names do
not matter. Behind a `tee` stands whoever writes to its pipe. What cannot be seen (another host,
another container, another user's process) stays unsaid; other systems tell nothing. All processes
are looked through rarely, and once the holders of a file are known only these are looked at.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import Writer
from verl_tui.sources.host.event_file_authors import Authors, sees_all
from verl_tui.sources.host.mounts import mount
from verl_tui.sources.host.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Inode = tuple[int, int]
"""Device and number."""

_FRESH = 24 * 3600.0
"""Files that changed within a day may have a writer; of others nobody wants to know."""
_MOST_FILES = 512
_POLL = 0.5
_RESCAN = 10.0
"""Seconds between two looks through all processes while the writer of some file is not known."""
_SHARE = 50.0
"""How many times as long as such a look took is waited for the next: two per cent of a core at
most.
"""
_MOMENT = 0.3
"""Seconds in which a process runs that is only slowed down: `cpulimit` stops and continues it ten
times a second.
"""
_BREATH = 50
"""Processes after which the look pauses for a moment: others need the interpreter."""
_WRITING = os.O_WRONLY | os.O_RDWR
_SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh", "fish", "sleep", "make"))
"""What starts a trainer and may go on when that has died: nothing trains in these."""
_FILTERS = frozenset(
    ("tee", "ts", "grep", "sed", "awk", "gawk", "mawk", "perl", "cat", "tr", "rotatelogs")
)
"""What holds a log for whoever writes to its pipe."""
_LAUNCHERS = frozenset(
    ("nohup", "script", "timeout", "srun", "env", "stdbuf", "unbuffer", "setsid", "nice")
)
"""What holds a log for whatever it has started; that one is named where it holds the log as
well.
"""
_OUTLIVING = frozenset(("wandb-core", "wandb-service", "gpu_stats"))
"""W&B's own, which go on for a while after the trainer's end."""
_BESIDE = _SHELLS | _FILTERS | _LAUNCHERS | _OUTLIVING


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
    """Number of the open file; empty where it writes to a pipe that another one reads."""


@dataclass(slots=True)
class _Known:
    """What is known of a file that some process has had open for writing."""

    inode: Inode
    holders: list[Holder]
    named: Holder
    writer: Writer
    size: int = 0
    """Bytes of the file when its writer was seen to be gone."""
    revived: bool = False
    """Whether the file has grown since."""
    stops: list[int] = field(default_factory=list)
    """Of those of its processes that were stopped at the last look, how often they had been
    switched to and from.
    """


class Writers:
    """Knows who writes some files; looks at `/proc` only when asked.

    Args:
        root: Where the system tells of processes.
        own: Our own process, which is nobody's writer.
        authors: Know who began files that nobody keeps open.
    """

    def __init__(
        self, root: Path = Path("/proc"), own: int | None = None, authors: Authors | None = None
    ) -> None:
        self._root = root
        self._authors = Authors(root) if authors is None else authors
        self._began: dict[Path, Writer] = {}
        self._processes = Processes(root)
        self._own = os.getpid() if own is None else own
        self._known: dict[Path, _Known] = {}
        self._nobody: set[Path] = set()

    def held(self, path: Path) -> Held:
        """Return what the last looks told of a file."""
        known = self._known.get(path)
        return Held(
            known.writer if known is not None else self._began.get(path), path in self._nobody
        )

    def unknown(self, paths: Iterable[Path]) -> list[Path]:
        """Return the files that no living process is known to write.

        Whoever goes on holding a file when its writer is gone (a shell, an orphan) is of interest
        once the file grows.
        """
        return [
            path
            for path in paths
            if (known := self._known.get(path)) is None
            or (known.writer.gone and known.size != _size(path))
        ]

    def refresh(self) -> bool:
        """Look at the known processes alone; tell whether a file has lost the one that wrote it."""
        lost = False
        for path, known in list(self._known.items()):
            if known.writer.gone:
                continue
            if not self._lives(known.named):
                lost = True
                known.writer, known.size = (
                    replace(known.writer, gone=True, stopped=False),
                    _size(path),
                )
            elif known.named.descriptor and not self._holds(known.named, known.inode):
                lost = True
                del self._known[
                    path
                ]  # it has closed the file and goes on: nothing is known any more
            else:
                self._note_stop(known)
        living = [path for path, one in self._began.items() if not one.gone]
        told = self._authors.look(living, time.time()) if living else {}
        self._began |= told
        return lost or any(one.gone for one in told.values())

    def revived(self) -> bool:
        """Tell whether a file whose writer is gone has grown for the first time since: a trainer
        was started again.
        """
        grown = [
            known
            for path, known in self._known.items()
            if known.writer.gone and not known.revived and known.size != _size(path)
        ]
        for known in grown:
            known.revived = True
        return bool(grown)

    def may_stand(self) -> bool:
        """Tell whether a process that writes is stopped just now: a second look tells for how
        long.
        """
        return any(known.stops for known in self._known.values())

    def _note_stop(self, known: _Known) -> None:
        """Note whether a process that writes has been stopped since the last look: `cpulimit` does
        so for moments.
        """
        switches = [self._stopped(one) for one in {known.named, *known.holders}]
        before, known.stops = known.stops, [count for count in switches if count is not None]
        stopped = bool(known.stops) and known.stops == before
        if stopped != known.writer.stopped:
            known.writer = replace(known.writer, stopped=stopped)

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
        for path, holders in list(found.items()):
            if (named := self._named(holders)) is None:
                del found[path]
                continue
            writer = Writer(named.pid, self._processes.name(named.pid))
            self._known[path] = _Known(inodes[path], holders, named, writer)
            self._note_stop(self._known[path])
        ours = {wanted[inode] for inode, _ in self._open(self._own, wanted, unseen)}
        free = {path for path, owner in owners.items() if owner not in unseen} - found.keys() - ours
        free = {path for path in free if self._is_only_here(path)}
        self._nobody = (self._nobody - set(owners)) | free
        told = self._authors.look(free, time.time())
        self._began = {path: one for path, one in self._began.items() if path not in owners} | told

    def _pids(self) -> list[int]:
        try:
            names = os.listdir(self._root)  # noqa: PTH208 - names are enough
        except OSError:
            return []
        return [pid for name in names if name.isdigit() and (pid := int(name)) != self._own]

    def _open(
        self, pid: int, wanted: Mapping[Inode, Path], unseen: set[int]
    ) -> Iterator[tuple[Inode, str]]:
        """Yield the wanted files that a process has open for writing; note the user whose process
        cannot be seen.
        """
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
            flags = next(
                (int(line.split()[1], 8) for line in lines if line.startswith("flags:")), 0
            )
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

    def _stopped(self, holder: Holder) -> int | None:
        """Return how often a process that is stopped has been switched to and from, None where it
        is not stopped.
        """
        folder = self._root / str(holder.pid)
        try:
            if (folder / "stat").read_bytes().rpartition(b")")[2].split()[0] != b"T":
                return None
            lines = (folder / "status").read_text(errors="replace").splitlines()
            return sum(int(line.split()[1]) for line in lines if "voluntary_ctxt_switches" in line)
        except (OSError, ValueError, IndexError):
            return None

    def _named(self, holders: Sequence[Holder]) -> Holder | None:
        """Return the holder to be named: the oldest one that writes for itself, else whoever writes
        to its pipe.

        None where only a shell is left, which holds the log for a trainer that is not there.
        """
        ordered = sorted(holders, key=_age)
        kinds = {one: self._kind(one.pid) for one in ordered}
        mine = next((one for one in ordered if kinds[one] not in _BESIDE), None)
        if mine is not None:
            return mine
        filters = [one for one in ordered if kinds[one] in _FILTERS]
        behind = self._behind(filters)
        if behind:
            return self._named(behind)
        return next((one for one in ordered if kinds[one] not in _SHELLS | _OUTLIVING), None)

    def _kind(self, pid: int) -> str:
        """Return the name of a process's program."""
        return self._processes.name(pid).partition(" ")[0].rpartition("/")[2]

    def _behind(self, readers: Sequence[Holder]) -> list[Holder]:
        """Return the processes that write to the pipes which some others read; a pipe may lead to a
        further one.
        """
        pipes, found, own = (
            {self._link(one.pid, "0") for one in readers} - {""},
            [],
            {one.pid for one in readers},
        )
        for pid in self._pids() if pipes else ():
            if pid not in own and pipes & {self._link(pid, "1"), self._link(pid, "2")}:
                started = self._started(pid)
                found += [Holder(pid, started, "")] if started is not None else []
        return found

    def _link(self, pid: int, descriptor: str) -> str:
        try:
            link = os.readlink(f"{self._root}/{pid}/fd/{descriptor}")  # noqa: PTH115 - the same
        except OSError:
            return ""
        return link if link.startswith("pipe:") else ""

    def _is_only_here(self, path: Path) -> bool:
        """Tell whether only processes that can be seen here write where a file lies.

        A network's file may be written elsewhere. In a container only its own root is nobody
        else's: a volume may be written by another one's processes, or the host's.
        """
        place = mount(path)
        if place is None or not place.local:
            return False
        return place.root or place.kind == "overlay" or sees_all(self._root)


class WriterWatch:
    """A thread that keeps looking who writes the files that somebody wants to know of."""

    def __init__(self, writers: Writers | None = None) -> None:
        self._writers = writers or Writers()
        self._wanted: tuple[Path, ...] = ()
        self._held: dict[Path, Held] = {}
        self._started = False

    def want(self, files: Iterable[tuple[Path, float | None]], now: float) -> None:
        """Say which files are read, each with the time of its last change; the newest of the fresh
        ones are watched.
        """
        self._wanted = fresh(files, now)

    def held(self, path: Path) -> Held:
        """Return what is known of a file's writer, without looking."""
        return self._held.get(path, Held())

    def look(self) -> None:
        """Look once, here and now."""
        if self._wanted:
            self._writers.scan(self._wanted)
            if self._writers.may_stand():
                time.sleep(_MOMENT)
                self._writers.refresh()
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
            changed = self._writers.refresh() | self._writers.revived()
            missing = self._writers.unknown(wanted)
            if missing and (changed or begun >= next_scan):
                self._writers.scan(missing, pause=0.002)
                took = time.monotonic() - begun
                next_scan = begun + max(_RESCAN, _SHARE * took)
            self._tell()

    def _tell(self) -> None:
        self._held = {path: self._writers.held(path) for path in self._wanted}


def fresh(files: Iterable[tuple[Path, float | None]], now: float) -> tuple[Path, ...]:
    """Return those files that changed lately enough to have a writer, the newest first, not too
    many.
    """
    known = sorted(
        ((at, path) for path, at in files if at is not None and abs(now - at) < _FRESH),
        reverse=True,
    )
    return tuple(path for _, path in known[:_MOST_FILES])


def _age(holder: Holder) -> tuple[int, int]:
    return int(holder.started) if holder.started.isdigit() else 0, holder.pid


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
