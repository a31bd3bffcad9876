"""Who writes a log, as `/proc` says it: by inode, over symlinks and pipes, ourselves left out; gone
when it is gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from file_writing import write_file

from verl_tui.sources.host.processes import Writers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from verl_tui.records import Writer

SLEEPER = "import sys; sys.stdin.read()"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_file(tmp_path / "train.log", "step:1 - a:1\n")


def scanned(log: Path) -> Writers:
    writers = Writers()
    writers.scan([log])
    return writers


def writer(writers: Writers, log: Path) -> Writer:
    found = writers.writers.get(log)
    assert found is not None
    return found


@contextmanager
def training(log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Have a process whose standard output is the log, until its input ends."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE, stdout=out
        )
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def trainer(log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with training(log) as process:
        yield process


class Ticks(threading.Event):
    """Has a thread look without a wait; wants a log from the third look on, and ends it after the
    fourth.
    """

    def __init__(self, writers: Writers, log: Path) -> None:
        super().__init__()
        self.writers, self.log, self.count = writers, log, 0
        self.over = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.count += 1
        if self.count == 3:
            now = time.time()
            self.writers.want([(self.log, now)], now)
        if self.count == 5:
            self.over.set()
        return self.count == 5


def test_a_log_that_appears_later_is_looked_for_at_once(log, trainer):
    writers = Writers()
    ticks = Ticks(writers, log)
    writers.start(ticks)
    assert ticks.over.wait(30)
    assert writer(writers, log).pid == trainer.pid


def test_the_process_that_holds_a_log_is_named(log, trainer):
    link = log.with_name("latest.log")
    link.symlink_to(log)
    writers = scanned(link)
    found = writer(writers, link)
    assert (found.pid, found.gone, (link in writers.nobodys)) == (
        trainer.pid,
        False,
        False,
    )
    assert "python" in found.words
    assert not writers.refresh()


def test_a_writer_that_is_killed_is_gone_at_the_next_look(log, trainer):
    writers = scanned(log)
    trainer.kill()
    trainer.wait()
    assert writers.refresh()
    found = writer(writers, log)
    assert (found.pid, found.gone) == (trainer.pid, True)
    assert writers.unknown([log]) == [log], "somebody may take it up"


@pytest.mark.parametrize(
    ("changed", "grows", "is_named"), [(0, False, True), (9, False, False), (9, True, True)]
)  # fmt: skip
def test_who_began_before_the_last_line_is_the_next_writer_only_where_the_log_grows(
    log, trainer, changed, grows, is_named
):
    writers = scanned(log)
    trainer.kill()
    trainer.wait()
    writers.refresh()
    with training(log) as other:
        began = psutil.Process(other.pid).create_time()
        log.write_text("step:2 - a:1\n" * (1 + grows))
        os.utime(log, (began, began - 5 + changed))
        writers.scan([log])
        found = writer(writers, log)
        expected = other if is_named else trainer
        assert (found.pid, found.gone) == (expected.pid, not is_named)
        assert abs(found.began - began) < 60


def test_behind_a_tee_the_trainer_is_named(log):
    tee = subprocess.Popen(
        ["tee", "-a", str(log)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert tee.stdin is not None
    assert tee.stdout is not None
    says = f"print('begun', flush=True); {SLEEPER}"
    trainer = subprocess.Popen(
        [sys.executable, "-c", says], stdin=subprocess.PIPE, stdout=tee.stdin
    )
    tee.stdin.close()
    try:
        assert tee.stdout.readline() == b"begun\n"  # so it has opened the log
        writers = scanned(log)
        assert writer(writers, log).pid == trainer.pid
        trainer.kill()
        trainer.wait()
        tee.wait()
        writers.refresh()
        assert writer(writers, log).gone
    finally:
        trainer.kill()
        trainer.communicate()
        tee.stdout.close()
        tee.wait()


def started(command: str, log: Path, *, through: str = "") -> subprocess.Popen[bytes]:
    """Start a shell that runs a trainer and goes on after it; return it once the trainer has
    begun.
    """
    with log.open("ab") as out:
        whole = f"( {command}; echo over; read ) {through}"
        shell = subprocess.Popen(
            ["bash", "-c", whole],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    assert shell.stderr is not None
    assert shell.stderr.readline().startswith(b"begun")
    return shell


def end(shell: subprocess.Popen[bytes]) -> None:
    os.killpg(shell.pid, signal.SIGKILL)
    shell.communicate()


TRAINER = f"{sys.executable} -c 'import sys, time; print(\"begun\", file=sys.stderr, flush=True); time.sleep(600)'"


@pytest.mark.parametrize(
    ("jobs", "is_another"),
    [
        ([TRAINER, TRAINER], True),
        ([f"{TRAINER} & {TRAINER}"], False),
        ([f"{TRAINER} & sleep 600 & cat"], False),
        ([TRAINER, f"{TRAINER} & exec -a ray::WorkerDict {TRAINER}"], True),
        ([TRAINER, f"( exec -a ray::WorkerDict {TRAINER} )"], False),
        ([TRAINER, f"( exec -a wandb-core {TRAINER} )"], False),
    ],
)
def test_a_job_that_writes_the_log_of_another_is_named(log, jobs, is_another):
    shells = [started(job, log) for job in jobs]
    try:
        found = writer(scanned(log), log)
        assert len(found.jobs) == 1 + is_another
        assert all(name.startswith("python") for name in found.jobs.values())
    finally:
        for shell in shells:
            end(shell)


@pytest.mark.parametrize(
    "through", ["", "| tee /dev/null", "| grep --line-buffered . | cat"]
)
def test_a_shell_that_goes_on_is_no_writer(log, through):
    shell = started(TRAINER, log, through=through)
    try:
        writers = scanned(log)
        before = writer(writers, log)
        assert before.name.startswith("python")
        os.kill(before.pid, signal.SIGKILL)
        while Path(f"/proc/{before.pid}/stat").exists():
            os.sched_yield()
        assert writers.refresh()
        gone = writer(writers, log)
        assert gone == before._replace(gone=True)
        writers.scan([log])
        assert writers.writers.get(log) == gone
        assert (scanned(log).writers, scanned(log).nobodys) == ({}, {log}), (
            "nothing trains in a shell"
        )
    finally:
        end(shell)


def test_a_process_that_stands_still_is_told(log):
    shell = started(TRAINER, log)
    try:
        writers = scanned(log)
        found = writer(writers, log)
        for number, states, stopped in (
            (signal.SIGSTOP, "T", True),
            (signal.SIGCONT, "SR", False),
        ):
            os.kill(found.pid, number)
            wait(found.pid, states)
            writers.refresh()
            assert writers.writers.get(log) == found._replace(stopped=stopped)
    finally:
        end(shell)


def wait(pid: int, states: str) -> None:
    """Wait until the system has noted that a process is stopped, or goes on."""
    while (
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        not in states
    ):
        os.sched_yield()


@pytest.mark.parametrize(("kind", "mount", "inside", "known"), [
    ("ext4", "/data", False, True),
    ("ext4", "/data", True, False),
    ("overlay", "/", True, True),
    ("nfs4", "/data", False, False),
])  # fmt: skip
def test_nobody_holds_a_file_only_where_all_who_might_can_be_seen(
    tmp_path, monkeypatch, kind, mount, inside, known
):
    """A container sees its own processes alone, while a volume is written by others as well."""
    root = tmp_path / "proc"
    (root / "self" / "ns").mkdir(parents=True)
    (root / "self" / "ns" / "pid").symlink_to(
        "pid:[4026532741]" if inside else "pid:[4026531836]"
    )
    place = tmp_path / "a volume" if mount != "/" else Path("/")
    top = str(place).replace(" ", "\\040")
    (root / "self" / "mounts").write_text(
        f"none / rootfs rw 0 0\nhere {top} {kind} rw 0 0\n"
    )
    log = write_file(tmp_path / "a volume" / "train.log", "step:1 - a:1\n")
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(root))
    writers = scanned(log)
    assert (log in writers.nobodys) is known


def test_hidden_processes_prove_nothing(tmp_path, log, monkeypatch):
    root = tmp_path / "proc"
    for pid in range(9_990, 10_001):
        (root / str(pid)).mkdir(parents=True)
    listed = os.listdir

    def listdir(path: str | Path) -> list[str]:
        if str(path) == f"{root}/9999/fd":
            raise PermissionError(path)
        return listed(path)

    monkeypatch.setattr(psutil, "PROCFS_PATH", str(root))
    monkeypatch.setattr("os.listdir", listdir)
    writers = scanned(log)
    assert writers.writers.get(log) is None
    assert log not in writers.nobodys, (
        "a process of the file's owner that hides what it has open may hold it"
    )
