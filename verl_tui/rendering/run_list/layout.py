"""Lays the list of runs out in the room of its panel: a table, or one to three rows each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.charts.sparkline import gauge
from verl_tui.rendering.run_list.entry_rows import glyph, pairs, triples
from verl_tui.rendering.run_list.run_entries import (
    RANKED,
    EntryCache,
    last_figures,
    ranked,
    selected,
    state_cells,
    steps_text,
    wordless,
)
from verl_tui.rendering.run_list.short_rows import short_columns, singles
from verl_tui.rendering.run_list.strip import strip
from verl_tui.rendering.run_list.table_rows import run_table
from verl_tui.rendering.session.run_order import ORDERS, named_like
from verl_tui.rendering.session.source_status import not_reached, passed_over
from verl_tui.rendering.text.printable import wrapped
from verl_tui.sources.discovery.passed_over import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.rendering.run_list.entry_rows import EntryWriter, RunEntry
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

    EntryAt = Callable[[int], RunEntry]
    """Returns the entry at an index of the list."""

_ONE_ROW, _TABLE = 77, 48
"""Least width of a table, and its least width over the full screen."""
_TWO_ROWS = 24
"""Least width of entries of two or three rows."""
_CROWD = 4
"""So many runs have two rows each even where they must scroll; more get one."""
_KEYS = 9
"""Runs with a key, which is their number in the list."""
_KEPT = 500
"""Entries whose rows are remembered: more than a few screenfuls."""


class ListRoom(NamedTuple):
    """The room for the list."""

    width: int
    height: int
    narrow: bool = False
    """True on a narrow screen, where each run takes one row."""
    zoomed: bool = False
    """True if the list takes the full screen."""


class RunRows(NamedTuple):
    """All rows of the list."""

    heading: str
    """Names of a table's columns, empty for other layouts."""
    above: list[Pieces]
    """Rows above the first run."""
    tall: int
    """Rows of each run."""
    runs: int
    """Number of listed runs."""
    entry_rows: Callable[[int], list[Pieces]]
    """Returns the rows of the run at an index of the list."""

    @property
    def stop(self) -> int:
        """Number of rows."""
        return len(self.above) + self.runs * self.tall

    @property
    def starts(self) -> range:
        """Rows that the runs begin at."""
        return range(len(self.above), self.stop, self.tall)

    def row(self, at: int) -> Pieces:
        """Return a row; called for rows in sight only."""
        if at < len(self.above):
            return self.above[at]
        entry, line = divmod(at - len(self.above), self.tall)
        return self.entry_rows(entry)[line]


class RunListLayout:
    """Lays the list out; remembers the rows of runs that have not changed."""

    def __init__(self) -> None:
        self._entries = EntryCache()
        self._look: object = None
        """Equal while rows look alike, see `RunTable.look`."""
        self._written: dict[tuple[RunEntry, int, int], list[Pieces]] = {}

    def lay_out(self, view: View, runs: Sequence[Run], room: ListRoom) -> RunRows:
        """Return the rows of these runs.

        Args:
            view: The state to show.
            runs: The runs that are listed, in this order.
            room: Where they stand.
        """
        tabular = room.width >= (_TABLE if room.zoomed else _ONE_ROW)
        tall = 1 if tabular else _rows_of_each(len(runs), room)
        above = [_loading(view, room.width)] if view.loading else []
        if not runs:
            above += _no_runs(view, room.width - (len(above) > room.height))
            return RunRows("", above, tall, 0, lambda _: [])
        scrolls = len(above) + len(runs) * tall > room.height
        width = room.width - scrolls
        short = tall == 1 and not tabular
        entry_at = self._entry_at(view, runs, view.listing.order if short else "")
        if tabular:
            heading, write = self._table(view, runs, entry_at(0).indent, width)
        else:
            heading = ""
            write = self._writer(view, runs, entry_at, tall, width)
        return RunRows(heading, above, tall, len(runs), lambda at: write(entry_at(at)))

    def strip(self, view: View, runs: Sequence[Run], width: int) -> Pieces:
        """Return the runs side by side in one row."""
        names = [run.name for run in runs]
        shown = runs.index(view.run) if view.run in runs else 0
        entry_at = self._entry_at(view, runs, "")
        return strip(names, shown, entry_at, width)

    def _table(
        self, view: View, runs: Sequence[Run], indent: int, width: int
    ) -> tuple[str, EntryWriter]:
        """Return the names of a table's columns and the function that writes the row of a run."""
        laid = run_table(
            [run.name for run in runs],
            width,
            indent=indent,
            states=state_cells(runs, view.now),
            steps=max(len(steps_text(run)) for run in runs),
            without=wordless(runs),
        )

        by_name = {run.name: run for run in runs}

        def write(entry: RunEntry) -> list[Pieces]:
            return [laid.row(entry, last_figures(view, by_name[entry.name]))]

        return laid.heading, self._remembering(view, runs, laid.look, write)

    def _writer(
        self, view: View, runs: Sequence[Run], entry_at: EntryAt, tall: int, width: int
    ) -> EntryWriter:
        """Return the function that writes the rows of a run. With several rows a run, the columns
        are fitted to all runs: there are only a few.
        """
        if tall == 1:
            columns = short_columns(
                [run.name for run in runs],
                width - entry_at(0).indent,
                states=state_cells(runs, view.now),
                steps=max(len(steps_text(run)) for run in runs),
                without=wordless(runs),
                ranked=view.listing.order in RANKED,
            )
            names = tuple(run.name for run in runs)
            write = singles(names, columns)
            return self._remembering(view, runs, (names, columns), write)
        entries = [entry_at(at) for at in range(len(runs))]
        return (triples if tall == 3 else pairs)(entries, width)

    def _remembering(
        self, view: View, runs: Sequence[Run], look: object, write: EntryWriter
    ) -> EntryWriter:
        """Return a function that writes the rows of a run unless they are known; also where the run
        has gone since.
        """
        if look != self._look or len(self._written) > _KEPT:
            self._look, self._written = look, {}
        # rows of another look may still be written, at another width
        written = self._written
        by_name = {run.name: run for run in runs}

        def rows(entry: RunEntry) -> list[Pieces]:
            key = (entry, by_name[entry.name].revision, view.acknowledgements.revision)
            if key not in written:
                written[key] = write(entry)
            return written[key]

        return rows

    def _entry_at(self, view: View, runs: Sequence[Run], order: str) -> EntryAt:
        """Return the function that makes the entry at an index, so that of two hundred runs only
        those in sight are made; for some orders it shows the value that the run is sorted by.
        """

        def entry_at(at: int) -> RunEntry:
            run = runs[at]
            entry = self._entries.entry(view, runs[at])
            return replace(
                entry,
                number=str(at + 1) if at < _KEYS else " ",
                shown=view.run is run,
                ranked=ranked(run, entry, order),
                mark=selected(view, run),
            )

        return entry_at


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


def _rows_of_each(runs: int, room: ListRoom) -> int:
    """Return how many rows each run takes outside a table."""
    narrow = room.narrow or not _TWO_ROWS <= room.width < _ONE_ROW
    if narrow or runs * 2 > max(room.height, 2 * _CROWD) or room.height < 4:
        return 1
    return 3 if runs * 3 <= room.height else 2


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
