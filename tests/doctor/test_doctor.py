"""What the doctor says of paths, of the terminal and of the machine."""

from __future__ import annotations

import json

import pytest
from file_writing import write_file

from verl_tui.config import Config
from verl_tui.doctor.examination import change_notices, format_evidence, terminal

STEPS = "".join(
    f"step:{at} - actor/pg_loss:0.{at} - critic/score/mean:0.5\n" for at in range(1, 6)
)


@pytest.fixture
def doctor(asked):
    """Asks for its exit code and its findings."""

    def ask(*words):
        said = asked("doctor", "--json", *words)
        return said.code, json.loads(said.out)

    return ask


@pytest.mark.parametrize(
    ("name", "text", "format", "expected"),
    [
        ("train.log", f"hello\nworld\n{STEPS}", "console", "line 3: `step:1 - actor"),
        ("train.log", "x" * 80 + "\n" * 200_000 + STEPS, "console", "line 200,001: `step:1"),
        ("train.log", "loading\n 3%|#  | 1/40 [00:01<00:39]\n", "console", "a progress bar, and"),
        ("a.log", "nothing of the kind\n", "console", "you named it: its beginning fits no"),
        ("a.jsonl", '{"step": 1, "data": {"loss": 1.0}}\n', "verl file logger", "line 1: `{"),
        ("m.csv", "step,loss\n1,0.5\n", "metrics CSV", "line"),
        ("events.out.tfevents.17.h.1.0", "", "tensorboard events", "its name: events.out"),
        ("config.yaml", "a: 1\n", "settings", "its name"),
    ],
    ids=["step", "deep", "bar", "named", "json", "csv", "events", "settings"],
)  # fmt: skip
def test_the_line_that_decided_is_named(tmp_path, name, text, format, expected):
    path = write_file(tmp_path / name, text)
    assert expected in format_evidence(path, format)


def test_a_deciding_line_shows_no_secret(tmp_path):
    path = tmp_path / "train.log"
    line = "step:1 - api_key=abcdefgh12345 - actor/pg_loss:0.5 - critic/score/mean:0.5"
    path.write_text(f"{line}\n")
    assert "abcdefgh12345" not in format_evidence(path, "console")


def test_a_run_without_a_fault_is_fine(tmp_path, doctor, asked):
    (tmp_path / "train.log").write_text(STEPS)
    code, found = doctor(tmp_path)
    assert code == 0
    assert found["wrong"] == []
    sources = found["runs"][0]["sources"]
    (source,) = [one for one in sources if one["format"] == "verl console"]
    assert (source["records"], source["unreadable"], source["problem"]) == (5, 0, None)
    assert source["bytes_read"] == source["size"] == len(STEPS)
    said = asked("doctor", tmp_path).out
    assert "nothing stands in the way of reading" in said
    assert "verl console, by line 1: `step:1" in said


def test_what_is_wrong_stands_first(tmp_path, doctor, asked):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"step": 1, "data": {"loss": 1.0}}\n{"step": 2, "da\n{"step": 3, "data": {}}\n'
    )
    (tmp_path / "b.jsonl").write_text("no log\n")
    code, found = doctor(path, tmp_path / "none")
    assert code == 1
    assert found["not_found"] == [f"{tmp_path / 'none'}: no such file or directory"]
    unreadable = "a.jsonl: 1 unreadable line, the last is line 2: "
    assert any(unreadable in one for one in found["wrong"])
    assert asked("doctor", path).out.splitlines()[2] == "what is wrong"


def test_what_is_passed_over_is_said_and_is_no_fault(tmp_path, doctor):
    other = write_file(tmp_path / "other.jsonl", "no log\n")
    assert doctor(tmp_path)[0] == 3, "nothing readable has a code of its own"
    (tmp_path / "train.log").write_text(STEPS)
    code, found = doctor(tmp_path)
    assert [one["path"] for one in found["passed_over"]] == [str(other)]
    assert code == 0


def test_changes_and_faults_of_the_configuration_are_named(tmp_path, doctor):
    path = tmp_path / "config.toml"
    path.write_text("refresh = 2.0\n[targets]\nreward = 0.5\n")
    code, found = doctor("--config", path)
    changes = {"refresh": 2.0, "targets": {"reward": 0.5}}
    assert (code, found["config"]["changes"], found["runs"]) == (0, changes, [])
    path.write_text("refresh = 0.001\n")
    code, found = doctor("--config", path)
    assert code == 1
    assert "`refresh` must be" in found["config"]["problem"]


@pytest.mark.parametrize(
    ("variables", "colours", "characters"),
    [
        ({"TERM": "xterm-256color", "LANG": "C.UTF-8"}, "256", "Unicode, braille"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "16 million", "Unicode, braille"),
        ({"TERM": "linux"}, "16", "ASCII"),
        ({"TERM": "xterm", "LC_ALL": "C"}, "16", "ASCII"),
        ({"TERM": "xterm", "PYTHONIOENCODING": "ascii:replace"}, "16", "ASCII"),
        ({"TERM": "xterm", "PYTHONIOENCODING": "utf-8"}, "16", "Unicode, braille"),
        ({"TERM": "xterm", "PYTHONIOENCODING": "UTF_8"}, "16", "Unicode, braille"),
        ({"TERM": "dumb"}, "none", "Unicode, braille"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "none", "Unicode, braille"),
    ],
)
def test_the_terminal_is_described(variables, colours, characters):
    found = terminal(Config(), variables)
    assert (found["colours"], found["characters"]) == (colours, characters)


def test_notices_are_tried(tmp_path):
    assert change_notices(tmp_path)["problem"] is None
    assert "looked at once a second" in change_notices(tmp_path / "none")["problem"]
