"""The lines above and below all metrics: what is listed and how, and what the chosen one is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.metrics import describe
from verl_tui.rendering.metrics.listing import MetricOrder
from verl_tui.rendering.text.printable import middle, printable
from verl_tui.rendering.text.wrap import ellipsis, fit
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.rendering.metrics.shown import ListedMetrics
    from verl_tui.rendering.text.piece import Piece


def listed_words(
    shown: ListedMetrics, filter_: str, page: tuple[int, int] | None, width: int
) -> tuple[list[Piece], list[Piece]]:
    """Return what is listed, and how.

    Args:
        shown: The metrics that are listed.
        filter_: What they were filtered by, empty if by nothing.
        page: The page that is shown and how many there are; None where there are no charts.
        width: Cells there are.
    """
    run, ascii_only = shown.view.run, shown.view.ascii
    listed, known = len(shown.keys), len(run.metrics) if run is not None else 0
    name = (
        middle(one_line(run.name), max(8, width // 3), ascii_only=ascii_only) if run else "no run"
    )
    left: list[Piece] = [
        (name, "strong"),
        (f"  {listed} metrics" if listed == known else f"  {listed} of {known}", ""),
    ]
    if filter_:
        left.append((f"  filter: {printable(filter_, ascii_only=ascii_only)}", "accent"))
    right: list[Piece] = []
    if shown.order != MetricOrder():
        right.append(
            (f" by {shown.order.by}{' reversed' if shown.order.reverse else ''}", "accent")
        )
    if page is not None:
        right += [(f" {word}", "accent") for word in shown.look.words(run)]
    if page is not None and listed:
        right.append((f" page {page[0]}/{page[1]}", "dim"))
    return left, right


def metric_words(key: str, width: int, *, ascii_only: bool) -> list[Piece]:
    """Return what a metric is, in one line."""
    metric = describe(key)
    name = middle(key, width - 2, ascii_only=ascii_only)
    told = [metric.label if metric.label != key else "", metric.unit, metric.note]
    words = (" - " if ascii_only else " · ").join(one for one in told if one)
    room = width - 4 - cell_len(name)
    about = fit(printable(words, ascii_only=ascii_only), room, ellipsis(ascii_only=ascii_only))
    return [(name, "strong"), (f"  {about}", "dim")] if room > 0 else [(name, "strong")]
