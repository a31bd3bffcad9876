"""verl's own PPO trainer while it trains, hangs, fails, is killed and comes back: held against its
own file logger.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from benchmarks.terminal import Terminal
from log_reading import read_run, values
from producers.answers import check, critical, later
from producers.environments import NotInstalledError, python_with
from producers.holders import let_go

from verl_tui.runs.views.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


OPTED = "VERL_TUI_PRODUCERS_ALL"
pytestmark = [
    pytest.mark.producers,
    pytest.mark.skipif(
        not os.environ.get(OPTED),
        reason=f"verl takes minutes to install and minutes a run: {OPTED}=1 asks for it",
    ),
]

_BOTH = """
torch==2.13.0 ray[default]==2.49.2 tensordict==0.10.0 datasets accelerate codetiming dill hydra-core peft pybind11
pylatexenc torchdata wandb tensorboard setuptools cachetools wrapt
""".split()  # noqa: SIM905 - to be read as text
VERSIONS = {
    "0.6.1": (
        (*_BOTH, "transformers==4.55.4", "numpy==1.26.4", "pandas==2.2.3", "pyarrow==20.0.0"),
        ("verl==0.6.1",),
    ),
    "0.9.1": (
        (*_BOTH, "transformers>=5.5.3,<5.11,!=5.6.0", "numpy>=2", "pandas", "pyarrow", "pyzmq", "msgspec",
         "prometheus_client", "uvicorn", "fastapi"),
        ("verl==0.9.1", "TransferQueue"),
    ),
}  # fmt: skip
"""What each version needs, and what is installed without what it says it needs: vLLM and others
that want a GPU.
"""
_HERE = Path(__file__).parent / "verl_ppo"
LAST, SAVED = 12, 4
SETTINGS = {
    "trainer.total_training_steps": LAST,
    "trainer.save_freq": SAVED,
    "trainer.test_freq": 4,
}
AT_ONCE = 3.0
"""Seconds within which the end of a process on this host is on the screen."""
COMES = 1800.0
"""Seconds within which anything comes on any machine: a start alone takes a minute of two
processors.
"""
BEATS = 300.0
"""Seconds within which verl 0.9 has printed its counters three times, once a minute."""


class Trained(NamedTuple):
    """A training that was started."""

    directory: Path
    """Where it writes."""
    process: subprocess.Popen[bytes]
    version: str

    @property
    def log(self) -> Path:
        """Its console."""
        return self.directory / "train.log"

    @property
    def history(self) -> dict[int, dict[str, float]]:
        """The values that verl's own file logger wrote, by step; a start begins it anew.

        That of 0.6.1 keeps lines back, and never writes the last of them.
        """
        whole, _, _ = (
            (self.directory / "toy" / "letters.jsonl").read_text().rpartition("\n")
        )
        return {row["step"]: row["data"] for row in map(json.loads, whole.splitlines())}

    def reaches(self, step: int, wait: Callable[[float], object] = time.sleep) -> None:
        """Wait until a step is done.

        Args:
            step: The step.
            wait: Waits for some seconds. A terminal that nobody reads stops the app in it.
        """
        file = self.directory / "rollouts" / f"{step}.jsonl"
        deadline = time.monotonic() + COMES
        while not file.exists():
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            wait(0.2)

    def ends(self) -> int:
        """Wait for its end; return its exit code."""
        return self.process.wait(COMES)

    def kill(self) -> None:
        """Kill the driver; what Ray started for it ends by itself."""
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Return a version of verl."""
    return str(request.param)


