"""Places that cannot be written: every export says in one sentence which and why, and leaves what
is there alone.
"""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING

import pytest
from ordinary_rights import ordinary_rights

from verl_tui.cli import main

if TYPE_CHECKING:
    from pathlib import Path

EXPORTS = [
    pytest.param(["csv", "-o"], "run.csv", id="csv"),
    pytest.param(["csv", "-o"], "new/", id="csv-directory"),
    pytest.param(["tensorboard", "-o"], "board", id="tensorboard"),
    pytest.param(["tensorboard", "--follow", "-o"], "board", id="tensorboard-follow"),
    pytest.param(["prometheus", "--textfile"], "verl.prom", id="prometheus"),
    pytest.param(["prometheus", "--follow", "--textfile"], "x.prom", id="prometheus-follow"),
]  # fmt: skip


@pytest.fixture
def log(tmp_path):
    """A log of one step."""
    path = tmp_path / "run.jsonl"
    path.write_text('{"step": 1, "data": {"critic/score/mean": 0.5}}\n')
    return path


@pytest.fixture
def sealed(tmp_path):
    """A directory that nobody may write to."""
    path = tmp_path / "sealed"
    path.mkdir()
    path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with ordinary_rights():
        yield path
    path.chmod(stat.S_IRWXU)


def refused(
    words: list[str], log: Path, out: str, capsys: pytest.CaptureFixture[str]
) -> str:
    """Return the sentence of an export that cannot be written."""
    kind, *options = words
    assert main(["export", kind, str(log), *options, out]) == 73
    (said,) = re.findall(r"verl-tui: (.*)\n", capsys.readouterr().err)
    return str(said)


@pytest.mark.parametrize(("words", "name"), EXPORTS)
def test_below_a_file_nothing_can_be_written(words, name, log, capsys):
    before = log.read_bytes()
    said = refused(words, log, f"{log}/{name}", capsys)
    assert re.fullmatch(
        rf"{re.escape(str(log))}/{name.rstrip('/')}(/run)?: not a directory", said
    )
    assert log.read_bytes() == before


@pytest.mark.parametrize(("words", "name"), EXPORTS)
def test_a_directory_that_may_not_be_written(words, name, log, sealed, capsys):
    said = refused(words, log, f"{sealed}/{name}", capsys)
    assert re.fullmatch(
        rf"{re.escape(str(sealed))}/{name.rstrip('/')}(/run)?: permission denied", said
    )
    assert not list(sealed.iterdir())
