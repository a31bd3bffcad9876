"""Lines above and below the metrics: the list with its filter and order, and the chosen metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.metrics import describe
from verl_tui.rendering.metrics.listing import MetricOrder
from verl_tui.rendering.text.printable import middle, printable
from verl_tui.rendering.text.wrap import fit
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.rendering.metrics.groups import Shelf
    from verl_tui.rendering.metrics.shown import ListedMetrics
    from verl_tui.rendering.text.piece import Piece, Pieces


def listed_words(
    shown: ListedMetrics, filter_: str, page: tuple[int, int] | None, width: int
) -> tuple[list[Piece], list[Piece]]:
    """Return the run and filter for the left, order and page for the right.

    Args:
        shown: The listed metrics.
        filter_: Text of the filter, empty without one.
        page: Number of the page and of all pages, None where no charts are shown.
        width: Cells of the line.
    """
    right: list[Piece] = []
    if shown.order != MetricOrder():
        reversed_ = " reversed" if shown.order.reverse else ""
        right.append((f" by {shown.order.by}{reversed_}", "accent"))
    if page is not None:
        right += [(f" {word}", "accent") for word in shown.look.words(shown.view.run)]
        if shown.keys:
            right.append((f" page {page[0]}/{page[1]}", "dim"))
    return _listed(shown, filter_, width), right


def _listed(shown: ListedMetrics, filter_: str, width: int) -> list[Piece]:
    run = shown.view.run
    name = "no run"
    known = 0
    if run is not None:
        name = middle(one_line(run.name), max(8, width // 3))
        known = len(run.metrics)
    listed = len(shown.keys)
    count = f"{listed} metrics" if listed == known else f"{listed} of {known}"
    pieces: list[Piece] = [(name, "strong"), (f"  {count}", "")]
    if filter_:
        pieces.append((f"  filter: {printable(filter_)}", "accent"))
    return pieces


def metric_words(key: str, width: int) -> list[Piece]:
    """Describe a metric in one line."""
    metric = describe(key)
    name = middle(key, width - 2)
    label = metric.label if metric.label != key else ""
    words = " · ".join(filter(None, (label, metric.unit, metric.note)))
    room = width - 4 - cell_len(name)
    about = fit(printable(words), room)
    if room > 0:
        return [(name, "strong"), (f"  {about}", "dim")]
    return [(name, "strong")]


def shelf_words(shelf: Shelf | None, width: int) -> Pieces:
    """Return the heading of a shelf: its group, and which of its metrics these are."""
    if shelf is None:
        return []
    count = len(shelf.group.keys)
    stop = shelf.first + len(shelf.keys)
    places = str(stop)
    if len(shelf.keys) > 1:
        places = f"{shelf.first + 1}–{stop}"
    part = f"{places} of {count}" if len(shelf.keys) < count else str(count)
    name = middle(shelf.group.name, max(4, width - len(part) - 2))
    return [(name, "dim" if shelf.first else "accent"), (f"  {part}", "dim")]
