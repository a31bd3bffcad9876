"""Names of what the app writes: they say what it is, and take no other file's place."""

from __future__ import annotations

import pytest

from verl_tui.exporters.file_names import create, named, unique_names
from verl_tui.sources.discovery.finder import Finder


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("grpo", "critic/score/mean"), "verl-tui-grpo-critic-score-mean"),
        (("../../etc", "val-core/a@1"), "verl-tui-etc-val-core-a-1"),
        (("", "步"), "verl-tui-run-run"),
    ],
)
def test_a_name_says_what_it_is_and_is_no_path(words, name):
    assert named(*words) == name


def test_what_is_taken_gets_a_number_for_all_its_endings(tmp_path):
    (tmp_path / "a.txt").write_text("mine")
    paths = create(tmp_path, "a", ".svg", ".txt")
    assert [path.name for path in paths] == ["a-2.svg", "a-2.txt"]
    assert not (tmp_path / "a.svg").exists(), "nothing is left of what was not made"
    assert (tmp_path / "a.txt").read_text() == "mine"
    paths = create(tmp_path, "a", ".svg", ".txt")
    assert [path.name for path in paths] == ["a-3.svg", "a-3.txt"]


def test_a_link_that_leads_nowhere_is_not_followed(tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "elsewhere")
    (path,) = create(tmp_path, "a", ".csv")
    assert path.name == "a-2.csv"
    assert not (tmp_path / "elsewhere").exists()


def test_a_watched_directory_does_not_take_them_for_logs(tmp_path):
    (tmp_path / "train.csv").write_text("step,critic/score/mean\n1,0.5\n")
    for ending, text in (
        (".csv", "step,critic/score/mean\n1,0.5\n"),
        (".txt", "step:1 - critic/score/mean:0.5\n"),
    ):
        (path,) = create(tmp_path, named("run", "critic/score/mean"), ending)
        path.write_text(text)
    (run,) = Finder([str(tmp_path)]).scan().runs
    assert [file.path.name for file in run.files] == ["train.csv"]
    (run,) = Finder([str(tmp_path / "verl-tui-run-critic-score-mean.csv")]).scan().runs
    assert [file.format.name for file in run.files] == ["metrics CSV"]


def test_names_are_safe_and_unique():
    names = ["a/b", "a b", "A_B", "../..", "", "训练", "x" * 400, ".hidden"]
    expected = ["a_b", "a_b-2", "A_B-3", "run", "run-2", "训练", "x" * 200, "hidden"]
    assert unique_names(names) == expected


def test_a_name_that_is_taken_is_left_alone():
    assert unique_names(["a", "b"], taken=["A", "c"]) == ["a-2", "b"]


def test_no_name_is_taken_for_an_option_or_a_formula():
    assert unique_names(["-rf", "--", "=1+1", "+x"]) == ["rf", "run", "1+1", "x"]
