"""The log over the full screen: at every size, on hostile text, followed, searched, from a finding
to its line.
"""

from __future__ import annotations

from typing import Any

import pytest
from file_writing import write_file
from inside_textual import count_frames, notices
from watching import (
    Typed,
    check_layout,
    check_shown,
    dashboard,
    lines,
    loaded,
    press,
    quiet,
    text,
    until,
)

from verl_tui.tui.panels.health import HealthPanel
from verl_tui.tui.screens.log import LineScreen, LogRows, LogScreen

TASK = "(TaskRunner pid=12, ip=10.0.0.2) "


def console(count=400, *, end=""):
    """Return a console of some hundred lines with two errors and a warning in it."""
    out = ["(TaskRunner pid=12) Started a local Ray instance"]
    for step in range(1, count // 4 + 1):
        out += [
            f"{TASK}step:{step} - critic/score/mean:{0.5 + step / 1000} - actor/ppo_kl:0.02 - timing_s/step:9.0",
            f"(WorkerDict pid={step}) loading shard {step}",
            f"(WorkerDict pid={step + 1}) loading shard {step + 1} [repeated 7x across cluster]",
            f"Training Progress:  {step}%|# | {step}/{count // 4} [00:01<00:09, 1.0s/it]",
        ]
        if step in (20, 60):
            out += [f"ValueError: the value of {step} is wrong"]
        if step == 40:
            out += ["[2025-01-01 10:00:00,000][root][WARNING] - Token mismatch"]
    return "\n".join(out) + "\n" + end


@pytest.fixture
def log(tmp_path):
    return write_file(tmp_path / "run_a" / "train.log", console())


def displayed(pilot):
    """Return what is said in passing."""
    return " ".join(notices(pilot.app))


async def opened(pilot, *keys):
    await press(pilot, *keys, "l")
    screen = pilot.app.screen
    assert isinstance(screen, LogScreen)
    await until(pilot, lambda: screen.window.lines)
    await quiet(pilot)
    return screen


def rows(pilot):
    """Return the rows of the log, as they are on the screen."""
    region = pilot.app.screen.query_one(LogRows).region
    return [row.rstrip() for row in lines(pilot.app)[region.y : region.bottom]]


def marked(pilot):
    chosen = pilot.app.screen.query_one(LogRows).chosen
    assert chosen is not None
    return rows(pilot)[chosen]


async def test_errors_one_after_the_other(log):
    app = loaded(log.parent)
    async with app.run_test(size=(100, 14)) as pilot:
        await opened(pilot)
        said = []
        for key in ("e", "e", "E", "exclamation_mark", "at"):
            await pilot.press(key)
            await quiet(pilot)
            said.append(marked(pilot)[7:20])
        assert said == [
            "ValueError: t",
            "ValueError: t",
            "ValueError: t",
            "[2025-01-01 1",
            "[2025-01-01 1",
        ]
        assert "following" not in lines(app)[0]
        assert "%" in lines(app)[0]


async def test_search(log, monkeypatch):
    app = loaded(log.parent)
    copied: list[str] = []
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    async with app.run_test(size=(100, 14)) as pilot:
        await opened(pilot)
        await pilot.press("slash", *"SHARD 50", "enter")
        await quiet(pilot)
        assert "no /SHARD 50/ in train.log" in displayed(pilot)
        await pilot.press("slash")
        await press(pilot, *["backspace"] * 8, Typed("shard 50$"), "enter")
        await quiet(pilot)
        assert marked(pilot).endswith("loading shard 50"), "hits are not folded away"
        first = rows(pilot)
        await pilot.press("n")
        await quiet(pilot)
        assert marked(pilot).endswith("loading shard 50")
        await pilot.press("N")
        await quiet(pilot)
        assert marked(pilot) in first
        await press(pilot, "slash", Typed("(a+"), "enter")
        assert "missing )" in displayed(pilot)
        await pilot.press("escape", "escape")
        assert isinstance(app.screen, LogScreen)
        assert app.screen.window.query is None
        # The line that is chosen is copied.
        await press(pilot, "slash", Typed("step:99 "), "enter")
        await quiet(pilot)
        await pilot.press("y")
        assert copied[0].startswith(f"{TASK}step:99 - critic"), "as it was printed"


async def test_follows_and_writes_only_what_is_new(log, monkeypatch):
    app = loaded(log.parent)
    async with app.run_test(size=(100, 20)) as pilot:
        screen = await opened(pilot)
        with log.open("a") as file:
            file.write("the first to overflow\n")
        screen.check()
        await quiet(pilot)
        assert "the first to overflow" in text(app)
        frames = count_frames(monkeypatch)
        for _ in range(3):
            screen.check()
            await quiet(pilot)
            screen.show(screen.window.view)
        assert frames["frames"] == 0, "nothing new, nothing sent"
        refreshed: list[Any] = []
        refresh = LogRows.refresh
        monkeypatch.setattr(
            LogRows,
            "refresh",
            lambda rows, *regions, **more: (
                refreshed.extend(regions),
                refresh(rows, *regions, **more),
            )[1],
        )
        before = rows(pilot)
        with log.open("a") as file:
            file.write("a new line\n")
        screen.check()
        await quiet(pilot)
        after = rows(pilot)
        changed = [
            at
            for at, (old, new) in enumerate(zip(before, after, strict=True))
            if old != new
        ]
        assert [after[at].split(maxsplit=1)[1] for at in changed] == ["a new line"]
        assert [region.y for region in refreshed] == changed


async def test_stays_where_one_reads(log):
    app = loaded(log.parent)
    async with app.run_test(size=(100, 20)) as pilot:
        screen = await opened(pilot)
        await pilot.press("pageup")
        await quiet(pilot)
        before = rows(pilot)
        with log.open("a") as file:
            file.write("more\n" * 100)
        screen.check()
        await quiet(pilot)
        assert rows(pilot) == before
        await pilot.press("f")
        await quiet(pilot)
        assert rows(pilot)[-1].endswith("×100 more")
        # A log that is truncated begins anew.
        log.write_text("begun anew\n")
        screen.check()
        await quiet(pilot)
        assert rows(pilot)[0].endswith("begun anew")
        assert not any(rows(pilot)[1:])
        # One that is gone says so.
        log.unlink()
        screen.check()
        await quiet(pilot)
        assert "train.log: no such file or directory" in text(app)
        for key in ("e", "n", "escape", "y", "j", "G", "w", "u", "f", "tab"):
            await pilot.press(key)
        check_layout(app)


CRASH = "Error executing job with overrides: ['x=1']\nTraceback (most recent call last):\nValueError: too bad\n"


@pytest.mark.parametrize("keys", [(), ("e",)])
async def test_from_a_crash_to_its_traceback(log, keys):
    log.write_text(
        console(800, end=CRASH + "clean up\n" * 300 + "\n".join("abcdefgh") * 60 + "\n")
    )
    app = loaded(log.parent)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, *keys)
        (finding,) = dashboard(app).query_one(HealthPanel).found.findings
        assert finding.id == "crash"
        await opened(pilot)
        line = int(finding.evidence[0].split(":")[1])
        assert marked(pilot).split()[:3] == ["✖", str(line - 1), "Traceback"]
        assert f"{line} ValueError: too bad" in text(app)


