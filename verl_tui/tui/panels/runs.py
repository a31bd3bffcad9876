"""All runs, one to three rows each, over the full screen a table: how they are, how far they are,
how old the news.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding
from textual.message import Message

from verl_tui.rendering.charts.sparkline import gauge
from verl_tui.rendering.run_list.entries import (
    EntryCache,
    figures,
    ranked,
    selected,
    steps_text,
    wordless,
)
from verl_tui.rendering.run_list.entry_rows import (
    ROLES,
    badges,
    glyph,
    pairs,
    signs,
    singles,
    triples,
)
from verl_tui.rendering.run_list.order import ORDERS, matching, ordered
from verl_tui.rendering.run_list.table import table
from verl_tui.rendering.session.selection import LETTERS
from verl_tui.rendering.session.source_status import not_reached, passed_over
from verl_tui.rendering.text import run_colours
from verl_tui.rendering.text.printable import wrapped
from verl_tui.sources.discovery.passed_over import sentences
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.panels.panel import TextPanel
from verl_tui.tui.terminal.lazy_strips import LazyStrips
from verl_tui.tui.widgets.entries import Entries
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.geometry import Size
    from textual.strip import Strip

    from verl_tui.rendering.run_list.entry_rows import EntryWriter, RunEntry
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.run import Run

    Placed = Callable[[int], RunEntry]
    """Returns what is said of the run at a place of the list."""

_ONE_ROW, _TABLE = 77, 48
"""From this width on runs stand in a table; from which on over the full screen, where it is what
one has come for.
"""
_HEADED = 5
"""Rows from which on one of them is the table's heading."""
_TWO_ROWS = 24
"""From this width on two rows, three where there is room; below, and on narrow screens, one short
one.
"""
_BESIDE = 10
"""Cells beside a name: frame and scroll bar, number, badge and count before it, the sign of the
state after it.
"""
_SPARED = 100
"""Cells that are left to two columns of charts and what stands beside them."""
_KEPT = 500
"""Rows that are remembered: more than a few screenfuls."""
_CROWD = 4
"""So many runs have two rows each even where they must scroll; more get one."""


def _signs(*, ascii_only: bool) -> tuple[str, ...]:
    return (
        f"before a name: {badges(ascii_only=ascii_only)}",
        f"after a name: {signs(ascii_only=ascii_only)}",
    )


