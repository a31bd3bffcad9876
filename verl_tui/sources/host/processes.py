"""What this host tells of its processes: the name, directory and ancestors of one that computes on
a GPU, and which one holds a log open for writing: is a silent run alive?

A container may know another process under the number that the driver means: one whose open files
can be seen and among which there is no NVIDIA device is not it. What is hidden or gone stays
unsaid.

psutil says what a process is. What it has open stands in `/proc`: psutil names only plain files, by
paths that are another's where the process lies in a container.

On Linux `/proc/PID/fd` says who holds a log, by device and inode, so that symlinks and a file's
other names do not matter. For a `tee`, the process that writes to its pipe is the writer. No
statement is made about processes that cannot be seen (another host, container or user), and nothing
on other systems. All processes are searched rarely; once the writer of a file is known, only it is
checked.

TensorBoard does not keep its files open, but calls them `events.out.tfevents.TIME.HOST.PID.N`
(tensorboard/summary/writer/event_file_writer.py). A name alone proves little: a container may have
the host's name and numbers of its own. So a process that has such a number in any container here
counts as the one; where only a container's own processes can be seen, the file has to be silent for
longer than its writer keeps things back; and a file that grows after all is never judged so again.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import inf
from pathlib import Path

import psutil

from verl_tui import debug_log
from verl_tui.patterns import pattern
from verl_tui.records import GpuProcess, Writer
from verl_tui.sources.files import file_size, status_at
from verl_tui.text import one_line
from verl_tui.toml_tables import toml_table

_KEPT = 30.0
"""Seconds for which what was seen of a process holds at most: looking at all its open files again
takes milliseconds.
"""
_GENERATIONS = 12
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
    """Return the links to the files that a process has open.

    Raises:
        OSError: It is gone, or hidden.
    """
    folder = f"{folder_of(pid)}/fd"
    return [f"{folder}/{name}" for name in os.listdir(folder)]  # noqa: PTH208 - names are enough


def status_of(process: psutil.Process) -> str:
    """Return psutil's word for what a process does; that for a dead one, too, where it only waits
    to be buried.
    """
    with suppress(psutil.Error):
        status = str(process.status())
        if process.is_running() and status != psutil.STATUS_ZOMBIE:
            return status
    return str(psutil.STATUS_DEAD)


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
    try:
        links = [*map(link_at, open_files(process.pid))]
    except OSError:  # hidden
        links = [*_DEVICES]
    if not any(link.startswith(_DEVICES) for link in links):
        return GpuProcess(process.pid)
    line = [process, *process.parents()[:_GENERATIONS]]
    return GpuProcess(
        process.pid,
        name_of(process),
        cwd=link_at(f"{folder_of(process.pid)}/cwd"),
        # the first of all processes is nobody's
        line=frozenset(one.pid for one in line if one.pid > 1),
    )


# -- writers ---------------------------------------------------------------------------------------

Inode = tuple[int, int]
"""Device and number."""

_PROGRAMS = toml_table(__file__, "programs.toml")
_FRESH = 24 * 3600.0
"""Files that changed within a day may have a writer; others are not watched."""
_MOST_FILES = 512
_POLL = 0.5
_RESCAN = 10.0
"""Seconds between two looks through all processes while the writer of some file is not known."""
_RARELY = 60.0
"""Seconds between them else: another one may begin to write a file."""
_SHARE = 50.0
"""The wait for the next look, as a multiple of how long it took: two per cent of a core at most."""

_EVENTS = pattern(
    r"events\.out\.tfevents\.(\d{10,11})\.(.+)\.(\d{1,9})\.\d{1,9}(?:\.\D\w*)?"
)
_KEPT_BACK = 150.0
"""Seconds of silence in a container: TensorBoard keeps records back for up to 120."""
_LATER = 5.0
"""Seconds by which a process may seem to have begun after its own file: clocks are set right now
and then.
"""


@dataclass(slots=True)
class _Holder:
    """The process that has had a file open for writing."""

    process: psutil.Process
    opened: str
    """Link to the open file among the process's own; empty if it writes to a pipe that another
    process reads.
    """
    inode: Inode
    size: int = 0
    """Bytes of the file when its writer was seen to be gone."""


class Writers:
    """The writers of the files that are read, found by a thread or at a single look."""

    def __init__(self) -> None:
        self.wanted: tuple[Path, ...] = ()
        """Files that are watched."""
        self._next_scan = -inf
        """Monotonic seconds of the next search among all processes."""
        self._forget()

    def _forget(self) -> None:
        self._authors = Authors()
        """Finds the process that began a file which no process keeps open."""
        self.writers: dict[Path, Writer] = {}
        """By file, as far as they are known."""
        self._holders: dict[Path, _Holder] = {}
        self.nobodys: set[Path] = set()
        """Files that all processes were checked for that could hold them, and none does."""

    def want(self, files: Iterable[tuple[Path, float | None]], now: float) -> None:
        """Say which files are read, each with the time of its last change; the newest of the fresh
        ones are watched.
        """
        fresh = ((at, path) for path, at in files if at and abs(now - at) < _FRESH)
        newest = sorted(fresh, reverse=True)[:_MOST_FILES]
        self.wanted = tuple(path for _, path in newest)

    def start(self, stop: threading.Event) -> None:
        """Begin to scan, until `stop` is set."""
        threading.Thread(
            target=self._watch, args=(stop,), name="writers", daemon=True
        ).start()

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(_POLL):
            try:
                self._scan_again()
            except Exception as error:  # noqa: BLE001, PERF203 - processes come and go meanwhile
                debug_log.note_error("looking for writers", error)
                self._forget()  # what was found may be over

    def _scan_again(self) -> None:
        """Look at the writers that are known, and for others when it is time."""
        begun = time.monotonic()
        changed = self.refresh()
        rest = 0.0 if self.unknown(self.wanted) else _RARELY - _RESCAN
        if self.wanted and (changed or begun >= self._next_scan + rest):
            self.scan(self.wanted)
            took = time.monotonic() - begun
            self._next_scan = begun + max(_RESCAN, _SHARE * took)

    def unknown(self, paths: Iterable[Path]) -> list[Path]:
        """Return the files that no living process is known to write."""
        return [
            path
            for path in paths
            if path not in self._holders or self.writers[path].gone
        ]

    def refresh(self) -> bool:
        """Check the known processes alone; return whether a file has lost its writer."""
        alive = [path for path, one in self.writers.items() if not one.gone]
        held = [path for path in alive if path in self._holders]
        began = self._authors.find({*alive} - {*held}, time.time())
        lost = [path for path in held if self._is_lost(path)]
        self.writers |= began
        return bool(lost) or any(one.gone for one in began.values())

    def _is_lost(self, path: Path) -> bool:
        """Return whether the writer of a file is gone, or has closed it; note whether it is
        stopped.
        """
        known = self._holders[path]
        status = status_of(known.process)
        gone, stopped = status == psutil.STATUS_DEAD, status == psutil.STATUS_STOPPED
        self.writers[path] = self.writers[path]._replace(gone=gone, stopped=stopped)
        known.size = file_size(path)
        held = not known.opened or _inode_at(known.opened) == known.inode
        if not held and not gone:
            del self._holders[path], self.writers[path]
        return gone or not held

    def scan(self, paths: Iterable[Path]) -> None:
        """Search all processes for the holders of some files."""
        stats = {path: info for path in paths if (info := status_at(path))}
        wanted = {(info.st_dev, info.st_ino): path for path, info in stats.items()}
        unseen: set[int] = set()
        free = stats.keys() - map(wanted.__getitem__, _own(wanted))
        for inode, holders in _holders(wanted, unseen).items():
            path = wanted[inode]
            if found := _trainers(self._counted(path, holders, stats[path])):
                free.discard(path)
                self.writers[path] = _writer_of(found)
                opened = holders.get(found[0], "")
                self._holders[path] = _Holder(found[0], opened, inode)
                self._is_lost(path)
        free = _only_here({path for path in free if stats[path].st_uid not in unseen})
        self.nobodys = (self.nobodys - stats.keys()) | free
        for path in stats.keys() - self._holders.keys():
            self.writers.pop(path, None)
        self.writers |= self._authors.find(free - self._holders.keys(), time.time())

    def _counted(
        self, path: Path, holders: Iterable[psutil.Process], info: os.stat_result
    ) -> list[psutil.Process]:
        """Return the holders of a file that may be its writer: what its last writer left behind (a
        shell, an orphan) is of interest once the file grows.
        """
        known = self._holders.get(path)
        is_left = known and self.writers[path].gone and known.size == info.st_size
        since = info.st_mtime if is_left else 0.0
        return [one for one in holders if one.create_time() >= since]


class Authors:
    """Knows which processes that began event files live; looks only when asked.

    Args:
        host: This host's name, as the writers of event files ask for it.
    """

    def __init__(self, host: str = "") -> None:
        self._host = host or socket.gethostname()
        self._gone: dict[Path, float] = {}
        """Files whose process is gone, with the time of their last change."""

    def find(self, paths: Iterable[Path], now: float) -> dict[Path, Writer]:
        """Return what is known of the processes that began some files; those of other hosts are
        left out.
        """
        writers = {}
        contained = cache(lambda: set(_contained()))
        for path in paths:
            named = _EVENTS.fullmatch(path.name)
            info = status_at(path)
            if not named or named[2] != self._host or not info:
                continue
            pid = int(named[3])
            modified = self._gone.get(path, info.st_mtime)
            if modified != info.st_mtime or not _is_judged(info, now):
                continue  # it grew although no process of that number was to be seen
            alive = _living(pid, float(named[1]) + _LATER)
            if not alive and pid not in contained():
                self._gone[path] = modified
            gone = path in self._gone
            jobs = dict.fromkeys({*map(_job, alive)} - {0}, f"process {pid}")
            writers[path] = Writer(pid, "", gone=gone, by_name=True, jobs=jobs)
        return writers


def _is_judged(info: os.stat_result, now: float) -> bool:
    """Return whether a file's process would be seen if it lived: others' processes may be hidden
    (`hidepid`); then the first of all is hidden, too.
    """
    visible = info.st_uid == os.geteuid() or os.path.exists(f"{folder_of(1)}/stat")  # noqa: PTH110
    return visible and (sees_all() or now - info.st_mtime >= _KEPT_BACK)


def _contained() -> Iterator[int]:
    """Yield the numbers that processes of containers have in there."""
    for pid in others():
        try:
            with open(f"{folder_of(pid)}/status", errors="replace") as status:  # noqa: PTH123
                spaces = [one for one in status if one.startswith("NSpid:")]
        except OSError:
            continue
        yield from (int(number) for one in spaces for number in one.split()[2:])


def _trainers(holders: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return the holders that write for themselves, else those that write to their pipe; the oldest
    first.

    Empty if only a shell is left, which holds the log for a trainer that is not there.
    """
    programs = {
        one: name_of(one).partition(" ")[0].rpartition("/")[2] for one in holders
    }
    own = [one for one in programs if programs[one] not in _PROGRAMS["outliving"]]
    trainers = [one for one in own if programs[one] not in _PROGRAMS["helpers"]]
    if not trainers and (behind := _behind(own)):
        return _trainers(behind)
    return sorted(trainers or own, key=psutil.Process.create_time)


