"""Commands as a user gives them, and what they say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import verl_tui

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def run(*argv: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return python("-m", "verl_tui", *argv, **settings)


def python(*words: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own."""
    if "input" not in settings:
        settings.setdefault("stdin", subprocess.DEVNULL)
    command = [sys.executable, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, **settings
    )


def copy_package(folder: Path) -> Path:
    """Copy the package into a folder; return the copy, which may be changed."""
    copy = folder / "verl_tui"
    shutil.copytree(Path(verl_tui.__file__).parent, copy)
    return copy


def python_with_copy(
    folder: Path, *words: object, places: Sequence[object] = (), **settings: Any
) -> str:
    """Run Python where a folder has a copy of the package; return what it prints."""
    path = os.pathsep.join(map(str, (folder, *places)))
    environment = {**os.environ, "PYTHONPATH": path, "VERL_TUI_STATE": ""}
    done = python(*words, cwd=folder, env=environment, **settings)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def placed(text: str) -> str:
    """Return a text in which the place of each error of ours is `PLACE`."""
    return re.sub(r"(?<=Error in )\w+\.py:\d+", "PLACE", text)


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was said on standard error: exactly one line."""
    text = capsys.readouterr().err
    assert text.startswith("verl-tui: ")
    assert text.count("\n") == 1
    return text.removeprefix("verl-tui: ").rstrip()
