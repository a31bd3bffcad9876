"""`verl-tui check` on any path: its exit code, and one sentence where nothing can be read."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from command_line import complaint, run
from file_writing import write_file
from ordinary_rights import ordinary_rights

from verl_tui.cli import main


@pytest.mark.parametrize(("kl", "code"), [(0.02, 0), (0.15, 1), (0.3, 2)])
def test_the_report_for_programs_says_what_the_one_for_people_says(
    log, asked, kl, code
):
    path = str(log(*[kl] * 30))
    (found,) = json.loads(asked("check", path, "--json", code=code).out)["runs"]
    head, why, then, *_ = asked("check", path, code=code).out.splitlines()
    assert head.startswith(f"run: {found['verdict'] or 'no verdict yet'} at step 30")
    assert [why, then] == [f"  why: {found['why']}", f"  next: {found['next']}"]


def test_without_a_verdict_a_strict_check_fails(log, tmp_path, asked):
    table = write_file(tmp_path / "table.csv", "step,foo\n1,2\n2,3\n")
    (found,) = json.loads(asked("check", table, "--json", code=0).out)["runs"]
    assert found["verdict"] is None
    assert found["why"]
    said = asked("check", table, "--strict", code=3)
    assert said.err == "verl-tui: --strict: no verdict on table\n"
    assert said.out.startswith("table: no verdict at step 2")
    paths = [str(table), str(log(*[0.15] * 30))]
    assert [main(["check", *paths]), main(["check", *paths, "--strict"])] == [1, 3]
    assert main(["check", str(table), str(log(*[0.3] * 30)), "--strict"]) == 2


@pytest.mark.parametrize(
    ("content", "said"), [(b"\x7fELF\0\1\2\0" * 50, "binary"), (b"", "empty")]
)
def test_check_of_what_is_no_log(tmp_path, content, said, capsys):
    path = write_file(tmp_path / "a.log", content)
    assert main(["check", str(path)]) == 3
    assert said in complaint(capsys)


def test_check_of_a_log_without_a_readable_line(tmp_path, asked):
    path = write_file(tmp_path / "a.jsonl", "{broken\n{broken\n")
    captured = asked("check", path, code=3)
    assert captured.err == "verl-tui: nothing readable so far in a\n"
    assert f"{path}:1: not JSON" in captured.out


@pytest.mark.parametrize("closed", ["file", "directory", "parent"])
def test_check_without_permission(closed, log, capsys):
    file = log(0.02)
    sealed = file if closed == "file" else file.parent
    path = file.parent if closed == "directory" else file
    rights = sealed.stat().st_mode
    sealed.chmod(0)
    with ordinary_rights():
        assert main(["check", str(path)]) == 3
    sealed.chmod(rights)
    assert complaint(capsys) == f"{path}: permission denied"


def test_piped_text_has_no_escape_sequences_and_any_encoding_will_do(log):
    path = log(*[0.3] * 30, name="训练")
    environment = {
        **os.environ,
        **dict.fromkeys(("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"), "1"),
        "PYTHONIOENCODING": "ascii",
        "PYTHONUTF8": "0",
    }
    done = run("check", str(path), env=environment)
    assert done.returncode == 2
    assert "critical circuit-breaker-kl" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_a_reader_that_leaves_early_changes_nothing(log):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        for argv, code in ((["check", str(log(*[0.3] * 30))], 2), (["guide"], 141)):
            command = [sys.executable, "-m", "verl_tui", *argv]
            done = subprocess.run(
                command, stdout=gone, stderr=subprocess.PIPE, text=True, check=False
            )
            assert (done.returncode, done.stderr) == (code, "")
