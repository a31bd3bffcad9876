"""What verl-tui says of a training, now and as if it were later."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.runs.views.state import State, state

if TYPE_CHECKING:
    from pathlib import Path

    from verl_tui.health.finding import Finding

PATIENCE = 900.0
"""Seconds after which every run here counts as silent for too long."""


def check(path: Path) -> dict[str, Any]:
    """Return what `check --json` says of a run."""
    command = [sys.executable, "-m", "verl_tui", "check", "--json", str(path)]
    (run,) = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=False).stdout
    )["runs"]
    return run


def critical(run: dict[str, Any]) -> list[str]:
    """Return the ids of the critical findings on a run."""
    return [one["id"] for one in run["findings"] if one["severity"] == "critical"]


def later(path: Path, seconds: float = PATIENCE) -> tuple[State, dict[str, Finding]]:
    """Return the state of a run and what is found, as if it were later."""
    now = time.time() + seconds
    monitor = load([str(path)], Config(), now)
    (run,) = monitor.runs.values()
    return state(run, now), {one.id: one for one in monitor.verdicts[run.name].findings}
