"""Settings of all tests."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import tempfile
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import pytest
from command_line import write_log
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Modules and tests are not garbage: looking through them again and again costs a tenth of the
# collection.
gc.disable()

# Images of containers often forbid Python to keep what it has compiled. Then each worker compiles all
# tests, and each of the hundreds of commands that they start the whole program: to collect the tests
# alone takes three times as long.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# In the background of a script ctrl+c is ignored, and then by all commands that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Neither a user's settings nor the colours of his terminal decide.
os.environ["XDG_CONFIG_HOME"] = f"{tempfile.gettempdir()}/no-settings-of-anybody"
os.environ["TERM"] = "xterm-256color"
for _name in ("VERL_TUI_CONFIG", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(_name, None)

# An error in a part of the app ends it, so that no test passes over one.
os.environ["VERL_TUI_STRICT"] = "1"

# How long an example takes says how busy the machine is, not whether the code is right. And a build
# must not fail by chance: there the same examples are tried each time, and not too many; elsewhere
# new ones, which add up from call to call.
settings.register_profile("here", deadline=None, max_examples=10)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=10)
settings.register_profile(
    "thorough", deadline=None, derandomize="CI" in os.environ, max_examples=200
)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are cores: tests of terminals and servers wait for these
    (two cores: 167 s instead of 198 s); each further one would collect the tests once more.
    """
    return (os.cpu_count() or 1) + 1


_LONG = ("pictures", "browser", "prometheus", "long")
"""Marks of tests that take seconds, and would leave the other workers idle at the end."""


@pytest.fixture(scope="session")
def new_directory(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a directory of a name, numbered in turn.

    pytest looks through all directories that there are for a free number, and writes a link: that
    takes longer with each, in the end a thirtieth of the time of all tests.
    """
    base, numbers = tmp_path_factory.getbasetemp(), count()

    def make(name: str) -> Path:
        directory = base / f"{name}-{next(numbers)}"
        directory.mkdir(mode=0o700)
        return directory

    return make


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, new_directory: Callable[[str], Path]
) -> Path:
    """A directory of the test's own."""
    return new_directory(re.sub(r"\W", "_", request.node.name)[:24])


class Said(NamedTuple):
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Gives a command line, in this process; one of which an exit code is wanted has to have it."""
    from verl_tui.cli import main

    def ask(*words: object, code: int | None = None) -> Said:
        said = Said(main([*map(str, words)]), *capsys.readouterr())
        assert code in (None, said.code), said.err
        return said

    return ask


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """Return a writer of tutorial logs."""
    return partial(write_log, tmp_path)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer what takes too long for every change."""
    parser.addoption(
        "--thorough",
        action="store_true",
        help="also run the tests marked `thorough`, and try 200 examples for each property",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Try more examples where it may take longer."""
    if config.getoption("thorough"):
        settings.load_profile("thorough")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out the thorough tests where they are not asked for, and let the long ones begin
    first.
    """
    marks = {item: {mark.name for mark in item.iter_markers()} for item in items}
    if not config.getoption("thorough"):
        left_out = [item for item in items if "thorough" in marks[item]]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if "thorough" not in marks[item]]
    items.sort(key=lambda item: marks[item].isdisjoint(_LONG))


def pytest_collection_finish() -> None:
    """Look for garbage again, but only among what tests make, and as seldom as the command does:
    what they read and judge is little garbage, and to look through it after every 700 objects is a
    twelfth of their time, and to look through an app after every 10,000 a twentieth of its.
    """
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Look for the last garbage once: pytest does so five times, in each process."""
    gc.collect()
    gc.freeze()
