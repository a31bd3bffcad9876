"""Where paths lead when links are followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from verl_tui.sources.files.paths import RealPaths


@pytest.fixture
def links(tmp_path, monkeypatch):
    """Make a directory with a file, reached by links, and work beside it."""
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "deep" / "log").touch()
    (tmp_path / "to_deep").symlink_to(tmp_path / "real" / "deep")
    (tmp_path / "to_link").symlink_to("to_deep")
    (tmp_path / "real" / "to_file").symlink_to("deep/log")
    (tmp_path / "dangling").symlink_to("nothing/here")
    monkeypatch.chdir(tmp_path)
    return tmp_path


PATHS = [
    "real/deep/log",
    "to_deep/log",
    "to_link/log",
    "to_deep/../to_file",
    "to_deep/..",
    "dangling/log",
    "missing/log",
    "real/deep/log/below",
    ".",
    "..",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_leads_where_the_system_says(links, path):
    for each in (Path(path), links / path):
        assert RealPaths().of(each) == each.resolve()


def test_what_was_asked_before_changes_no_answer(links):
    real_paths = RealPaths()
    for path in (*PATHS, *PATHS[::-1]):
        assert real_paths.of(Path(path)) == Path(path).resolve()


def test_a_very_long_path_has_an_answer(tmp_path):
    path = tmp_path.joinpath(*["a"] * 1500)
    assert RealPaths().of(path) == path.resolve()
