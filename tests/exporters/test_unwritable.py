"""Places that cannot be written: every export says in one sentence which and why, and leaves what
is there alone.
"""

from __future__ import annotations

import re
import stat

import pytest
from ordinary_rights import ordinary_rights

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


@pytest.mark.parametrize(("words", "name"), EXPORTS)
def test_below_a_file_and_in_a_sealed_directory_nothing_is_written(
    words, name, log, sealed, asked
):
    before = log.read_bytes()
    kind, *options = words
    for place, why in ((log, "not a directory"), (sealed, "permission denied")):
        said = asked("export", kind, log, *options, f"{place}/{name}", code=73).err
        (sentence,) = re.findall(r"verl-tui: (.*)\n", said)
        below = rf"{re.escape(str(place))}/{name.rstrip('/')}(/run)?"
        assert re.fullmatch(f"{below}: {why}", sentence)
    assert log.read_bytes() == before
    assert not list(sealed.iterdir())
