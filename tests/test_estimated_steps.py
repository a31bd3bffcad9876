"""Steps that no log states are said to be estimated, wherever they are shown."""

from __future__ import annotations

import json
import time

import pytest
from file_writing import write_file

from verl_tui.cli import main
from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.rendering.session.snapshot import View
from verl_tui.rendering.status_line import status

DICTS = "".join(
    f"{{'loss': {at / 8}, 'reward': {at / 50}, 'epoch': {at / 100}}}\n"
    for at in range(1, 13)
)
ESTIMATED = "steps are estimated: no source states them"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "plain" / "train.log"
    return write_file(path, DICTS)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("check", ", steps estimated, "),
        ("get state", ", steps estimated, "),
        ("get metrics", ESTIMATED),
        ("get metrics --metric reward", ESTIMATED),
        ("doctor", ", steps estimated"),
        ("export csv", ESTIMATED),
    ],
)
def test_each_command_says_so(command, said, log, capsys):
    main([*command.split(), str(log)])
    shown = capsys.readouterr()
    assert said in shown.out + shown.err


@pytest.mark.parametrize("command", ["get state", "get metrics"])
@pytest.mark.parametrize("stated", [True, False])
def test_programs_are_told(command, stated, log, capsys):
    if stated:
        log.write_text("".join(f"step:{at} - actor/entropy:0.4\n" for at in (1, 2)))
    main([*command.split(), "--json", str(log)])
    assert json.loads(capsys.readouterr().out)["steps_estimated"] is not stated


def test_the_screen_says_so(log):
    now = time.time()
    monitor = load([str(log)], Config(), now)
    (run,) = monitor.runs.values()
    left, _ = status(View(monitor=monitor, run=run, now=now), 160)
    assert "steps estimated" in "".join(words for words, _ in left)
