"""Whether a training is gone: a trainer's own processes may outlive the one that is killed by some
seconds.
"""

from __future__ import annotations

import time
from pathlib import Path

import psutil

_GOES = 600.0
"""Seconds within which they are gone on any machine."""


def let_go(directory: Path) -> None:
    """Wait until no process writes any file below a directory."""
    deadline = time.monotonic() + _GOES
    while any(_writes_below(directory, process) for process in psutil.process_iter()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _writes_below(directory: Path, process: psutil.Process) -> bool:
    try:
        files = process.open_files()
    except psutil.Error:
        return False
    return any(
        file.mode != "r" and Path(file.path).is_relative_to(directory) for file in files
    )
