"""Real trainers, in virtual environments of their own that are made once and kept."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import platformdirs
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRL = ("torch==2.13.0", "trl==1.16.0", "transformers==5.23.0", "tensorboard>=2.16", "pandas", "pyarrow", "rich")
_HERE = Path(__file__).parent
_QUIET = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
"""One thread trains a model this small ten times as fast as two."""
_FINISHES = 240
"""Seconds within which a training of these is over, on any machine."""


def _home() -> Path:
    """Return where the environments lie: `$VERL_TUI_PRODUCERS`, else the user's cache."""
    named = os.environ.get("VERL_TUI_PRODUCERS")
    return Path(named) if named else Path(platformdirs.user_cache_dir("verl-tui")) / "producers"


def _python(name: str, packages: tuple[str, ...]) -> Path:
    """Return the interpreter of an environment with these packages, made where it is not there yet."""
    home = _home() / name
    home.mkdir(parents=True, exist_ok=True)
    python, made = home / "venv" / "bin" / "python", home / "made.json"
    wanted = json.dumps([sys.version_info[:2], *packages])
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists() and made.read_text() == wanted:
            return python
        subprocess.run([sys.executable, "-m", "venv", "--clear", home / "venv"], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        ended = subprocess.run(install, capture_output=True, text=True, check=False)
        if ended.returncode:
            pytest.skip(f"{name} cannot be installed here: {ended.stderr.strip().splitlines()[-1:]}")
        made.write_text(wanted)
    return python


class Trained(NamedTuple):
    """A training that was started."""

    directory: Path
    """Where it writes: `train.log`, and `out` with everything else."""
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> Path:
        """Its console."""
        return self.directory / "train.log"

    @property
    def history(self) -> list[dict[str, float]]:
        """What the trainer itself remembers of each logged step."""
        return json.loads((self.directory / "out" / "trainer_state.json").read_text())["log_history"]

    def finish(self) -> Trained:
        """Wait for its end."""
        self.process.wait(_FINISHES)
        return self


@pytest.fixture(scope="session")
def trl() -> Path:
    """Return a Python with TRL."""
    return _python("trl-1.16", TRL)


@pytest.fixture
def train(trl: Path, tmp_path: Path) -> Iterator[Callable[..., Trained]]:
    """Return what starts a training: its options, and a command that its console goes through, if any."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: object, through: str = "", append: bool = False) -> Trained:
        words = [str(trl), str(_HERE / "trl_grpo.py"), "out", *map(str, options)]
        with (tmp_path / "train.log").open("ab" if append else "wb") as log:
            command = ["bash", "-c", f'"$@" 2>&1 | {through}', "-", *words] if through else words
            process = subprocess.Popen(
                command, cwd=tmp_path, env={**os.environ, **_QUIET}, stdout=log, stderr=subprocess.STDOUT
            )
        started.append(process)
        return Trained(tmp_path, process)

    yield start
    for process in started:
        process.kill()
        process.wait()
