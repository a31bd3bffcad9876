"""Imports every module, runs the commands, and starts and quits the app in a terminal: that the
versions installed work at all.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import pkgutil
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

import verl_tui

LOGS = Path(__file__).parents[1] / "tests" / "data"
PATIENCE = 20.0
"""Seconds without any output after which the app is stuck."""
COMMAND = (sys.executable, "-W", "error", "-m", "verl_tui")


def run(*words: object, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command and return what it printed."""
    done = subprocess.run(
        [*COMMAND, *(str(word) for word in words)], capture_output=True, text=True, check=False
    )
    assert done.returncode in codes, f"{words}: exit code {done.returncode}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def start_and_quit() -> None:
    """Start the app in a terminal, wait for its first frame, and press q."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.environ.update({"TERM": "xterm-256color", "LANG": "C.UTF-8"})
        os.execv(COMMAND[0], [*COMMAND, str(LOGS / "tutorial.jsonl")])
    seen, quitting = b"", False
    while select.select([terminal], [], [], PATIENCE)[0]:
        try:
            seen += os.read(terminal, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if b"policy" in seen and not quitting:
            quitting = True
            os.write(terminal, b"q")
    else:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, (
        f"the app ended with {code}; q was {'' if quitting else 'not '}pressed\n{seen!r}"
    )


def main() -> None:
    """Do all of it in an empty directory, with nobody's settings."""
    for module in pkgutil.walk_packages(verl_tui.__path__, "verl_tui."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        Path("config.toml").touch()
        os.environ.update(
            {"VERL_TUI_CONFIG": str(Path("config.toml").resolve()), "VERL_TUI_STATE": ""}
        )
        checked = json.loads(run("check", *sorted(LOGS.glob("*.*l*")), "--json", codes=(0, 1, 2)))
        assert len(checked["runs"]) >= 5
        run(LOGS / "filelogger_v07.jsonl", "--snapshot", "frame.svg")
        run(LOGS / "tutorial.jsonl", "--snapshot", "frame.txt", "--size", "140x45")
        assert "policy KL" in Path("frame.txt").read_text(encoding="utf-8")
        assert run("export", "csv", LOGS / "console_v09.log", "-o", "-").startswith("step,")
        run("export", "tensorboard", LOGS / "console_v09.log", "-o", "events")
        run("export", "prometheus", LOGS / "console_v09.log", "--textfile", "verl.prom")
        for words in (["guide"], ["guide", "--format", "prometheus"], ["config"], ["--help"]):
            assert run(*words)
        assert "verl-tui" in run("--print-completion", "bash")
        start_and_quit()
    print("everything starts")


if __name__ == "__main__":
    main()
