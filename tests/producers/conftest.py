"""Real trainers, in virtual environments of their own that are made once and kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pytest
from producers.environments import QUIET, TRL, NotInstalledError, python_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HERE = Path(__file__).parent
_FINISHES = 240
"""Seconds within which a training of these is over, on any machine."""


class Process(Protocol):
    """A training that goes on or has ended."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


class Forks:
    """A process that has imported TRL, and trains in children."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            [str(python), str(_HERE / "trl_forks.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **QUIET},
        )

    def ask(self, **what: object) -> int | None:
        """Return the answer to one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """End it; its children have ended."""
        self._process.communicate(timeout=_FINISHES)


class Fork:
    """A training in a child of `Forks`."""

    def __init__(
        self, forks: Forks, directory: Path, argv: list[str], *, append: bool
    ) -> None:
        self._forks = forks
        pid = forks.ask(directory=str(directory), argv=argv, append=append)
        assert pid is not None
        self.pid = pid
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code."""
        if self.returncode is None:
            self.returncode = self._forks.ask(
                wait=self.pid, timeout=timeout or _FINISHES
            )
        assert self.returncode is not None, "it goes on"
        return self.returncode

    def kill(self) -> None:
        """Kill it where it still runs."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


class Trained(NamedTuple):
    """A training that was started."""

    directory: Path
    """Where it writes: `train.log`, and `out` with everything else."""
    process: Process

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


@pytest.fixture(scope="session")
def forks(trl: Path) -> Iterator[Forks]:
    """Return a process that trains in children."""
    process = Forks(trl)
    yield process
    process.end()


@pytest.fixture
def train(trl: Path, forks: Forks, tmp_path: Path) -> Iterator[Callable[..., Trained]]:
    """Return what starts a training: its options, and a command that its console goes through, if
    any.
    """
    started: list[Process] = []

    def start(*options: object, through: str = "", append: bool = False) -> Trained:
        words = ["out", *map(str, options)]
        if through:
            started.append(piped(words, through))
        else:
            started.append(Fork(forks, tmp_path, words, append=append))
        return Trained(tmp_path, started[-1])

    def piped(words: list[str], through: str) -> Process:
        script = [str(trl), str(_HERE / "trl_grpo.py")]
        with (tmp_path / "train.log").open("wb") as log:
            return subprocess.Popen(
                ["bash", "-c", f'"$@" 2>&1 | {through}', "-", *script, *words],
                cwd=tmp_path,
                env={**os.environ, **QUIET},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    yield start
    for process in started:
        process.kill()
        process.wait()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Allow for what real trainers take: their own time limits tell of those that hang."""
    here = f"{_HERE}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.timeout(3600))
