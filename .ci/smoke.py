"""Imports every module, runs the commands, and starts and quits the app in a terminal: that the
versions installed work at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import io
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
from verl_tui.cli import main

LOGS = Path(__file__).parents[1] / "tests" / "data"
PATIENCE = 20.0
"""Seconds without any output after which the app is stuck."""
COMMAND = (sys.executable, "-W", "error", "-m", "verl_tui")


def run(*words: object, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command in this process, which saves its imports, and return what it printed."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(io.StringIO()) as said,
    ):
        try:
            code = main([str(word) for word in words])
        except SystemExit as ended:
            code = ended.code
    assert code in codes, f"{words}: exit code {code}\n{said.getvalue()}"
    return printed.buffer.getvalue().decode()


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


def start() -> None:
    """Do all of it in an empty directory, with nobody's settings."""
    unraised: list[object] = []
    sys.unraisablehook = unraised.append
    for module in pkgutil.walk_packages(verl_tui.__path__, "verl_tui."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        Path("config.toml").touch()
        os.environ.update(
            {
                "VERL_TUI_CONFIG": str(Path("config.toml").resolve()),
                "VERL_TUI_STATE": "",
            }
        )
        start_and_quit()
        checked = json.loads(
            run("check", *sorted(LOGS.glob("*.*l*")), "--json", codes=(0, 1, 2))
        )
        assert len(checked["runs"]) >= 5
        # The last step has nothing behind it that would show that it is complete.
        steps = (f"===== Step {n}/2 =====\n  • Avg Reward: 0.5\n" for n in (1, 2))
        Path("steps.log").write_text("".join(steps), encoding="utf-8")
        assert json.loads(run("get", "state", "steps.log", "--json"))["step"] == 2
        run(LOGS / "filelogger_v07.jsonl", "--snapshot", "frame.svg")
        run(LOGS / "tutorial.jsonl", "--snapshot", "frame.txt", "--size", "140x45")
        assert "policy KL" in Path("frame.txt").read_text(encoding="utf-8")
        assert run("export", "csv", LOGS / "console_v09.log", "-o", "-").startswith(
            "step,"
        )
        run("export", "tensorboard", LOGS / "console_v09.log", "-o", "events")
        run("export", "prometheus", LOGS / "console_v09.log", "--textfile", "verl.prom")
        served = [*COMMAND, "mcp", LOGS]  # the client has gone
        subprocess.run(served, stdin=subprocess.DEVNULL, check=True)  # noqa: S603
        pages = (["help"], ["help", "keys"], ["help", "formats"])
        for words in (
            ["guide"],
            ["guide", "--format", "prometheus"],
            ["config"],
            ["--help"],
            *pages,
        ):
            assert run(*words)
        for shell in ("bash", "zsh", "fish", "tcsh"):
            assert "verl-tui" in run("--print-completion", shell)
    gc.collect()
    assert not unraised, unraised
    print("everything starts")


if __name__ == "__main__":
    start()