def _writer_of(found: Sequence[psutil.Process]) -> Writer:
    """Return the first of those that write a file as its writer."""
    jobs = {_job(one): f"{name_of(one)} (process {one.pid})" for one in found}
    jobs.pop(0, None)
    first = found[0]
    began = first.create_time()
    return Writer(first.pid, name_of(first), began=began, jobs=jobs)


@lru_cache(maxsize=1024)
def _job(process: psutil.Process) -> int:
    """Return the group of the processes that were started with one, by its topmost ancestor below a
    shell; 0 where it was left behind by its group, or works for Ray.
    """
    try:
        line = [process, *process.parents()]
        ends = [one.pid == 1 or one.name() in _PROGRAMS["outliving"] for one in line]
        group = os.getpgid(line[[*ends, True].index(True) - 1].pid)
    except (psutil.Error, OSError):
        return 0
    is_left = not psutil.pid_exists(group) or name_of(process).startswith("ray::")
    return 0 if is_left else group


def _behind(readers: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that write to the pipes which some others read; a pipe may lead to a
    further one.
    """
    own = {one.pid for one in readers}
    read = {link_at(f"{folder_of(pid)}/fd/0") for pid in own}
    pipes = {link for link in read if link.startswith("pipe:")}
    found: list[psutil.Process] = []
    for pid in others() if pipes else ():
        written = {link_at(f"{folder_of(pid)}/fd/{number}") for number in "12"}
        if pid not in own and pipes & written:
            found += _living(pid)
    return found


def _holders(
    wanted: Mapping[Inode, Path], unseen: set[int]
) -> dict[Inode, dict[psutil.Process, str]]:
    """Return the processes that hold each file, each with the place of the file among its own; add
    users whose processes are hidden.

    By inode: a path that is another's, or none here, is what a process in a container has.
    """
    found: dict[Inode, dict[psutil.Process, str]] = defaultdict(dict)
    for pid in others():
        try:
            for inode, opened in _written_by(pid, wanted):
                found[inode].update(dict.fromkeys(_living(pid), opened))
        except PermissionError:  # noqa: PERF203 - the others are looked at
            with suppress(OSError):
                unseen.add(os.stat(folder_of(pid)).st_uid)  # noqa: PTH116
        except OSError:
            continue
    return found


def _own(wanted: Collection[Inode]) -> set[Inode]:
    """Return the files that our own process writes, as `demo` does."""
    with suppress(OSError):
        return {inode for inode, _ in _written_by(os.getpid(), wanted)}
    return set()


def _written_by(pid: int, wanted: Collection[Inode]) -> Iterator[tuple[Inode, str]]:
    """Yield the files among some that a process has open for writing, each with its place among the
    process's own; raises OSError where it is gone, or hidden.
    """
    for opened in open_files(pid):
        inode = _inode_at(opened)
        facts = opened.replace("/fd/", "/fdinfo/")
        if inode and inode in wanted and _is_written(facts):
            yield inode, opened


def _living(pid: int, latest: float = inf) -> list[psutil.Process]:
    """Return a process; none if it is gone, or only waits to be buried, or began later."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        is_it = process.create_time() <= latest
        return [process] if is_it and status_of(process) != psutil.STATUS_DEAD else []
    return []


def _inode_at(path: str) -> Inode | None:
    try:
        info = os.stat(path)  # noqa: PTH116 - a path object costs more
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _is_written(facts: str) -> bool:
    """Return whether an open file is open for writing, by what the system tells of it."""
    try:
        with open(facts) as lines:  # noqa: PTH123
            flags = [line.split()[1] for line in lines if line.startswith("flags:")]
    except OSError:
        return False
    return any(int(flag, 8) & (os.O_WRONLY | os.O_RDWR) for flag in flags)


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
    found = set()
    for path in paths:
        real = path.resolve()
        top = next((str(at) for at in (real, *real.parents) if str(at) in kinds), "")
        kind = kinds.get(top)
        if kind in _PROGRAMS["local_file_systems"] and (
            whole or top == "/" or kind == "overlay"
        ):
            found.add(path)
    return found
