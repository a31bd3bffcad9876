"""Commands as a user gives them, and what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def write_log(directory: Path, *kl: float, name: str = "run") -> Path:
    """Write a tutorial log, one value of policy KL a step; return its path."""
    path = directory / "logs" / name / "verl_logs.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for step, value in enumerate(kl, 1):
            row = {"reward_mean": 2.5 + 0.01 * (step % 3), "kl_div": value}
            file.write(json.dumps({"scope": "rollout", "step": step, **row}) + "\n")
    return path


def run(*argv: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "verl_tui", *argv]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        **settings,
    )


def placed(text: str) -> str:
    """Return a text in which the place of each error of ours is `PLACE`."""
    return re.sub(r"(?<=Error in )\w+\.py:\d+", "PLACE", text)


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was said on standard error: exactly one line."""
    text = capsys.readouterr().err
    assert text.startswith("verl-tui: ")
    assert text.count("\n") == 1
    return text.removeprefix("verl-tui: ").rstrip()