@pytest.fixture(scope="session")
def verl(version: str) -> Path:
    """Return a Python with that version."""
    packages, alone = VERSIONS[version]
    try:
        return python_with(f"verl-{version}", packages, alone)
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def toy(verl: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a random model and its prompts."""
    home = tmp_path_factory.mktemp("toy")
    subprocess.run([verl, _HERE / "toy.py", home], check=True, capture_output=True)
    return home


@pytest.fixture
def train(
    verl: Path, toy: Path, version: str, tmp_path: Path
) -> Iterator[Callable[..., Trained]]:
    """Return what starts a training: what goes wrong, from which step on."""
    started: list[Trained] = []

    def start(fault: str = "", at: int = 0) -> Trained:
        settings = [f"{key}={value}" for key, value in SETTINGS.items()]
        faulty = {"TOY_FAULT": fault, "TOY_FAULT_AT": str(at)} if fault else {}
        with (tmp_path / "train.log").open("ab") as log:
            process = subprocess.Popen(
                [verl, _HERE / "start.py", toy, *settings],
                cwd=tmp_path, env=os.environ | faulty, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        started.append(Trained(tmp_path, process, version))
        return started[-1]

    yield start
    for trained in started:
        trained.kill()


@pytest.fixture
def watch() -> Iterator[Callable[[Path], Terminal]]:
    """Return what opens the app on a directory, in a terminal of its own."""
    opened: list[Terminal] = []

    def open_on(path: Path) -> Terminal:
        opened.append(Terminal([sys.executable, "-m", "verl_tui", path], (80, 24)))
        return opened[-1]

    yield open_on
    for terminal in opened:
        terminal.close()


def is_like(value: float) -> Any:
    return pytest.approx(value, rel=1e-6, abs=1e-9, nan_ok=True)


def holds(path: Path, history: Mapping[int, Mapping[str, float]], last: int) -> None:
    """Hold each logged value against the trainer's own, at its step; every step is there, and none
    besides.
    """
    run = read_run(path)
    for step, row in history.items():
        for key, value in row.items():
            assert values(run, key)[step] == is_like(value), (key, step)
    assert list(values(run, "critic/score/mean")) == list(range(1, last + 1))
    assert run.step == last


def exports(path: Path, history: Mapping[int, Mapping[str, float]], last: int) -> None:
    """Hold the exported table against the trainer's own values."""
    file = path.parent / f"{path.name}.csv"
    subprocess.run(
        [sys.executable, "-m", "verl_tui", "export", "csv", path, "-o", file],
        check=True,
    )
    with file.open() as opened:
        rows = {int(row["step"]): row for row in csv.DictReader(opened)}
    assert list(rows) == list(range(last + 1))
    for step, stated in history.items():
        for key, value in stated.items():
            assert float(rows[step][key]) == is_like(value), (key, step)


def comes(terminal: Terminal, *texts: str, within: float = COMES) -> None:
    """Wait until one of some texts is on the screen."""
    assert terminal.read(within, lambda: any(map(terminal.shows, texts))), "\n".join(
        terminal.lines
    )


def test_a_healthy_training_is_watched_and_read_value_for_value(train, watch):
    trained = train()
    terminal = watch(trained.directory)
    trained.reaches(3, terminal.read)
    comes(terminal, "running")
    assert trained.ends() == 0
    comes(terminal, "finished", within=30)
    for path in (trained.log, trained.directory):
        holds(path, trained.history, LAST)
        run = check(path)
        known = (run["state"], run["step"], run["total_steps"])
        assert known == ("finished", LAST, LAST)
        assert critical(run) == []
    exports(trained.directory, trained.history, LAST)


def test_a_training_that_fails_is_a_crash_with_its_cause(train, watch):
    trained = train("raise", 4)
    terminal = watch(trained.directory)
    trained.reaches(3, terminal.read)
    comes(terminal, "running", "crashed")  # it may have failed before it is looked at
    trained.ends()
    comes(terminal, "crashed", within=30)
    holds(trained.directory, trained.history, 3)
    for path in (trained.log, trained.directory):
        run = check(path)
        assert (run["state"], run["step"]) == ("crashed", 3)
        (crash,) = (one for one in run["findings"] if one["id"] == "crash")
        assert "RuntimeError: judge endpoint answered 503" in crash["message"]


def test_a_killed_training_is_seen_at_once_and_is_one_run_with_the_one_that_resumes_it(
    train, watch
):
    trained = train()
    terminal = watch(trained.directory)
    trained.reaches(6, terminal.read)
    comes(terminal, "running")
    trained.kill()
    let_go(trained.directory)
    began = time.monotonic()
    comes(terminal, "stopped?", "crashed", within=30)
    assert time.monotonic() - began < AT_ONCE
    assert check(trained.directory)["state"] in ("ended?", "crashed")
    before = trained.history
    resumed = train()
    comes(terminal, "finished")
    assert resumed.ends() == 0
    assert min(resumed.history) >= SAVED, "it has not begun anew"
    for path in (trained.log, trained.directory):
        holds(path, before | resumed.history, LAST)
        assert (run := check(path))["state"] == "finished"
        assert critical(run) == []


def test_a_hang_is_certain_while_its_process_lives(train):
    trained = train("hang", 4)
    trained.reaches(3)
    beating = trained.version != "0.6.1"
    deadline = time.monotonic() + BEATS
    while beating and trained.log.read_text().count("pending: ") < 3:
        assert time.monotonic() < deadline
        time.sleep(1.0)
    for path in (trained.log, trained.directory):
        now, found = later(path)
        assert now is State.STALLED
        said = " ".join((found["hang"].message, *found["hang"].evidence))
        assert str(trained.process.pid) in said
        assert not beating or "its counters have stood still" in said
    trained.kill()
    let_go(trained.directory)
    for path in (trained.log, trained.directory):
        now, found = later(path)
        assert now in (State.ENDED, State.CRASHED)
        assert "hang" not in found


def test_a_hang_before_the_first_step_is_reported_with_what_is_known(train):
    trained = train("hang", 1)
    deadline = time.monotonic() + COMES
    while (
        "test_gen_batch meta info" not in trained.log.read_text()
        and "pending: " not in trained.log.read_text()
    ):
        assert trained.process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(1.0)
    for path in (trained.log, trained.directory):
        run = check(path)
        assert (run["state"], run["step"]) == ("waiting", None)
        assert critical(run) == []
        assert str(trained.process.pid) in json.dumps(run["not_judged"])