class RunsPanel(TextPanel):
    """The list of runs; choosing one asks the app to show it."""

    TITLE = "runs"
    FOOTER = (("runs.select", "Select"), ("runs.sort", "Sort"), ("compare", "Compare"))
    PREFIX = "runs"
    STYLED_ROLES = ROLES
    GROUNDED = frozenset({"bar"})
    HELP_SECTION = HelpSection(
        "runs, while they have the focus",
        rank=40,
        notes=_signs(ascii_only=False),
        ascii_notes=_signs(ascii_only=True),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "Select to compare, or not", show=False, id="runs.select"),
        Binding(
            "s", "sort", "Sort: as found, state, name, reward, activity", show=False, id="runs.sort"
        ),
    ]
    DEFAULT_CSS = """
    RunsPanel {
        & > .-head { height: 1; overflow: hidden hidden; scrollbar-size: 0 0; }
        & > Entries { height: 1fr; }
        & > .runs--ok { color: $text-success; }
        & > .runs--warning { color: $text-warning; }
        & > .runs--critical { color: $text-error; }
        & > .runs--nothing { color: $text-muted; }
        & > .runs--name { color: $foreground; }
        & > .runs--shown { color: $foreground; text-style: bold; }
        & > .runs--dim { color: $text-muted; }
        & > .runs--bar { color: $text-primary; background: $foreground 15%; }
        & > .runs--spark { color: $text-primary; }
        & > .runs--odd { color: $text-error; text-style: bold; }
    }
    """ + run_colours.rules("RunsPanel", "runs")

    class Picked(Message):
        """The user chose a run."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    class Selected(Message):
        """The user selected a run to be compared, or took that back."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._head = Rows()
        self._head.add_class("-head")
        self._head.can_focus = self._head.display = False
        self._rows = Entries(marked=3)
        self._filter = ""
        self._order = ORDERS[0]
        self._told = EntryCache()
        self._look: object = None
        self._written: dict[tuple[RunEntry, int, int], list[Pieces]] = {}
        """Rows as they look now, of which a key changes few."""
        self._view: View | None = None
        self._longest = 0
        """Cells of the longest name."""
        self._names: list[str] = []
        """Names of the entries, in their order."""
        self._chosen: str | None = None
        self._shown: str | None = None
        """The run that was shown last: what the user has chosen since stays until the app shows
        another.
        """
        self._revealed: tuple[object, ...] = ()

    @property
    def filter(self) -> str:
        """Only runs whose name contains this are listed, all where none does; case does not
        matter.
        """
        return self._filter

    @filter.setter
    def filter(self, text: str) -> None:
        self._filter = text
        self.redraw()

    def compose(self) -> ComposeResult:
        """The heading of the table stays while the rows scroll."""
        yield self._head
        yield self._rows

    def make_room(self, view: View) -> bool:
        """Ask for another layout where names have come that need one; tell whether they have."""
        longest = max(map(cell_len, view.monitor.runs), default=0)
        if not self.display or longest == self._longest:
            return False
        self._longest = longest
        self.refresh(layout=True)
        return True

    def show(self, view: View) -> None:
        """List the runs and mark the shown one."""
        self._view = view
        name = view.run.name if view.run else None
        if name != self._shown:
            self._chosen = self._shown = name
        self.redraw()

    def on_rows_chosen(self, message: Entries.Chosen) -> None:
        """Tell which run was chosen."""
        message.stop()
        entry = self._rows.entry_at(message.index)
        if entry is not None:
            self._chosen = self._names[entry]
            self.post_message(self.Picked(self._chosen))

    def on_entries_opened(self, message: Entries.Opened) -> None:
        """Nothing more to open: choosing has shown the run."""
        message.stop()

    def listed(self, view: View) -> list[Run]:
        """Return the runs that the filter leaves, in their order."""
        return ordered(matching(view.monitor.runs.values(), self._filter), self._order, view.now)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Return the cells in which no name has to be cut, as far as the charts can spare them."""
        return min(self._longest + _BESIDE, container.width - _SPARED) - self.gutter.width

    def clip(self) -> str:
        """Return the paths of the chosen run, as one names them on a command line."""
        run = self._view.monitor.runs.get(self._chosen or "") if self._view is not None else None
        return shlex.join(run.paths) if run is not None else ""

    def action_sort(self) -> None:
        """Sort by something else."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self.redraw()
        self._rows.scroll_home(
            animate=False, immediate=True
        )  # what comes first is what one sorts for

    def action_select(self) -> None:
        """Select the chosen run to be compared, or take that back."""
        view, name = self._view, self._chosen
        if view is None or name not in view.monitor.runs:
            return
        if view.selection.toggle(name):
            self.post_message(self.Selected())
            self.redraw()
        else:
            self.app.clear_notifications()
            self.notify(f"{len(LETTERS)} runs are compared at most", timeout=3)

    def redraw(self) -> None:
        """Write the rows of what was shown last."""
        view = self._view
        width, height = self._rows.size
        if view is None or width < 1 or height < 1:
            return
        runs = self.listed(view)
        tabular = bool(runs) and width >= (_TABLE if self.has_class("-zoomed") else _ONE_ROW)
        headed = tabular and height + self._head.display >= _HEADED
        if self._head.display is not headed:
            self._head.display = headed
            self.call_after_refresh(self.redraw)
        tall = 1 if tabular else self._tall(len(runs), width, height)
        above = [_loading(view, width)] if view.loading else []
        if len(above) + len(runs) * tall > height:
            width -= 1  # the scroll bar
        if not runs:
            above += self._nothing(view, width)
        first, stop = len(above), len(above) + len(runs) * tall
        placed = self._placing(view, runs, single=tall == 1 and not tabular)
        layout = (
            self._table(view, runs, placed, width)
            if tabular
            else self._layout(view, runs, placed, tall, width)
        )

        def row(at: int) -> Strip:
            if at < first:
                return self.strip(above[at])
            return self.strip(layout(placed((at - first) // tall))[(at - first) % tall])

        self._names = [run.name for run in runs]
        self._rows.set_entries(LazyStrips(stop, row), range(first, stop, tall), stop)
        self._mark(width, height)
        self.subtitle(self._caption(view, len(runs)))

    def _caption(self, view: View, shown: int) -> str:
        """Say what the list leaves out, how it is sorted and how many are selected; the last alone
        if room is short.
        """
        total = len(view.monitor.runs)
        words = [f"{shown} of {total}"] if shown < total else [str(total)] if total > 1 else []
        if self._order != ORDERS[0]:
            words.append(f"by {self._order}")
        if selected := len(view.selected):
            words.append(f"{selected} selected")
        words += [said for said in (passed_over(view), not_reached(view)) if said]
        text = (" - " if view.ascii else " · ").join(words)
        room = self.size.width - 4
        return next((said for said in (text, *words[-1:]) if len(said) <= room), "")

    def _tall(self, entries: int, width: int, height: int) -> int:
        """Return how many rows each run takes."""
        narrow = self.screen.has_class("-narrow") or not _TWO_ROWS <= width < _ONE_ROW
        if narrow or entries * 2 > max(height, 2 * _CROWD) or height < 4:
            return 1
        return 3 if entries * 3 <= height else 2

    def _layout(
        self, view: View, runs: Sequence[Run], placed: Placed, tall: int, width: int
    ) -> EntryWriter:
        """Return what writes the rows of a run; all runs are looked at only where there are few of
        them.
        """
        if tall == 1 or not runs:
            names = tuple(run.name for run in runs)
            return self._once(
                view, (names, width, view.ascii), singles(names, width, ascii_only=view.ascii)
            )
        entries = [placed(at) for at in range(len(runs))]
        return (triples if tall == 3 else pairs)(entries, width, ascii_only=view.ascii)

    def _table(self, view: View, runs: Sequence[Run], placed: Placed, width: int) -> EntryWriter:
        """Return what writes the row of a run below a heading, and write that."""
        names = [run.name for run in runs]
        steps = max(len(steps_text(run)) for run in runs)
        laid = table(
            names,
            width,
            indent=placed(0).indent,
            steps=steps,
            without=wordless(runs),
            ascii_only=view.ascii,
        )
        self._head.set_strips([self.strip(laid.heading)])
        return self._once(
            view,
            laid.look,
            lambda entry: [laid.row(entry, figures(view, view.monitor.runs[entry.name]))],
        )

    def _once(self, view: View, look: object, write: EntryWriter) -> EntryWriter:
        """Return what writes the rows of a run, unless they are known; where looks are equal, they
        are as they were.
        """
        if look != self._look or len(self._written) > _KEPT:
            self._look = look
            self._written.clear()

        def rows(entry: RunEntry) -> list[Pieces]:
            key = (entry, view.monitor.runs[entry.name].revision, view.acknowledgements.revision)
            if key not in self._written:
                self._written[key] = write(entry)
            return self._written[key]

        return rows

    def _mark(self, *size: int) -> None:
        """Highlight the chosen run, and scroll to it when it or the room for it has changed."""
        rows = self._rows
        rows.choose(self._names.index(self._chosen) if self._chosen in self._names else None)
        place = (self._chosen, rows.chosen, size)
        if rows.chosen is not None and place != self._revealed:
            rows.reveal(rows.chosen)
        self._revealed = place

    def _placing(self, view: View, runs: Sequence[Run], *, single: bool) -> Placed:
        """Return what says of a run what it is to say in its place: of two hundred only those in
        sight are asked.
        """
        numbers = {name: number for number, name in enumerate(view.monitor.runs, 1)}
        digits = max((len(self._told.standing(view, run).found) for run in runs), default=0)

        def placed(at: int) -> RunEntry:
            run, entry = runs[at], self._told.entry(view, runs[at])
            return replace(
                entry,
                number=str(numbers[run.name]) if numbers[run.name] < 10 else " ",
                count=entry.count.ljust(digits),
                shown=view.run is run,
                ranked=ranked(run, entry, self._order) if single else "",
                mark=selected(view, run),
            )

        return placed

    def _nothing(self, view: View, width: int) -> list[Pieces]:
        monitor = view.monitor
        silent = (one.sentence for one in monitor.unreached)
        lines = [
            (line, "dim")
            for line in ("" if view.loading else "no run yet", *silent, *monitor.waiting)
        ]
        told = (*monitor.problems, *sentences(monitor.passed))
        lines += [
            (f"{glyph('warning', ascii_only=view.ascii)} {problem}", "warning") for problem in told
        ]
        return [
            [(part, role)]
            for line, role in lines
            for part in wrapped(line, width, ascii_only=view.ascii)
        ]


def _loading(view: View, width: int) -> Pieces:
    share = view.monitor.loaded()
    words = f"reading {int(share * 100)} %"
    room = width - len(words) - 1
    if room < 4:
        return [(words[:width], "dim")]
    return [(f"{words} ", "dim"), (gauge(share, room, ascii_only=view.ascii), "bar")]
