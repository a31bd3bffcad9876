"""Virtual environments of real trainers, made once and kept."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import platformdirs

TRL = (
    "torch==2.13.0", "trl==1.16.0", "transformers==5.23.0", "tensorboard>=2.16", "pandas", "pyarrow", "rich",
)  # fmt: skip
QUIET = {
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "disabled",
}
"""One thread trains a model this small ten times as fast as two."""


class NotInstalledError(Exception):
    """The packages of an environment cannot be had here; its text is pip's last line."""


def home() -> Path:
    """Return where the environments lie: `$VERL_TUI_PRODUCERS`, else the user's cache."""
    named = os.environ.get("VERL_TUI_PRODUCERS")
    return (
        Path(named)
        if named
        else Path(platformdirs.user_cache_dir("verl-tui")) / "producers"
    )


def python_with(
    name: str, packages: tuple[str, ...], alone: tuple[str, ...] = ()
) -> Path:
    """Return the interpreter of an environment with some packages, made where it is not there yet.

    Args:
        name: Of the environment.
        packages: Are installed with what they need.
        alone: Are installed without what they say they need.

    Raises:
        NotInstalledError: Where pip cannot install them.
    """
    place = home() / name
    place.mkdir(parents=True, exist_ok=True)
    python = place / "venv" / "bin" / "python"
    made = place / "made.json"
    wanted = json.dumps([sys.version_info[:2], *packages, *alone])
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists() and made.read_text() == wanted:
            return python
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", place / "venv"], check=True
        )
        _install(python, name, *packages)
        if alone:
            _install(python, name, "--no-deps", *alone)
        made.write_text(wanted)
    return python


def _install(python: Path, name: str, *what: str) -> None:
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    ended = subprocess.run([*pip, *what], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise NotInstalledError(
            f"{name} cannot be installed here: {ended.stderr.strip().splitlines()[-1:]}"
        )
