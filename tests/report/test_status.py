"""`verl-tui report --status`: a page that a cron line replaces, in the words of `check`."""

from __future__ import annotations

import os
import re
from datetime import datetime

import pytest
from command_line import write_log
from jsonl import write_jsonl
from test_report_command import write

from verl_tui.check.data import report
from verl_tui.cli import main
from verl_tui.config import Config
from verl_tui.monitor import load
from verl_tui.records import Writer
from verl_tui.report.status import MARK, status_text

NOW = 1_800_000_000.0
PACE = 60.0


def training(folder, steps, *, total=400, ending=""):
    """Write the console of a run of a step a minute that validates at each 20th, until now."""
    path = folder / "train.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for step in range(1, steps + 1):
        bar = f"Training Progress: {100 * step // total}%|# | {step}/{total} [{step}:00<1:00, 60.00s/it]"
        value = f" - val-core/gsm8k/acc/mean@1:{0.3 + 0.001 * step}"
        lines.append(
            f"{bar}\nstep:{step} - critic/score/mean:{0.2 + 0.001 * step} - actor/ppo_kl:0.01"
            f" - actor/entropy:{0.5 - 0.0001 * step} - response_length/mean:300.0"
            f" - timing_s/step:{PACE}{value * (step % 20 == 0)}\n"
        )
    path.write_text("".join(lines) + ending)
    os.utime(path, (NOW, NOW))
    return path


def seen(*paths, later=5.0, held=False):
    """Return what was read some seconds after the newest record, and the page on it."""
    monitor = load([str(path) for path in paths], Config(), NOW + later)
    for run in monitor.runs.values() if held else ():
        for source in run.sources.values():
            source.status = source.status._replace(writer=Writer(7, "python"))
        run.revision += 1
    monitor.judge(NOW + later)
    return monitor, status_text(monitor, NOW + later, "0")


def told(page, what):
    """Return what a line of a page says."""
    (line,) = re.findall(rf"^- \*\*{what}\*\*: (.*)$", page, re.MULTILINE)
    return str(line)


def when(page, what):
    """Return the moments that a line names."""
    found = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d [+-]\d{4}", told(page, what))
    return [datetime.strptime(one, "%Y-%m-%d %H:%M %z").timestamp() for one in found]


def test_a_block_says_what_check_says(tmp_path):
    monitor, page = seen(write_log(tmp_path, *[0.01] * 25, *[0.3] * 8))
    (found,) = report(monitor, NOW)["runs"]
    assert page.startswith(f"{MARK}\n# Status\n\nWritten 20")
    assert told(page, "health") == f"critical: {found['why']}"
    assert told(page, "to do") == found["next"]
    assert re.match("33, stopped.; ", told(page, "step"))
    assert "policy KL 0.3 nats/token" in told(page, "stability")
    assert re.search(r"\d+ rules checked, .*not applicable", told(page, "rests on"))
    assert "not logged: entropy, response length" in told(page, "rests on")


def test_the_next_check_is_when_there_is_something_new(tmp_path):
    _, page = seen(training(tmp_path, 130), held=True)
    assert told(page, "step").startswith("130 of 400 (32%), running; last record")
    assert "step 140, the next validation" in told(page, "next check")
    due, stalls = when(page, "next check")
    assert due == pytest.approx(NOW + 10 * PACE, abs=60)
    assert stalls == pytest.approx(NOW + 5 * PACE, abs=60)
    (ends,) = when(page, "performance")
    assert ends == pytest.approx(NOW + 270 * PACE, abs=120)
    assert "60 s a step" in told(page, "performance")


@pytest.mark.parametrize(
    ("steps", "ending", "later", "said"),
    [
        (9, "", 5.0, "10 steps on, no validation is known to come (a heuristic)"),
        (400, "Final validation metrics: {}\n", 5.0, "none, it has finished"),
        (50, "", 2000.0, "now: no step comes"),
        (
            50,
            'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: bad\n',
            500.0,
            "after it was started again",
        ),
    ],
)
def test_when_to_look_again(tmp_path, steps, ending, later, said):
    held = "Trace" not in ending
    _, page = seen(training(tmp_path, steps, ending=ending), later=later, held=held)
    assert said in told(page, "next check")


@pytest.mark.parametrize("later", [65.0, 90.0])
def test_the_same_evidence_gives_the_same_bytes(tmp_path, later):
    paths = training(tmp_path / "a", 130), write_log(tmp_path, *[0.3] * 30)
    pages = [
        re.sub(r"^Written .*$", "", seen(*paths, later=at, held=True)[1], flags=re.M)
        for at in (5.0, later)
    ]
    assert pages[0] == pages[1]


def test_the_worst_is_first_and_text_from_logs_is_text(tmp_path):
    odd = "sk-proj-abcdefghij0123456789abcdefghij <img> `x`"
    paths = [write_log(tmp_path, *[kl] * 30, name=name) for name, kl in (("b", 0.02), (odd, 0.3))]  # fmt: skip
    _, page = seen(*paths)
    assert "2 runs: 1 critical, " in page
    names = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert names[1] == "b"
    assert "0123456789" not in page
    assert r"\<img\> \`x\`" in names[0]


def cron(run, *words):
    return main(["report", str(run), "--status", *words])


def test_a_cron_line_replaces_its_own_page_and_nothing_else(tmp_path, capsys):
    run, page = write(tmp_path / "run_7"), tmp_path / "STATUS.md"
    assert cron(run, "-o", str(page)) == 0
    page.write_text(page.read_text() + "left over\n")
    assert cron(run, "-o", str(page)) == 0
    assert "left over" not in page.read_text()
    assert cron(run) == 0
    assert capsys.readouterr().out.startswith(MARK)
    mine, link = tmp_path / "README.md", tmp_path / "link.md"
    mine.write_text("mine")
    link.symlink_to(page)
    for path in (mine, link):
        assert cron(run, "-o", str(path)) == 73
        assert "exists: --force replaces it" in capsys.readouterr().err
    assert mine.read_text() == "mine"
    assert cron(run, "-o", str(mine), "--force") == 0
    assert mine.read_text().startswith(MARK)
    assert cron(run, "--format", "html") == 64


def test_where_nothing_can_be_read_the_page_says_so(tmp_path, capsys):
    run, page = write(tmp_path / "run_7"), tmp_path / "STATUS.md"
    assert cron(run, "-o", str(page)) == 0
    gone = tmp_path / "gone"
    assert cron(gone, "-o", str(page)) == 3
    assert "run_7" not in page.read_text()
    assert f"{gone}: no such file or directory" in page.read_text()
    assert "no such file" in capsys.readouterr().err
    early = tmp_path / "early.log"
    error = "Traceback (most recent call last):\n(main_task pid=7) ValueError: x\n"
    early.write_text(f"Training Progress:   0%| | 0/30\n(main_task pid=7) {error}")
    assert cron(early, "-o", str(page)) == 0
    assert told(page.read_text(), "step") == "waiting for the first step"


def test_the_figures_are_those_of_the_log(tmp_path):
    rows = [{"step": step, "data": {"loss": 1.0 / step}} for step in range(1, 30)]
    _, page = seen(write_jsonl(tmp_path / "run.jsonl", rows))
    assert told(page, "progress") == "loss 0.03448"
    assert told(page, "rests on").endswith("; not checked: loss")