async def test_other_files_and_other_runs(log, tmp_path):
    (log.parent / "metrics.jsonl").write_text(
        '{"step": 1, "data": {"critic/score/mean": 0.5}}\n'
    )
    other = write_file(tmp_path / "run_b" / "train.log", console(40))
    app = loaded(log.parent, other.parent)
    async with app.run_test(size=(120, 20)) as pilot:
        screen = await opened(pilot)
        assert "train.log 1/2" in lines(app)[0]
        await pilot.press("tab")
        await quiet(pilot)
        assert "metrics.jsonl 2/2" in lines(app)[0]
        assert rows(pilot)[0].split() == ["1", "step", "1", "reward", "0.5"]
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "run_b" in lines(app)[0])
        await until(pilot, lambda: any("step:10" in row for row in rows(pilot)))
        assert screen is app.screen


JSONL = (
    '{"step": 1, "data": {"critic/score/mean": 0.5, "actor/ppo_kl": 0.0213, "x": null}}\n'
    "{broken\n"
    '{"step": 2, "data": {"critic/score/mean": 0.75, "note": "\\u001b[2J\\u202e[/red]"}}\n'
)


async def test_records_are_reported_and_a_line_is_shown_in_full(log):
    path = log.parent / "metrics.jsonl"
    log.unlink()
    path.write_text(JSONL)
    app = loaded(log.parent)
    async with app.run_test(size=(100, 20)) as pilot:
        await opened(pilot)
        assert [" ".join(row.split()) for row in rows(pilot)[:3]] == [
            "1 step 1 reward 0.5 policy KL 0.0213 x nan",
            "2 {broken",
            '3 step 2 reward 0.75 note "�[/red]"',
        ]
        assert "1 unreadable" in lines(app)[0]
        await pilot.press("u")
        assert '{"step": 1, "data"' in rows(pilot)[0], "unfolded as it was printed"
        await pilot.press("u", "slash", *"ppo_kl", "enter")
        await quiet(pilot)
        assert '"actor/ppo_kl": 0.0213' in marked(pilot), (
            "where a hit is, the line as it was printed"
        )
        await pilot.press("enter")
        assert isinstance(app.screen, LineScreen)
        check_shown(app, "line 1 of metrics.jsonl", '    "critic/score/mean": 0.5,')
        check_layout(app)
        await pilot.press("escape")
        assert isinstance(app.screen, LogScreen)
