"""A program that knows only the events of `watch --events` and the rules of `help agents` keeps watch for
nights that were recorded or simulated: it stops no run that is well, and answers each failure.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from nights.playing import played
from nights.programme import NIGHTS
from nights.supervisor import SECONDS, STEPS, STOPPING

from verl_tui.commands.help import agents_page

if TYPE_CHECKING:
    from nights.programme import Night

pytestmark = pytest.mark.long
ROOM = Path(__file__).parent
WITHIN = 300.0
"""Seconds after its first evidence in which a failure is to be answered."""
LONG_STEPS = 240.0
LATER = {"hang of long steps": 5 * LONG_STEPS}
"""Silence is a hang after five usual steps, which are longer than that here."""
ALWAYS = {
    *("hang", "KL explodes", "verl091_healthy", "verl061_raise"),
}
"""Nights of each kind, with all answers, that are played for every change."""
LONGEST = 4000
"""Bytes of an event: 2,000 tokens at two bytes a token."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ALWAYS else pytest.mark.thorough)
        for name in NIGHTS
    ],
)
def test_a_night(name, tmp_path):
    night: Night = NIGHTS[name]
    if isinstance(night.play, Path) and not night.play.is_dir():
        pytest.skip(f"no {night.play}: set VERL_TUI_LOGS")
    log = played(night.play, tmp_path / "run", night.fault)
    assert all(len(line.encode()) <= LONGEST for line in log.lines)
    assert json.loads(log.lines[0])["event"] == "start"
    for at, deed in log.stops:
        assert night.answer == "stop", deed
        assert log.began is not None, deed
        assert at >= log.began, deed
    if night.wrong:
        for answer in (log.answer(night.named), log.answer(night.named, night.answer)):
            assert answer is not None, log.deeds
            # stopped before an expert would have seen it
            shown = answer[0] if log.shown is None else log.shown
            assert answer[0] - shown <= LATER.get(name, WITHIN)


def test_there_are_twenty_nights_of_all_kinds_and_each_is_in_the_table():
    page = (ROOM / "README.md").read_text(encoding="utf-8")
    table = page.partition("## The table")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", table, re.MULTILINE)
    assert {name: night.wrong or "–" for name, night in NIGHTS.items()} == dict(
        rows[1:]
    )
    kinds = [night.answer for night in NIGHTS.values()]
    assert len(NIGHTS) >= 20
    assert min(map(kinds.count, ("", "stop", "resume", "tell"))) >= 3
    assert {NIGHTS[name].answer for name in ALWAYS} == {*kinds}


def test_the_program_follows_the_page_for_agents():
    stop, _, rest = agents_page().partition("Stop a run only if")[2].partition("\n2. ")
    assert STOPPING.keys() == set(re.findall(r"`([a-z]+-[a-z-]+)`", stop))
    assert (STEPS, SECONDS) == (2, 120.0)
    assert rest.startswith("Two steps later")
    assert "after two minutes" in rest


WRITER = """
    import json, sys, time
    with open(sys.argv[1], "a") as log:
        for step in range(1, 1_000_000):
            kl = 0.03 if step <= 20 else 0.3
            log.write(json.dumps({"scope": "rollout", "step": step, "reward_mean": 2.5}) + "\\n")
            log.write(json.dumps({"scope": "ppo", "step": step, "kl_div": kl}) + "\\n")
            log.flush()
            time.sleep(0.02)
"""


def test_the_programs_themselves_supervise_a_live_run(tmp_path):
    log = tmp_path / "run" / "verl_logs.jsonl"
    log.parent.mkdir()
    command = [sys.executable, "-m", "verl_tui", "watch", "--events", log.parent]
    script = [sys.executable, "-c", textwrap.dedent(WRITER), log]
    with (
        subprocess.Popen(script) as writer,
        subprocess.Popen(command, stdout=subprocess.PIPE) as watch,
        subprocess.Popen(
            [sys.executable, ROOM / "supervisor.py", log.parent],
            stdin=watch.stdout,
            stdout=subprocess.PIPE,
            text=True,
        ) as supervisor,
    ):
        try:
            deeds = map(json.loads, supervisor.stdout or ())
            stop = next(deed for deed in deeds if deed["what"] == "stop")
            assert (stop["run"], stop["why"]) == ("run", "circuit-breaker-kl")
            assert stop["next"].startswith("stop the run and go back")
            watch.terminate()
            assert [deed for deed in deeds if deed["what"] == "stop"] == []
            assert supervisor.wait(60) == 0
        finally:
            for process in (writer, watch, supervisor):
                process.kill()
