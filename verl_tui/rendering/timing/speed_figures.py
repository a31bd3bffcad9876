"""Rows of figures: throughput, and the time spent on generating and waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import printable
from verl_tui.rendering.text.wrap import fit
from verl_tui.rendering.timing.wording import WIDE, heading, short_time
from verl_tui.runs.time.throughput import bubble, waiting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run
    from verl_tui.runs.time.step_timing import Breakdown
    from verl_tui.runs.time.throughput import SpeedFigure


def waits(run: Run, found: Breakdown | None) -> list[SpeedFigure]:
    """Return the figures of generating and waiting."""
    share = bubble(run, found) if found is not None else None
    figures = list(waiting(run, found))
    if share is not None:
        figures.insert(0, share)
    return figures


def speed_rows(
    title: str, figures: Sequence[SpeedFigure], width: int
) -> Iterator[Pieces]:
    """Yield a heading and one row for each figure; nothing without figures."""
    if not figures:
        return
    yield heading(title)
    label = min(max(len(figure.label) for figure in figures), max(8, width - 12))
    value = max(len(_value(figure)) for figure in figures)
    for figure in figures:
        row: Pieces = [
            (fit(printable(figure.label), label).ljust(label + 2), "label"),
            (_value(figure).ljust(value), "value"),
        ]
        if width >= WIDE:
            if figure.label.startswith("MFU") and figure.value == 0:
                note = "0: unknown model or GPU"
            else:
                note = printable(figure.key)
            left = width - cells_of(row) - 2
            row.append((f"  {fit(note, left, '…')}", "dim"))
        yield row


def _value(figure: SpeedFigure) -> str:
    if figure.unit == "share":
        return f"{figure.value:.1%}"
    if figure.unit == "s":
        return short_time(figure.value)
    return f"{compact(figure.value)} {figure.unit}".rstrip()
