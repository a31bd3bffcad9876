"""What commands say while they are at work: how much has been read, on a terminal only, and gone
afterwards.
"""

from __future__ import annotations

import io
import sys

import pytest

from verl_tui.commands.output import reading_progress


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


def test_a_short_one_says_nothing(monkeypatch):
    assert said(monkeypatch, tty=True, seconds=0.01) == ""


def test_nothing_goes_into_a_file(monkeypatch):
    assert said(monkeypatch, tty=False, seconds=1.0) == ""


def test_it_is_not_written_more_often_than_can_be_read(monkeypatch):
    assert said(monkeypatch, tty=True, seconds=0.05).count("reading") < 6


def test_an_interrupted_reading_leaves_a_clean_line(monkeypatch):
    terminal = Terminal(tty=True)
    monkeypatch.setattr(sys, "stderr", terminal)
    clock = iter((0.0, 1.0, 1.0)).__next__
    with pytest.raises(KeyboardInterrupt), reading_progress(clock=clock) as show:  # noqa: PT012 - the line is taken away on the way out
        show(1, 2)
        raise KeyboardInterrupt
    assert "50%" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
