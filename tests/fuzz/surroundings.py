"""Open the installed app on a real pty in odd surroundings: environments, clocks, disks, limits,
sizes, rights, and things in the place of a followed log; say what does not go on.

    python tests/fuzz/surroundings.py                 all
    python tests/fuzz/surroundings.py fifo dumb       some, by name

It must show the run, follow it, end with success and leave the terminal as it was.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from real_terminal import Pty

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]

_STEP = "step:{} - critic/score/mean:0.5 - actor/ppo_kl:0.01 - timing_s/step:3.0\n"
_FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
_NEW_USERS, _DROP = 0x10000000, 24
"""CLONE_NEWUSER and PR_CAPBSET_DROP."""
_SIZES = ((0, 0), (80, 24), (0, 5), (5, 0), (1, 1), (1000, 3), (120, 40))


def _steps(first: int, last: int) -> str:
    return "".join(_STEP.format(step) for step in range(first, last + 1))


def _opened(
    folder: Path, prepare: Callable[[], object] = lambda: None, **environment: str
) -> Pty:
    from real_terminal import Pty

    environment = {"VERL_TUI_STATE": "", **environment}
    terminal = Pty(folder / "logs", folder=folder, prepare=prepare, **environment)
    terminal.until("step 30")
    return terminal


def _grow(folder: Path, terminal: Pty, step: int) -> None:
    """Write one more step, and wait until it is on the screen."""
    with (folder / "logs/run/train.log").open("a") as file:
        file.write(_STEP.format(step))
    terminal.until(f"step {step}")


def _in(
    folder: Path, prepare: Callable[[], object] = lambda: None, **environment: str
) -> Pty:
    terminal = _opened(folder, prepare, **environment)
    _grow(folder, terminal, 77)
    return terminal


def _winch(folder: Path) -> Pty:
    terminal = _opened(folder)
    for turn in range(400):
        terminal.resize(*_SIZES[turn % len(_SIZES)])
        os.kill(terminal.pid, signal.SIGWINCH)
        terminal.read_for(0.005)
    terminal.resize(120, 40)
    _grow(folder, terminal, 77)
    return terminal


def _replaced(put: Callable[[Path], object], folder: Path) -> Pty:
    terminal = _opened(folder)
    log = folder / "logs/run/train.log"
    log.unlink()
    put(log)
    terminal.read_for(4)
    if log.is_dir() and not log.is_symlink():
        log.rmdir()
    else:
        log.unlink()
    log.write_text(_steps(1, 76))
    terminal.until("step 76")
    return terminal


def _removed(folder: Path) -> Pty:
    terminal = _opened(folder)
    shutil.rmtree(folder / "logs")
    terminal.read_for(4)
    (folder / "logs/run").mkdir(parents=True)
    _grow(folder, terminal, 76)
    return terminal


def _clock(folder: Path) -> Pty:
    assert Path(_FAKETIME).exists(), "this needs faketime"
    shift = folder / "shift"
    shift.write_text("+0")
    names = {"LD_PRELOAD": _FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(shift)}
    odd = {"FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    terminal = _opened(folder, **names, **odd)
    for step, seconds in enumerate(("-86400", "+86400", "-31536000", "+315360000"), 77):
        shift.write_text(seconds)
        terminal.read_for(1.5)
        _grow(folder, terminal, step)
    return terminal


def _many_files(folder: Path) -> Pty:
    for number in range(10_000):
        (folder / f"logs/x{number}.log").write_text("nothing\n")
    return _in(folder)


def _names_by_case(folder: Path) -> Pty:
    for name in ("Run", "RUN", "rUn"):
        shutil.copytree(folder / "logs/run", folder / "logs" / name)
    terminal = _opened(folder)
    terminal.until("run", "Run", "RUN", "rUn")
    return terminal


def _long_name(folder: Path) -> Pty:
    log = folder / "logs/run/train.log"
    log.write_text("trainer.experiment_name=" + "n" * 10_240 + "\n" + log.read_text())
    return _in(folder)


def _at_most(what: int, number: int) -> None:
    resource.setrlimit(what, (number, number))


def _full(folder: Path) -> Pty:
    """No byte can be written, as on a full disk: a picture is not, which is said."""
    terminal = _opened(
        folder, partial(_at_most, resource.RLIMIT_FSIZE, 0), VERL_TUI_STATE="state"
    )
    terminal.press(b"\x13")  # ctrl+s
    terminal.until("cannot write to")
    _grow(folder, terminal, 77)
    return terminal


def _without_notices() -> None:
    """Have the file system tell this process of no change, in a name space of its own."""
    user = os.geteuid()
    assert ctypes.CDLL(None).unshare(_NEW_USERS) == 0, "this needs user name spaces"
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/sys/user/max_inotify_instances").write_text("0")


def _ordinary() -> None:
    """Have permissions hold for root, too: drop CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
    for right in (1, 2):
        ctypes.CDLL(None).prctl(_DROP, right, 0, 0, 0)


def _forbidden(folder: Path) -> Pty:
    terminal = _opened(folder, _ordinary)
    for step, path in enumerate(("logs/run/train.log", "logs/run", "logs"), 77):
        usual = (folder / path).stat().st_mode
        with (folder / "logs/run/train.log").open("a") as file:
            (folder / path).chmod(0)
            file.write(_STEP.format(step))
        terminal.until("permission denied")
        (folder / path).chmod(usual)
        terminal.until(f"step {step}", "1 source ok")
    return terminal


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


_PLAIN = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
CASES: Mapping[str, Callable[[Path], Pty]] = {
    "winch": _winch, "clock": _clock, "many": _many_files, "case": _names_by_case, "name": _long_name, "removed": _removed,
    "term": partial(_in, TERM=""), "oddterm": partial(_in, TERM="\x1b[2Jx"), "c": partial(_in, **_PLAIN),
    "home": partial(_in, HOME="/dev/null", XDG_CONFIG_HOME="/dev/null", XDG_STATE_HOME="/dev/null"),
    "readonly": partial(_in, HOME="/proc", XDG_STATE_HOME="/proc", XDG_CACHE_HOME="/proc"),
    "fifo": partial(_replaced, os.mkfifo), "directory": partial(_replaced, Path.mkdir), "socket": partial(_replaced, _socket),
    "device": partial(_replaced, lambda log: log.symlink_to("/dev/zero")),
    "memory": partial(_replaced, lambda log: log.symlink_to("/proc/self/mem")),
    "full": _full, "forbidden": _forbidden, "notices": partial(_in, prepare=_without_notices),
    "descriptors": partial(_in, prepare=partial(_at_most, resource.RLIMIT_NOFILE, 16)),
    "loop": partial(_replaced, lambda log: log.symlink_to(log.name)),
}  # fmt: skip


def broken(name: str) -> str:
    """Return what is wrong in one of the surroundings, empty if nothing is."""
    from real_terminal import restored

    with TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "logs/run").mkdir(parents=True)
        (folder / "logs/run/train.log").write_text(_steps(1, 30))
        try:
            terminal = CASES[name](folder)
            terminal.press(b"q")
            code = terminal.end()
        except AssertionError as error:
            return str(error)
        terminal.close()
        if code != 0 or b"Traceback" in terminal.output:
            return f"it ended with {code}"
        return "" if restored(terminal.output) else "the terminal is not as it was"


def main() -> int:
    """Try what the command line names; return 1 if anything is broken."""
    found = 0
    for name in sys.argv[1:] or CASES:
        wrong = broken(name)
        found += bool(wrong)
        print(name, wrong or "goes on", flush=True)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
