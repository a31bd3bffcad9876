"""What lies where a user names a file: each command says so and ends, or does as it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from verl_tui import given_files
from verl_tui.config import load_config
from verl_tui.rendering.session.preferences import StateFile


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run in the current directory, beside a pipe with nobody at its other end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(given_files, "PATIENCE", 0.01)
    Path("run.log").write_text("step:1 - critic/score/mean:0.5\n")
    for name in ("pipe", "pipe.txt", "pipe.prom"):
        os.mkfifo(name)
    Path("circle").symlink_to("circle")
    Path("zeros").symlink_to("/dev/zero")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("check run.log --config pipe", 64, "pipe: nobody writes into it"),
        ("export csv run.log -o pipe", 73, "pipe: nobody reads this pipe"),
        ("run.log --snapshot pipe.txt", 73, "pipe.txt: nobody reads this pipe"),
        ("export prometheus run.log --textfile pipe.prom", 73, "nobody reads this pipe"),
        ("export prometheus run.log --login-file pipe", 64, "pipe: nobody writes into it"),
        ("export prometheus run.log --login-file zeros", 64, "must hold one line user:password"),
        ("export prometheus run.log --tls-cert pipe --tls-key pipe", 64, "pipe: is no file"),
        ("export csv run.log -o circle", 73, "circle: is a link"),
        ("check circle", 3, "circle: too many levels of symbolic links"),
        ("doctor LONG", 3, "file name too long"),
        ("LONG --snapshot a.txt", 3, "file name too long"),
        ("report run.log -o LONG.html", 73, "file name too long"),
        ("export csv run.log -o LONG", 73, "file name too long"),
        ("export prometheus run.log --tls-cert LONG --tls-key x", 64, "no such file"),
        ("bundle run.log --yes -o LONG.zip", 73, "file name too long"),
        ("config --config LONG", 64, "file name too long"),
        ("check run.log --debug-log run.log", 73, "run.log: exists already"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("run")
def test_what_is_said_of_it(command, code, words, asked):
    said = asked(*command.replace("LONG", "n" * 300).split(), code=code)
    assert words in said.err + said.out


@pytest.mark.parametrize(
    "command",
    [
        "run.log --snapshot LINK.txt",
        "run.log --snapshot LINK.svg",
        "export csv run.log -o LINK.csv",
        "export prometheus run.log --textfile LINK.prom",
        "export prometheus run.log --textfile LINK.prom --follow",
        "report run.log -o LINK.md",
        "bundle run.log --yes -o LINK.zip",
        "check run.log --debug-log LINK.log",
    ],
)
@pytest.mark.parametrize("target", ["theirs", "nowhere"])
def test_nothing_is_written_through_a_link(run, command, target, asked):
    (run / "theirs").write_text("theirs")
    named = next(word for word in command.split() if word.startswith("LINK"))
    (run / named).symlink_to(target)
    assert named in asked(*command.split(), code=73).err
    assert (run / named).is_symlink()
    assert (run / "theirs").read_text() == "theirs"
    assert not (run / "nowhere").exists()


def test_a_configuration_comes_through_a_pipe():
    words = [sys.executable, "-c", "print('refresh = 7.0')"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert load_config(Path(f"/dev/fd/{writer.stdout.fileno()}")).refresh == 7.0


def test_no_state_is_kept_in_what_is_no_file(run):
    pipe = run / "pipe"
    file = StateFile(pipe)
    said = file.change(lambda state: state.with_pin("a"))
    assert said == f"not remembered: {pipe}: is no file"
    assert pipe.is_fifo()
