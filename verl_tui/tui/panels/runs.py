"""The list of runs, a row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message

from verl_tui.rendering.run_list import (
    BADGES,
    SIGNS,
    caption,
    lay_out,
    on_edge,
    rows_of,
    run_strip,
)
from verl_tui.rendering.session.run_order import LETTERS, id_of
from verl_tui.text import shell_words
from verl_tui.tui.keys import COMPARE, HelpSection, actions
from verl_tui.tui.messages import toast
from verl_tui.tui.panels.panel import NOTHING, PanelSpec, TextPanel
from verl_tui.tui.terminal.scrolling import LazyRows
from verl_tui.tui.widgets.rows import Entries, Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.rendering.text.search import Matches

BESIDE = 10
"""Cells beside a name: frame, scroll bar, number, badge, count, and the sign of the state."""


class RunsPanel(TextPanel):
    """The list of runs; choosing one asks the app to show it."""

    TITLE = "runs"
    PANEL = PanelSpec("runs", "f2", "Runs", rank=10, tab=50, share=0.4, least=60)
    ROWS = Entries
    FOOTER = """
        runs.select  Select
        runs.sort    Sort
        compare      Compare
    """
    ABRIDGED = True
    HELP_SECTION = HelpSection(
        "runs, with the focus",
        COMPARE,
        40,
        (f"before a name: {BADGES}", f"after a name: {SIGNS}"),
    )
    BINDINGS = actions("""
        space  select  runs.select   Select or deselect for comparing
        s  sort                runs.sort     Sort: as found, state, name, reward, activity, columns
        S  reverse             runs.reverse  Sort the other way round
        f  screen.ask('run_columns')  runs.columns  Columns: reward, best val, reward@200, lr
        b  screen.ask('run_groups')  runs.group    Group by settings, or name: how names begin
        h  hide                runs.hide     Hide the run
        u  unhide              runs.unhide   List the hidden runs again
    """)

    @dataclass
    class Picked(Message):
        """The user chose a run."""

        name: str

    class Relisted(Message):
        """The user has changed the list, or selected a run to be compared: others say so, too."""

    _heading: Sequence[tuple[str, str]] = ()
    """Names of the table's columns."""
    _names: Sequence[str] = ()
    """Names of the entries, in their order."""
    _chosen = _shown = ""
    """The run shown last: the user's choice stays until the app shows another."""
    _revealed: object = None

    @property
    def filter(self) -> str:
        """Lists only the runs whose name contains this, or that meet it; all where none does."""
        return self.view.listing.filter

    def narrow(self, text: str, *, lenient: bool) -> None:
        """List only the runs that match."""
        if self.view is not NOTHING:  # else no list is seen
            self.view.listing.filter = text.strip()
        self.redraw()

    def needed(self, view: View, width: int, height: int) -> int:
        """Return a row a run, and those of their groups; none for one run, for which the status
        line is enough.
        """
        runs = view.monitor.runs.values()
        groups = view.listing.gathered(view.listing.unhidden(runs), view.moment)
        return rows_of(groups) if len(runs) > 1 else 0

    def show(self, view: View) -> None:
        """List the runs and mark the shown one."""
        name = view.run.name if view.run else ""
        if name != self._shown:
            self._chosen = self._shown = name
        super().show(view)

    def on_rows_chosen(self, message: Rows.Chosen) -> None:
        """Ask the app to show the run that was chosen."""
        message.stop()
        self._chosen = self._names[message.entry]
        self.post_message(self.Picked(self._chosen))

    def matches(self, view: View) -> Matches:
        """Return how many runs match the filter, of how many."""
        return view.matches

    def clip(self) -> str:
        """Return the paths of the chosen run, quoted for a command line."""
        run = self.view.monitor.runs.get(self._chosen)
        return shell_words(run.paths) if run else ""

    def action_sort(self) -> None:
        """Sort by the next of `ORDERS` and show the first runs."""
        self.view.listing.next_order()
        self._relist()
        self._rows.scroll_home(animate=False, immediate=True)

    def action_reverse(self) -> None:
        """Sort the other way round."""
        listing = self.view.listing
        listing.reverse = not listing.reverse
        self._relist()

    def action_hide(self) -> None:
        """Hide the chosen run, and show the next one."""
        view, name, names = self.view, self._chosen, self._names
        if name not in names or len(names) < 2:
            return
        at = names.index(name)
        self.post_message(self.Picked((*names[at + 1 :], names[at - 1])[0]))
        hidden = view.listing.kept.hidden_runs
        self.keep(hidden_runs=(*hidden, id_of(view.monitor.runs[name])))

    def action_unhide(self) -> None:
        """List the hidden runs again."""
        self.keep(hidden_runs=())

    def keep(self, **chosen: tuple[str, ...]) -> None:
        """Take and remember columns, groups or hidden runs."""
        toast(self.app, self.view.listing.keep(**chosen))
        self._relist()

    def _relist(self) -> None:
        self.post_message(self.Relisted())
        self.redraw()

    def action_select(self) -> None:
        """Select the chosen run to be compared, or deselect it."""
        view, name = self.view, self._chosen
        if name in view.monitor.runs:
            if not view.selection.toggle(name):
                toast(self.app, f"{len(LETTERS)} runs are compared at most")
            self._relist()

    def write(self, view: View, width: int, height: int) -> None:
        """Write the runs that are listed."""
        runs = view.listed
        zoomed = self.has_class("-zoomed")
        heading: Pieces = []
        if height == 1 and runs and not zoomed:
            self._names = []
            self._rows.set([run_strip(view, runs, width)])
            self._rows.choose(None)
        else:
            titled = zoomed or not self.has_class("-narrow")
            rows = lay_out(view, runs, width, height, titled=titled)
            heading = rows.heading
            self._names = [run.name for run in runs]
            self._rows.set(LazyRows(rows.rows, lambda make: make()), rows.starts)
            self._mark(width, height)
            self.subtitle(caption(view, len(runs), self.size.width - 4))
        self._heading = heading
        self.write_title()

    def title(self, *, focused: bool) -> Content:
        """Return the title, and the names of the columns over these."""
        title, edge = ("$accent", "$accent") if focused else ("", "$panel-lighten-2")
        styles = {"title": title, "rule": edge, "name": "$text-muted"}
        pieces = on_edge(self.TITLE, [*self._heading])
        return Content.assemble(*((words, styles[role]) for words, role in pieces))

    def _mark(self, *size: int) -> None:
        """Highlight the chosen run, and scroll to it when it or the room for it has changed."""
        rows, names = self._rows, self._names
        rows.choose(names.index(self._chosen) if self._chosen in names else None)
        place = (self._chosen, rows.chosen, size)
        if rows.chosen is not None and place != self._revealed:
            rows.reveal(rows.chosen)
        self._revealed = place
