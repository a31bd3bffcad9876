"""Other trainers than verl and TRL 1.16, healthy, hung, failing, killed and resumed, against their
own history.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from log_reading import read_run, values
from producers.answers import check, critical, later
from producers.environments import QUIET, TRL, NotInstalledError, python_with
from producers.holders import let_go

from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPTED = "VERL_TUI_PRODUCERS_ALL"
pytestmark = [
    pytest.mark.producers,
    pytest.mark.skipif(
        not os.environ.get(OPTED),
        reason=f"these take minutes to install: {OPTED}=1 asks for it",
    ),
]
_HERE = Path(__file__).parent
STEPS, SAVED, FAILS = 20, 10, 14
FINISHES = 600.0
"""Seconds within which a training of these is over, on any machine: the imports alone may take
minutes.
"""


class Trainer(NamedTuple):
    """A trainer, its script and its packages."""

    script: str
    packages: tuple[str, ...]
    console: str
    key: str
    """A metric of every logged step."""
    every: int
    """Steps from one logged step to the next."""
    without: tuple[str, ...] = ()
    """Packages that come with it and do not load on a CPU."""
    tracker: str = ""
    """Program that its figures are reported to, its script's own choice where none is named."""


TRAINERS = {
    "trl-0.14": Trainer(
        "trl_grpo.py",
        ("torch==2.13.0", "trl==0.14.0", "transformers==4.48.3", "tensorboard>=2.16", "rich", "pandas"),
        "TRL console", "reward", 1,
    ),
    "trl-1.16-trackio": Trainer("trl_grpo.py", (*TRL, "trackio"), "TRL console", "reward", 1, tracker="trackio"),
    "trl-1.16-wandb": Trainer("trl_grpo.py", (*TRL, "wandb"), "TRL console", "reward", 1, tracker="wandb"),
    "trl-0.19": Trainer(
        "trl_grpo.py",
        ("torch==2.13.0", "trl==0.19.1", "transformers==4.52.4", "tensorboard>=2.16", "rich", "pandas"),
        "TRL console", "reward", 1,
    ),
    "ms-swift-4.6": Trainer(
        "swift_grpo.py", ("torch==2.13.0", "ms-swift>=4.6,<4.7", "msgspec", "tensorboard>=2.16"),
        "ms-swift console", "reward", 1,
    ),
    "llamafactory-0.9": Trainer(
        "factory_dpo.py", ("torch==2.13.0", "llamafactory>=0.9.5,<0.10", "tensorboard>=2.16"),
        "LLaMA-Factory console", "rewards/margins", 2, ("torchvision", "torchaudio"),
    ),
}  # fmt: skip


class Training(NamedTuple):
    """A training that was started."""

    trainer: Trainer
    directory: Path
    process: subprocess.Popen[bytes]

    def finish(self) -> Training:
        """Wait for its end."""
        self.process.wait(FINISHES)
        return self

    @property
    def history(self) -> list[dict[str, Any]]:
        """What the trainer itself remembers of each logged step, as its newest checkpoint has
        it.
        """
        kept = list(self.directory.glob("out/**/checkpoint-*/trainer_state.json"))
        newest = max(
            kept,
            key=lambda path: (
                int(path.parent.name.partition("-")[2]),
                path.stat().st_mtime,
            ),
        )
        return [
            one
            for one in json.loads(newest.read_text())["log_history"]
            if "train_runtime" not in one
        ]


def python_of(name: str, trainer: Trainer) -> Path:
    """Return the interpreter of a trainer's environment."""
    try:
        python = python_with(name, trainer.packages)
    except NotInstalledError as error:
        pytest.skip(str(error))
    if trainer.without:
        uninstall = (python, "-m", "pip", "uninstall", "--quiet", "--yes")
        subprocess.run([*uninstall, *trainer.without], check=True, capture_output=True)
        for site in python.parent.parent.glob("lib/python*/site-packages"):
            (site / "torchaudio.py").touch()  # it is imported, and not used
    return python


