"""Headings, sentences and times that all parts of the timing screen share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.session.shown_state import shown_state
from verl_tui.rendering.text.printable import wrapped
from verl_tui.runs.views.state import State, is_evaluation
from verl_tui.times import duration

if TYPE_CHECKING:
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

WIDE, NARROW = 72, 34
"""Widths from which on notes and a bar fit, in cells."""


def heading(words: str) -> Pieces:
    """Return a heading as a row."""
    return [(words, "heading")]


def wrapped_rows(text: str, role: str, width: int) -> list[Pieces]:
    """Return a text as rows of at most `width` cells, in one role."""
    return [[(line, role)] for line in wrapped(text, width)]


def no_step(run: Run, view: View) -> str:
    """Say why there is no step."""
    if is_evaluation(run):
        return "An evaluation makes no steps."
    over = shown_state(view, run) in (State.FINISHED, State.CRASHED, State.ENDED)
    return "It ended before its first step." if over else "No step yet."


def short_time(seconds: float) -> str:
    """Return a time in three digits: `0.95 s`, `187 s`, `21.4 min`; a duration beyond 2 hours."""
    if seconds >= 7200:
        return duration(seconds)
    if seconds >= 1000:
        return f"{seconds / 60:.1f} min"
    if seconds >= 100:
        return f"{seconds:.0f} s"
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s"
