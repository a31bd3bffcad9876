"""The command `replay`: what it starts the app with, and one clear sentence where there is nothing
to play.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from jsonl import write_jsonl

from verl_tui.cli import main

if TYPE_CHECKING:
    from verl_tui.replay import Playback


@pytest.fixture
def log(tmp_path):
    rows = []
    for step in range(1, 31):
        stamp = {"step": step, "timestamp": 1.7e9 + step}
        rows.append({"scope": "rollout", **stamp, "reward_mean": 2.5})
    return str(write_jsonl(tmp_path / "run_7" / "verl_logs.jsonl", rows))


@pytest.fixture
def playbacks(monkeypatch):
    """Record what the app would be started with, on what looks like a terminal."""
    started: list[Playback] = []
    monkeypatch.setattr(
        "verl_tui.tui.replay", lambda playback, config: started.append(playback) or 0
    )
    for name in ("watch", "replay", "demo"):
        need = f"verl_tui.commands.{name}.need_terminal"
        monkeypatch.setattr(need, lambda paths=(): None)
    return started


def test_speed_and_place_are_as_asked(log, playbacks):
    words = "--speed 2.5 --from 10 --until 20 --paused"
    assert main(["replay", log, *words.split()]) == 0
    assert main(["replay", log]) == 0
    asked, plain = playbacks
    assert (asked.speed, asked.paused) == (2.5, True)
    assert (asked.now(), asked.until) == (1.7e9 + 10, 1.7e9 + 20)
    assert (plain.speed, plain.until, plain.paused) == (1.0, None, False)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-"], 64, "-: this command reads no standard input"),
        ([], 64, "name a log"),
        (["LOG", "--from", "31"], 64, "no run comes to step 31: the last is 30"),
        (["LOG", "--speed", "0"], 64, "0 is not a number above 0"),
        (["LOG", "--speed", "inf"], 64, "inf is not a number above 0"),
        (["LOG", "--until", "-1"], 64, "-1 is not a step"),
        (["LOG", "--from", "x"], 64, "x is not a step"),
        (["NOTHING"], 3, "nothing to replay: nothing readable"),
        (["EMPTY"], 3, "nothing to replay: no step in"),
    ],
)
def test_what_cannot_be_played_is_refused_with_a_sentence(
    tmp_path, log, playbacks, capsys, words, code, said
):
    empty = tmp_path / "train.log"
    empty.write_text("Training Progress: starts\n", encoding="utf-8")
    paths = {"LOG": log, "NOTHING": str(tmp_path / "nowhere"), "EMPTY": str(empty)}
    assert main(["replay", *(paths.get(word, word) for word in words)]) == code
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not playbacks
