"""The command as a user runs it, and TensorBoard's own server over what it writes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long
SERVER = [
    sys.executable,
    *["-m", "tensorboard.main", "--port", "0", "--host", "127.0.0.1"],
]
PATIENCE = 60.0
"""Seconds that a server may take to start, or to find what is new."""


def exporting(log: Path, board: Path, *options: str) -> subprocess.Popen[str]:
    words = ["-m", "verl_tui", "export", "tensorboard", log, "-o", board, *options]
    command = [sys.executable, *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def line(step: int, score: float) -> str:
    data = {"critic/score/mean": score, "actor/grad_norm": 0.5}
    return json.dumps({"step": step, "data": data}) + "\n"


@pytest.fixture
def address(tmp_path):
    """The address of a server that looks at `tmp_path / "board"` every second."""
    command = [*SERVER, "--logdir", str(tmp_path / "board"), "--reload_interval", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in server.stderr)
        yield next(found.group() for found in said if found)
        server.terminate()


def asked(address: str, what: str, **query: str) -> Any:
    """Return what the server answers."""
    url = f"{address}/data/plugin/{what}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return json.load(answer)


def points(address: str, count: int) -> list[list[float]]:
    """Return step and value of the score's points, once there are so many."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if "critic/score/mean" in asked(address, "scalars/tags").get("run", {}):
            which = {"run": "run", "tag": "critic/score/mean"}
            found = asked(address, "scalars/scalars", **which)
            if len(found) >= count:
                return [point[1:] for point in found]
        time.sleep(0.05)
    pytest.fail(f"TensorBoard found no {count} points")


def test_tensorboard_shows_what_was_written_while_it_is_written(tmp_path, address):
    log = tmp_path / "run.jsonl"
    log.write_text("".join(line(step, step / 4) for step in range(1, 5)))
    with exporting(log, tmp_path / "board", "--follow", "--interval", "0.5") as command:
        assert points(address, 4) == [[step, step / 4] for step in range(1, 5)]
        with log.open("a", encoding="utf-8") as file:
            file.write(line(5, 1.25))
        assert points(address, 5) == [[step, step / 4] for step in range(1, 6)]
        command.send_signal(signal.SIGINT)
        assert command.wait(PATIENCE) == 0
        assert command.stderr is not None
        assert "8 points" in command.stderr.read()
