"""`verl-tui` and `verl-tui demo`: what the app is started with, and where it cannot be."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from command_line import complaint, python

from verl_tui.cli import main
from verl_tui.config import Config
from verl_tui.demo.grpo import Simulation

if TYPE_CHECKING:
    from collections.abc import Sequence


Watch = list[tuple[list[str], Config, dict[str, Any]]]


@pytest.fixture
def watched(monkeypatch):
    """Record what the app would be started with, on what looks like a terminal."""
    calls: Watch = []

    def watch(specs: Sequence[str], config: Config, **how: Any) -> int:
        calls.append((list(specs), config, how))
        return 0

    monkeypatch.setattr("verl_tui.tui.watch", watch)
    for name in ("watch", "replay", "demo"):
        need = f"verl_tui.commands.{name}.need_terminal"
        monkeypatch.setattr(need, lambda paths=(): None)
    return calls


def test_watch_hands_on_what_was_asked(log, watched, tmp_path):
    path = str(log(0.02))
    assert main(["--ascii", path, "--no-mouse"]) == 0
    assert main([path, "--snapshot", str(tmp_path / "a.svg"), "--size", "80x24"]) == 0
    (specs, config, how), (_, plain, drawn) = watched
    assert specs == [path]
    assert (config.ascii, config.mouse) == (True, False)
    assert how == {"snapshot": None, "size": (120, 40), "notifier": None}
    assert (plain.ascii, plain.mouse) == (None, True)
    assert drawn == {"snapshot": tmp_path / "a.svg", "size": (80, 24), "notifier": None}


def test_watch_warns_of_paths_that_lead_nowhere(log, watched, capsys):
    assert main([str(log(0.02)), "/nonexistent"]) == 0
    assert complaint(capsys) == "/nonexistent: no such file or directory"
    assert len(watched) == 1


def test_watch_says_what_is_passed_over_while_there_is_no_run(tmp_path, watched, asked):
    (tmp_path / "train.log.gz").write_bytes(
        gzip.compress(b"step:1 - actor/entropy:0.5\n")
    )
    yet, passed = asked(tmp_path, code=0).err.splitlines()
    assert yet.startswith(f"verl-tui: {tmp_path}: no log in this directory yet")
    assert passed.startswith(f"verl-tui: {tmp_path}/train.log.gz: compressed: unpack")


def test_watch_of_nothing_exits_3(watched, capsys):
    assert main(["/nonexistent"]) == 3
    assert complaint(capsys) == "/nonexistent: no such file or directory"
    assert watched == []


def test_without_a_terminal_nothing_is_drawn(log):
    path = str(log(0.02))
    code = (
        "import sys; from verl_tui.cli import main; code = main(sys.argv[1:]);"
        "sys.exit('textual was imported' if 'textual' in sys.modules else code)"
    )
    for word in (path, "demo"):
        done = python("-c", code, word)
        assert done.returncode == 3
        assert done.stderr.startswith("verl-tui: this is not a terminal")
        assert "verl-tui check PATH" in done.stderr
        assert "--snapshot" in done.stderr


def test_interrupting_exits_130(log, watched, monkeypatch):
    def interrupted(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("verl_tui.tui.watch", interrupted)
    assert main([str(log(0.02))]) == 130


@pytest.fixture
def brief(monkeypatch):
    """Have a demo begin with few steps: two hundred take longer than all else about it."""
    prepare = Simulation.prepare
    monkeypatch.setattr(Simulation, "prepare", lambda self: prepare(self, 5))


def test_the_demo_is_watched_while_it_is_written_and_then_goes(watched, brief):
    assert main(["demo", "--pace", "0.001"]) == 0
    ((specs, _, _),) = watched
    assert len(specs) == 1
    assert specs[0].endswith("/run_*")
    assert not os.path.exists(os.path.dirname(specs[0]))  # noqa: PTH110, PTH120 - the pattern is no path


def test_a_demo_in_a_directory_of_ones_own_stays(watched, brief, tmp_path, capsys):
    home = tmp_path / "demo[1]"
    assert main(["demo", "--dir", str(home)]) == 0
    assert capsys.readouterr().out == f"the simulated runs are in {home}\n"
    assert len(list(home.glob("run_*"))) == 2
    # The pattern finds the runs although the directory's name looks like a pattern itself.
    assert main(["check", watched[0][0][0], "--json"]) in (0, 1, 2)
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2
    assert main(["demo", "--dir", str(home)]) == 73
    assert "already holds run_" in capsys.readouterr().err


def test_a_headless_demo_writes_until_it_is_over(brief, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "verl_tui.demo.grpo.Simulation.run",
        lambda self, stop, pace_s: self.advance(),
    )
    monkeypatch.setattr("signal.signal", lambda *_: None)
    assert main(["demo", "--headless", "--dir", str(tmp_path / "demo")]) == 0
    assert "verl-tui " in capsys.readouterr().out
