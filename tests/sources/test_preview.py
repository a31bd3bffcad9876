"""A preview of a run with a long log says nothing that the whole log does not say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from log_reading import NOW, Watch, values

from verl_tui.config import Config
from verl_tui.monitor import Monitor, load
from verl_tui.sources import ends
from verl_tui.sources.discovery.found import FoundFile
from verl_tui.sources.formats import filelogger
from verl_tui.sources.formats.console import reader as console

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from verl_tui.records import Preview

KEY = "critic/score/mean"
LONG = 2**20
"""Bytes from which on a log counts as long here, so that writing one takes no time."""
_WIDE = 6000
"""Bytes of a step, about those of a hundred metrics."""


@pytest.fixture(autouse=True)
def _(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "LONG", LONG)


def _steps() -> Sequence[int]:
    """Return the steps of a log that went back once, in the middle."""
    count = 2 * LONG // _WIDE
    return [*range(1, count // 2), *range(count // 4, count)]


def _file_logger(path: Path) -> Path:
    with path.open("w") as file:
        for place, step in enumerate(_steps()):
            values = {"critic/score/mean": step + place / 2**20, "note": "x" * _WIDE}
            file.write(json.dumps({"step": step, "data": values}) + "\n")
    return path


def _console(path: Path) -> Path:
    with path.open("w") as file:
        for place, step in enumerate(_steps()):
            file.write("a printed sample " * (_WIDE // 17) + "\n")
            file.write(f"step:{step} - critic/score/mean:{step + place / 2**20}\n")
    return path


LOGS = [
    pytest.param(_file_logger, filelogger, "run.jsonl", id="file logger"),
    pytest.param(_console, console, "run.log", id="console"),
]


def previewed(*files: FoundFile, run: str = "run") -> Iterator[Preview]:
    return ends.previews({run: files})


@pytest.mark.parametrize(("write", "format", "name"), LOGS)
def test_a_preview_has_the_end_until_all_is_read(write, format, name, tmp_path):
    path = write(tmp_path / name)
    watch, again = Watch(path), Watch(path)
    monitor = watch.monitor
    monitor.apply(watch.feed.scan(), NOW)
    (end,) = previewed(FoundFile(path, format), run=watch.feed.names[0])
    monitor.apply(end, NOW)
    (shown,) = watch.runs.values()
    newest = values(shown, KEY)
    assert shown.preview
    assert shown.step == _steps()[-1]
    assert min(newest) > _steps()[-1] // 2
    assert monitor.verdicts[shown.name].findings == ()
    assert monitor.loaded() < 0.9
    watch.look(search=False, finish=True)
    again.look(finish=True)
    (run,), (plain,) = watch.runs.values(), again.runs.values()
    assert not run.preview
    assert monitor.loaded() > 0.98
    assert newest.items() <= values(run, KEY).items()
    assert values(run, KEY) == values(plain, KEY)
    restarts = [mark.step for mark in run.restarts]
    assert restarts == [mark.step for mark in plain.restarts] != []


def test_a_preview_finds_what_is_at_the_end_and_says_not_since_when(tmp_path):
    """Of a log whose gradients are broken at its end, and whose reward fell long before."""
    path, count = tmp_path / "run.jsonl", 2 * LONG // _WIDE
    with path.open("w") as file:
        for step in range(1, count):
            values = {
                KEY: 0.5 if step < count // 2 else 0.1,
                "actor/grad_norm": 1.0 if step < count - 5 else float("nan"),
                "note": "x" * _WIDE,
            }
            file.write(json.dumps({"step": step, "data": values}) + "\n")
    monitor = Monitor(Config())
    for end in previewed(FoundFile(path, filelogger)):
        monitor.apply(end, NOW)
    early = monitor.verdicts["run"]
    found = [(one.id, one.since_step) for one in early.findings]
    assert found == [("not-finite", None)]
    assert not early.not_judged, "what a part does not tell is no reason"
    (whole,) = load([str(path)], Config(), NOW).verdicts.values()
    assert {one.id for one in early.findings} < {one.id for one in whole.findings}


def test_a_short_log_and_one_that_only_counts_its_steps_have_no_preview(tmp_path):
    short = tmp_path / "short.jsonl"
    counted = tmp_path / "counted.log"
    short.write_text('{"step": 1, "data": {"critic/score/mean": 1.0}}\n')
    with counted.open("w") as file:
        for _ in range(2 * LONG // _WIDE):
            file.write("{'loss': 0.5, 'reward': 1.0}" + " " * _WIDE + "\n")
    for file in (FoundFile(short, filelogger), FoundFile(counted, console)):
        assert not list(previewed(file))
