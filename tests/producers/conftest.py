"""Real trainers, in virtual environments of their own that are made once and kept."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from producers.environments import QUIET, TRL, NotInstalledError, python_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HERE = Path(__file__).parent
_FINISHES = 240
"""Seconds within which a training of these is over, on any machine."""


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
        return json.loads((self.directory / "out" / "trainer_state.json").read_text())[
            "log_history"
        ]

    def finish(self) -> Trained:
        """Wait for its end."""
        self.process.wait(_FINISHES)
        return self


@pytest.fixture(scope="session")
def trl() -> Path:
    """Return a Python with TRL."""
    try:
        return python_with("trl-1.16", TRL)
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.fixture
def train(trl: Path, tmp_path: Path) -> Iterator[Callable[..., Trained]]:
    """Return what starts a training: its options, and a command that its console goes through, if
    any.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: object, through: str = "", append: bool = False) -> Trained:
        words = [str(trl), str(_HERE / "trl_grpo.py"), "out", *map(str, options)]
        with (tmp_path / "train.log").open("ab" if append else "wb") as log:
            command = ["bash", "-c", f'"$@" 2>&1 | {through}', "-", *words] if through else words
            process = subprocess.Popen(
                command,
                cwd=tmp_path,
                env={**os.environ, **QUIET},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        return Trained(tmp_path, process)

    yield start
    for process in started:
        process.kill()
        process.wait()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Allow for what real trainers take: their own time limits tell of those that hang."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(3600))
