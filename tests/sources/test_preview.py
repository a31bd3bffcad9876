"""A preview of a run with a long log says nothing that the whole log does not say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from verl_tui.config import Config
from verl_tui.monitor import Monitor
from verl_tui.sources import ends
from verl_tui.sources.discovery.found import FoundFile
from verl_tui.sources.feed import Feed
from verl_tui.sources.formats import filelogger
from verl_tui.sources.formats.console import reader as console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from verl_tui.records import Preview
    from verl_tui.runs.run import Run
    from verl_tui.sources.formats.format import Format

NOW = 1_700_000_000.0
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
    return ends.previews({run: [(one, 0) for one in files]})


def _read(monitor: Monitor, feed: Feed) -> Run:
    for batch in (*feed.read(), *feed.finish()):
        monitor.apply(batch, NOW)
    (run,) = monitor.runs.values()
    return run


def _points(run: Run, key: str = "critic/score/mean") -> dict[int, float]:
    series = run.series(key)
    assert series is not None
    return dict(zip(series.steps, series.values, strict=True))


@pytest.mark.parametrize(("write", "format", "name"), LOGS)
def test_a_preview_has_the_end_until_all_is_read(
    write: Callable[[Path], Path], format: Format, name: str, tmp_path: Path
) -> None:
    path = write(tmp_path / name)
    feed, again = Feed([str(path)]), Feed([str(path)])
    monitor, other = Monitor(Config()), Monitor(Config())
    monitor.apply(feed.scan(), NOW)
    other.apply(again.scan(), NOW)

    (end,) = previewed(FoundFile(path, format), run=feed.names[0])
    monitor.apply(end, NOW)
    (shown,) = monitor.runs.values()
    newest = _points(shown)
    assert shown.preview
    assert shown.step == _steps()[-1]
    assert min(newest) > _steps()[-1] // 2
    assert monitor.verdicts[shown.name].findings == ()
    assert monitor.loaded() < 0.9

    run, plain = _read(monitor, feed), _read(other, again)
    assert not run.preview
    assert monitor.loaded() > 0.98
    assert newest.items() <= _points(run).items()
    assert _points(run) == _points(plain)
    assert (
        [mark.step for mark in run.restarts]
        == [mark.step for mark in plain.restarts]
        != []
    )


def test_a_short_log_and_one_that_only_counts_its_steps_have_no_preview(
    tmp_path: Path,
) -> None:
    short = tmp_path / "short.jsonl"
    counted = tmp_path / "counted.log"
    short.write_text('{"step": 1, "data": {"critic/score/mean": 1.0}}\n')
    with counted.open("w") as file:
        for _ in range(2 * LONG // _WIDE):
            file.write("{'loss': 0.5, 'reward': 1.0}" + " " * _WIDE + "\n")
    for file in (FoundFile(short, filelogger), FoundFile(counted, console)):
        assert not list(previewed(file))
