"""A wheel and a source distribution can be built and installed offline, with all data files."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec("hatchling") is None, reason="hatchling is not installed")

ROOT = Path(__file__).parents[1]
PAGES = tuple(f"{folder}/README.md" for folder in ("commands", "health", "runs", "sources", "tui"))
DATA = ("health/guide.toml", "py.typed", *PAGES)


def run(*words: object, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *(str(word) for word in words)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    directory = tmp_path_factory.mktemp("sdist")
    build = "import os, sys; os.chdir(sys.argv[1]); from hatchling.build import build_sdist as b; b(sys.argv[2])"
    run("-c", build, ROOT, directory)
    (archive,) = directory.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
    (unpacked,) = (path for path in directory.iterdir() if path.is_dir())
    return unpacked


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip builds of the source distribution, offline."""
    directory = tmp_path_factory.mktemp("wheel")
    offline = ("--no-build-isolation", "--no-deps", "--no-index", "--quiet")
    run("-m", "pip", "wheel", *offline, "--wheel-dir", directory, source)
    (found,) = directory.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that the wheel is installed into, offline."""
    directory = tmp_path_factory.mktemp("installed")
    offline = ("--no-index", "--no-deps", "--no-compile", "--quiet")
    run("-m", "pip", "install", *offline, "--target", directory, wheel)
    return directory


@pytest.mark.parametrize("name", [".ci/run", "README.md", "LICENSE", "tests/test_packaging.py"])
def test_the_source_distribution_can_be_worked_on(source, name):
    assert (source / name).is_file()


def test_the_wheel_holds_the_package_and_its_data(wheel):
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    assert all(name.startswith("verl_tui/") for name in names)
    assert {f"verl_tui/{name}" for name in DATA} <= names
    modules = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("verl_tui/**/*.py")}
    assert modules <= names


@pytest.mark.parametrize(
    "command",
    [
        "guide",
        "help formats",
        *(pytest.param(one, marks=pytest.mark.thorough) for one in ("--help", "--version")),
    ],
)
def test_what_is_installed_runs(installed, command):
    said = run("-m", "verl_tui", *command.split(), PYTHONPATH=str(installed), VERL_TUI_CONFIG="")
    assert said.strip()
    where = run("-c", "import verl_tui; print(verl_tui.__file__)", PYTHONPATH=str(installed))
    assert Path(where.strip()).is_relative_to(installed)
