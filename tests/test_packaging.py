"""A source distribution and its wheel can be built and installed offline, with all data files."""

from __future__ import annotations

import os
import re
import tarfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from command_line import python

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        find_spec("hatchling") is None, reason="hatchling is not installed"
    ),
]

ROOT = Path(__file__).parents[1]
PAGES = tuple(
    f"{folder}/README.md" for folder in ("commands", "health", "runs", "sources", "tui")
)
DATA = ("commands/SKILL.md", "health/guide.toml", "py.typed", *PAGES)


def test_the_pythons_that_are_tested_are_those_that_are_declared():
    tested = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    declared = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert tested["jobs"]["run"]["strategy"]["matrix"]["python"] == declared


def run(*words: object, **environment: str) -> str:
    done = python(*words, cwd="/", env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The source distribution, unpacked but for the tests, and the names of all its files."""
    directory = tmp_path_factory.mktemp("sdist")
    build = "import os, sys; os.chdir(sys.argv[1]); from hatchling.build import build_sdist as b; b(sys.argv[2])"
    run("-c", build, ROOT, directory)
    (archive,) = directory.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        # none before 3.11.4
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        (top,) = {one.name.partition("/")[0] for one in packed}
        names = {name.removeprefix(f"{top}/") for name in packed.getnames()}
        members = [one for one in packed if not one.name.startswith(f"{top}/tests/")]
        packed.extractall(directory, members)
    return directory / top, names


@pytest.fixture(scope="module")
def installed(source, tmp_path_factory):
    """A directory that pip installs into what it builds of the source distribution, offline."""
    directory = tmp_path_factory.mktemp("installed")
    offline = ("--no-build-isolation", "--no-index", "--no-deps", "--no-compile")
    run("-m", "pip", "install", *offline, "--quiet", "--target", directory, source[0])
    return directory


def test_what_is_built_is_whole_and_runs(source, installed):
    """In one test, as all of it is built anew by each process."""
    for name in (".ci/run", "README.md", "LICENSE", "tests/test_packaging.py"):
        assert name in source[1], f"it cannot be worked on: {name}"
    own = {one.name for one in installed.iterdir() if one.suffix != ".dist-info"}
    assert own - {"bin"} == {"verl_tui"}
    names = {path.relative_to(installed).as_posix() for path in installed.rglob("*")}
    assert {f"verl_tui/{name}" for name in DATA} <= names
    modules = ROOT.glob("verl_tui/**/*.py")
    assert {path.relative_to(ROOT).as_posix() for path in modules} <= names
    for command in ("guide", "--version", "help formats"):
        words = ("-m", "verl_tui", *command.split())
        assert run(*words, PYTHONPATH=str(installed)).strip(), command
    program = "import verl_tui; print(verl_tui.__file__)"
    where = run("-c", program, PYTHONPATH=str(installed))
    assert Path(where.strip()).is_relative_to(installed)
