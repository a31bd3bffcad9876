"""What commands say while they are at work: how much has been read, on a terminal only, and gone
afterwards.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from verl_tui.commands.output import reading_progress

if TYPE_CHECKING:
    import pytest


class Terminal(io.StringIO):
    """Standard error, as a terminal or as a file."""

    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self.tty = tty

    def isatty(self) -> bool:
        return self.tty


def said(monkeypatch: pytest.MonkeyPatch, *, tty: bool, seconds: float) -> str:
    """Return what is written while ten portions are read that take so many seconds each."""
    terminal, now = Terminal(tty=tty), 0.0
    monkeypatch.setattr(sys, "stderr", terminal)
    with reading_progress(clock=lambda: now) as show:
        for done in range(1, 11):
            now += seconds
            show(done * 1_000_000, 10_000_000)
    return terminal.getvalue()


def test_a_long_reading_says_how_far_it_is_and_takes_its_line_away(monkeypatch):
    lines = said(monkeypatch, tty=True, seconds=0.2).split("\r\x1b[K")
    assert lines[0] == ""
    assert lines[1] == "verl-tui: reading, 20% of 10 MB; ctrl+c leaves"
    assert lines[-2].startswith("verl-tui: reading, 100%")
    assert lines[-1] == ""


def test_nothing_goes_into_a_file(monkeypatch):
    assert said(monkeypatch, tty=False, seconds=1.0) == ""
