"""The list of runs as rows for the room of its panel."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.rendering.charts.sparkline import gauge
from verl_tui.rendering.run_list.run_entries import (
    glyph,
    naming,
    run_entry,
    state_cells,
    state_word,
    steps_text,
    wordless,
)
from verl_tui.rendering.run_list.table_rows import run_table
from verl_tui.rendering.session.run_order import ORDERS, named_like
from verl_tui.rendering.session.source_status import not_reached, passed_over
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.printable import cut, wrapped
from verl_tui.rendering.text.wrap import ELLIPSIS
from verl_tui.runs.views.state import State
from verl_tui.sources.discovery.passed_over import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.rendering.run_list.run_entries import NameWriter, RunEntry
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run


_KEYS = 9
"""Runs with a key, which is their number in the list."""


class RunRows(NamedTuple):
    """All rows of the list."""

    heading: Pieces
    """Names of the columns."""
    above: list[Pieces]
    """Rows above the first run."""
    runs: int
    """Number of listed runs."""
    run_row: Callable[[int], Pieces]
    """Returns the row of the run at an index of the list; called for rows in sight only."""

    @property
    def starts(self) -> range:
        """The rows of the runs."""
        return range(len(self.above), len(self.above) + self.runs)

    def row(self, at: int) -> Pieces:
        """Return a row."""
        above = len(self.above)
        return self.above[at] if at < above else self.run_row(at - above)


def lay_out(
    view: View, runs: Sequence[Run], width: int, height: int, *, titled: bool
) -> RunRows:
    """Return the rows of these runs.

    Args:
        view: The state to show.
        runs: The runs that are listed, in this order.
        width: Cells of a row.
        height: Rows there is room for.
        titled: Whether the headings of the columns are in sight.
    """
    above = [_loading(view, width)] if view.loading else []
    if not runs:
        above += _no_runs(view, width - (len(above) > height))
        return RunRows([], above, 0, lambda _: [])
    table = run_table(
        [run.name for run in runs],
        width - (len(above) + len(runs) > height),
        indent=entry_at(view, runs, 0).indent,
        states=state_cells(runs, view.now),
        steps=max(4, *(len(steps_text(run)) for run in runs)),
        titled=titled,
        order=view.listing.order,
        without=wordless(runs),
    )
    return RunRows(
        table.heading(),
        above,
        len(runs),
        lambda at: table.row(entry_at(view, runs, at)),
    )


def run_strip(view: View, runs: Sequence[Run], width: int) -> Pieces:
    """Return the runs side by side in one row."""
    shown = runs.index(view.run) if view.run in runs else 0
    return strip(
        [run.name for run in runs], shown, partial(entry_at, view, runs), width
    )


def entry_at(view: View, runs: Sequence[Run], at: int) -> RunEntry:
    """Return the entry at an index: of two hundred runs only those in sight are made."""
    run = runs[at]
    number = str(at + 1) if at < _KEYS else " "
    entry = run_entry(view, run)
    return replace(entry, number=number, shown=view.run is run)


def caption(view: View, listed: int, width: int) -> str:
    """Return how many runs are listed, in which order, and how many are selected; the last of it
    alone where there is no room for all.
    """
    words = _listed_of_all(view, listed)
    if view.listing.order != ORDERS[0]:
        words.append(f"by {view.listing.order}")
    if count := len(view.selected):
        words.append(f"{count} selected")
    words += [
        sentence for sentence in (passed_over(view), not_reached(view)) if sentence
    ]
    text = " · ".join(words)
    return next((form for form in (text, *words[-1:]) if len(form) <= width), "")


def _listed_of_all(view: View, listed: int) -> list[str]:
    """Return how many of all runs are listed, nothing where the only one is."""
    total = len(view.monitor.runs)
    if listed < total:
        return [f"filter: {listed} of {total}"]
    if view.listing.filter and not named_like(
        view.monitor.runs.values(), view.listing.filter
    ):
        return [f"no run matches, all {total} listed"]
    return [str(total)] if total > 1 else []


def _no_runs(view: View, width: int) -> list[Pieces]:
    """Return the reasons why no run is listed."""
    monitor = view.monitor
    quiet = [] if view.loading else ["no run yet"]
    quiet += [*(address.sentence for address in monitor.unreached), *monitor.waiting]
    warning = glyph("warning")
    problems = [
        f"{warning} {one}" for one in (*monitor.problems, *sentences(monitor.passed))
    ]
    rows: list[Pieces] = []
    for role, lines in (("dim", quiet), ("warning", problems)):
        for line in lines:
            parts = wrapped(line, width)
            rows += [[(part, role)] for part in parts]
    return rows


def _loading(view: View, width: int) -> Pieces:
    share = view.monitor.loaded()
    words = f"reading {int(share * 100)}%"
    room = width - len(words) - 1
    if room < 4:
        return [(words[:width], "dim")]
    return [(f"{words} ", "dim"), (gauge(share, room), "bar")]


_NAME = 18
"""Most cells of a name."""
_GAP = 2
_MORE = 6
"""Cells kept for the number of runs without room, at either end."""


def strip(
    names: Sequence[str], shown: int, entry_at: Callable[[int], RunEntry], width: int
) -> Pieces:
    """Return the row.

    Args:
        names: Names of the runs, in the order of the list.
        shown: Index of the shown run, which is always in the row.
        entry_at: Returns the entry of a run; called for those in sight.
        width: Cells of the row.
    """
    named = naming(names)

    def written(at: int) -> Pieces:
        return _run(entry_at(at), named, marked=at == shown)

    parts = {shown: written(shown)}
    used, first, last = cells_of(parts[shown]), shown, shown
    # Those behind the shown run first: where all have room they are in their order anyway.
    for way in (1, -1):
        at = shown + way
        while 0 <= at < len(names):
            part = written(at)
            if used + _GAP + cells_of(part) > width - 2 * _MORE:
                break
            parts[at], used = part, used + _GAP + cells_of(part)
            first, last = min(first, at), max(last, at)
            at += way
    return cut(
        _joined(
            [parts[at] for at in range(first, last + 1)], first, len(names) - 1 - last
        ),
        width,
        ELLIPSIS,
    )


def _joined(parts: Sequence[Pieces], before: int, after: int) -> Pieces:
    row: Pieces = [(f"+{before}" + " " * _GAP, "dim")] if before else []
    for at, part in enumerate(parts):
        row += [(" " * _GAP, "")] if at else []
        row += part
    return [*row, (" " * _GAP + f"+{after}", "dim")] if after else row


def _run(entry: RunEntry, named: NameWriter, *, marked: bool) -> Pieces:
    mark = "▸" if marked else " "
    going = entry.state is State.RUNNING and entry.steps
    word = (f"step {entry.steps}", "dim") if going else state_word(entry, 0)
    return [
        (mark, "shown"),
        (f"{glyph(entry.badge)}{entry.count.strip()} ", entry.badge),
        (named(entry, min(_NAME, cell_len(entry.name))), "shown" if marked else "name"),
        (" ", ""),
        word,
    ]
