"""The window on the logs of a run, and the lines above and below it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from run_views import NOW, make_view

from verl_tui.on_demand import worker
from verl_tui.records import Batch, SourceStatus
from verl_tui.rendering.log import window as log_window
from verl_tui.rendering.log.window import LogWindow
from verl_tui.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from verl_tui.rendering.text.piece import Pieces


class Opened:
    """A window on some files, and what it shows once they have been read."""

    def __init__(self, *paths: Path, run: bool = True) -> None:
        shown = Run("grpo")
        for path in paths:
            source = SourceStatus(str(path), "verl console", size=path.stat().st_size)
            shown.apply(Batch("grpo", source), NOW)
        self._read = threading.Event()
        self.said: list[str] = []
        view = make_view(*([shown] if run else []))
        self.window = LogWindow(
            view, None, on_read=self._read.set, say=self.said.append
        )
        self.window.fold = False

    def words(self, width: int = 80, height: int = 5) -> list[str]:
        """Return the rows in sight as text."""
        for _ in range(200):
            self._read.clear()
            rows = self.window.rows(width, height)
            if rows is not None and self.window.reader.idle:
                return ["".join(text for text, _ in row).rstrip() for row in rows]
            self._read.wait(0.05)
        raise AssertionError("never read")

    def place(self, width: int = 80) -> str:
        """Return the line above the log."""
        return "|".join(
            text_of(pieces) for pieces in log_window.place_line(self.window, width)
        )


def text_of(pieces: Pieces) -> str:
    return "".join(text for text, _ in pieces)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Opened]]:
    monkeypatch.setattr(worker, "PAUSE", 0.0)
    made: list[Opened] = []

    def open_window(*paths: Path, run: bool = True) -> Opened:
        made.append(Opened(*paths, run=run))
        return made[-1]

    yield open_window
    for one in made:
        one.window.reader.stop()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text("".join(f"line number {at}\n" for at in range(1, 1201)))
    return path


def test_files_of_a_run_in_turn(opened: Callable[..., Opened], log: Path) -> None:
    other = log.with_name("other.log")
    other.write_text("another\n")
    shown = opened(log, other)
    assert shown.words()[-1].endswith("1200")
    assert "train.log 1/2" in shown.place()
    shown.window.next_source(1)
    assert shown.words() == ["     1 another"]
    assert "other.log 2/2" in shown.place()