@pytest.fixture(params=TRAINERS)
def train(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., Training]]:
    """Return what starts a training, with its options."""
    trainer = TRAINERS[request.param]
    python = python_of(request.param, trainer)
    started: list[subprocess.Popen[bytes]] = []
    environment = {
        **os.environ,
        **QUIET,
        "TRACKIO_DIR": str(tmp_path / "trackio"),
        "WANDB_MODE": "offline",
    }

    def start(*options: object) -> Training:
        words = [str(python), str(_HERE / trainer.script), "out", "--save", str(SAVED)]
        words += [
            *(("--report", trainer.tracker) if trainer.tracker else ()),
            *map(str, options),
        ]
        with (tmp_path / "train.log").open("ab") as log:
            process = subprocess.Popen(
                words,
                cwd=tmp_path,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        return Training(trainer, tmp_path, process)

    yield start
    for process in started:
        process.kill()
        process.wait()


def holds(path: Path, training: Training) -> None:
    """Hold each logged value against the trainer's history, at its step; nothing more, nothing
    less.
    """
    key = training.trainer.key
    run = read_run(path)
    found = values(run, key)
    assert found == {
        one["step"]: pytest.approx(one[key], rel=2e-3, abs=1e-6)
        for one in training.history
    }


def test_healthy(train):
    training = train("--steps", STEPS).finish()
    assert training.process.returncode == 0, (
        training.directory / "train.log"
    ).read_text()[-2000:]
    holds(training.directory, training)
    holds(training.directory / "train.log", training)
    run = check(training.directory)
    assert (run["state"], run["step"], run["total_steps"]) == ("finished", STEPS, STEPS)
    assert training.trainer.console in {source["program"] for source in run["sources"]}
    assert critical(run) == []


def test_failing_and_resumed(train):
    training = train("--steps", STEPS, "--raise-at", FAILS).finish()
    last = (FAILS - 1) // training.trainer.every * training.trainer.every
    failed = check(training.directory)
    assert failed["state"] == "crashed"
    assert last <= failed["step"] <= FAILS
    (crash,) = (one for one in failed["findings"] if one["id"] == "crash")
    assert "RuntimeError: reward endpoint answered 503" in crash["message"]
    resumed = train("--steps", STEPS, "--resume").finish()
    assert resumed.process.returncode == 0, (
        resumed.directory / "train.log"
    ).read_text()[-2000:]
    run = check(resumed.directory)
    assert (run["state"], run["step"]) == ("finished", STEPS)
    holds(resumed.directory, resumed)
    holds(resumed.directory / "train.log", resumed)
    kept = [
        path for path in read_run(resumed.directory).paths if path.endswith(".wandb")
    ]
    assert len(kept) == (2 if resumed.trainer.tracker == "wandb" else 0), (
        "W&B begins a run at each start"
    )
    (begun,) = (one for one in run["findings"] if one["id"] == "restart")
    assert begun["step"] == SAVED + resumed.trainer.every


def test_killed(train):
    training = train("--steps", 100_000)
    log = training.directory / "train.log"
    deadline = time.monotonic() + FINISHES
    while not (log.exists() and read_steps(log) >= 2 * training.trainer.every):
        assert training.process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < deadline
        time.sleep(1)
    assert check(training.directory)["state"] == "running"
    training.process.kill()
    training.process.wait()
    let_go(training.directory)
    run = check(training.directory)
    assert run["state"] in ("ended?", "crashed")
    assert "hang" not in {one["id"] for one in run["findings"]}


def test_hung(train):
    training = train("--steps", STEPS, "--hang-at", FAILS)
    last = (FAILS - 1) // training.trainer.every * training.trainer.every
    log = training.directory / "train.log"
    deadline = time.monotonic() + FINISHES
    while not (log.exists() and read_steps(log) >= last):
        assert training.process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < deadline
        time.sleep(1)
    for path in (log, training.directory):
        now, found = later(path)
        assert now is State.STALLED
        assert str(training.process.pid) in " ".join(
            (found["hang"].message, *found["hang"].evidence)
        )
    training.process.kill()
    training.process.wait()
    let_go(training.directory)
    now, found = later(training.directory)
    assert now in (State.ENDED, State.CRASHED)
    assert "hang" not in found


def read_steps(log: Path) -> int:
    """Return the step that a console has reached so far."""
    monitor = load([str(log)], Config(), time.time())
    return max((run.step or 0 for run in monitor.runs.values()), default=0)
