"""A screen of rows over the dashboard, in one frame, and the keys that all of them have."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from textual import on
from textual.screen import ModalScreen
from textual.widgets import Input

from verl_tui.rendering.text.piece import Pieces, fit, printable
from verl_tui.runs.cached import LastResult
from verl_tui.tui.keys import actions, columns
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.widgets.filter_bar import FilterBar
from verl_tui.tui.widgets.rows import Entries, FewRows, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.search import Matches
    from verl_tui.tui.screens.dashboard_layout import DashboardLayout

_DOT = " · "
_FLAT = 8
"""Least height of a list with all rows of its heading; a lower one has a row less."""
SCROLLS = """
    list.down list.up      scroll
    run.previous run.next  run
"""
"""Keys in the frame of a screen on which nothing is chosen."""


class RowsPage(NamedTuple):
    """What such a screen shows."""

    rows: Sequence[Pieces]
    starts: Sequence[int] = ()
    """The rows that entries begin at, where one can be chosen."""
    names: Sequence[object] = ()
    """A name for each entry: it stays chosen though newer ones push it down."""
    caption: str = ""
    """A few words for the frame."""
    heading: Sequence[Pieces] = ()
    """Rows that stay above the others."""
    detail: Callable[[int | None, int, int], Sequence[Pieces]] | None = None
    """Returns an entry in full, given its index, cells and rows; None for no such rows."""
    matches: Matches | None = None
    """How many there are that match the filter."""
    title: str = ""
    """By default what the screen is called, of which run."""
    opens: Callable[[int], object] | None = None
    """Goes where an opened entry leads, once the screen has closed; None if it leads nowhere."""


class RowsScreen(BufferedScreen, ModalScreen[None]):
    """Rows of the shown run over the dashboard, in a frame; a screen says which."""

    TITLE_WORDS = ""
    """Begins the title, before the run's name."""
    FOOTER = ""
    """Names of actions in the configuration, and the words for their keys in the frame."""
    WIDEST = 1_000_000
    """Cells that the frame takes at most, where its lines would be too long to read otherwise."""
    ENTER = "keeps it"
    """What the enter key does with what is typed."""
    FILTER = ("", "", "")
    """Where the rows can be filtered: the words before what is typed, a hint, and what is counted.
    """
    # A modal screen hides the app's keys: those without words are in the help under `everywhere`.
    BINDINGS = actions("""
        [       other(-1)            run.previous  Previous run
        ]       other(1)             run.next      Next run
        ?,f1    app.open_screen('help')  help
        colon   app.command_palette  palette.colon
        space   app.simulate_key('pagedown')  list.space
        ctrl+l  app.redraw           redraw
        ctrl+z  app.suspend_process  suspend
    """)

    DEFAULT_CSS = """
    RowsScreen {
        align: center middle;
        /* Of what is behind nothing is seen: painting it would be half of the work. */
        background: $background;
        & > Panel {
            border: round $accent;
            border-title-color: $accent;
            background: $surface;
            & > #list { height: 1fr; scrollbar-gutter: stable; }
            & > FewRows { padding: 0; }
            & > #detail { background: $panel; }
        }
        &.-line > Panel { border: none; }
    }
    """

    wanted = ""
    """The filter."""
    _chosen: object = None
    """Name of the chosen entry."""
    _page = RowsPage(())

    def __init__(self, dashboard: DashboardLayout) -> None:
        """Make the screen over the dashboard."""
        super().__init__()
        self.dashboard = dashboard
        self.view = dashboard.view
        self._frame = Panel(classes="-focused")  # nothing else could have the focus
        self._frame.styles.max_width = self.WIDEST
        self._heading = FewRows(id="heading")
        self.list = Entries(id="list")
        self._detail = FewRows(id="detail")
        self.bar = FilterBar(self.FILTER[1])
        self.known = LastResult()
        """What the rows are made of, where that takes long."""

    def compose(self) -> ComposeResult:
        """Make the rows, those above them, those for the chosen entry, and the filter."""
        with self._frame:
            yield self._heading
            yield self.list
            yield self._detail
            yield self.bar

    def on_mount(self) -> None:
        """Listen to the keys at once."""
        self.query(Entries).focus()  # none where the app ends meanwhile

    # -- drawing -----------------------------------------------------------------------------------

    def show(self, view: View) -> None:
        """Draw the newest state."""
        self.view = view
        self.redraw()

    def of_run(self, words: str) -> str:
        """Return a title with the name of the run."""
        name = self.view.name_in(80)
        return f"{words} of {name}" if name else words

    def page(self, width: int) -> RowsPage:
        """Return what is shown of the view in rows of so many cells."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw the newest state again; changes nothing that is as it was."""
        width = self.list.width
        if not self._frame.is_mounted or width < 1:
            return
        page = self._page = self.page(width)
        words = page.title or self.of_run(self.TITLE_WORDS)
        self._frame.TITLE = fit(printable(words), self.title_room)
        self._frame.write_title()
        self.list.set(page.rows, page.starts)
        if page.names:
            at = page.names.index(self._chosen) if self._chosen in page.names else 0
            self._chosen = page.names[at]
            self.list.choose(at)
        flat = self._frame.size.height < _FLAT
        self._heading.show(page.heading[:-1] if flat else page.heading)
        self._draw_detail()
        caption = page.caption
        if page.matches:
            escape = self.view.keys[columns(self.FOOTER)[-1][0]]
            counts = {self.FILTER[2]: page.matches}
            self.bar.say(counts, enter=self.ENTER, escape=escape)
            if self.wanted:
                left, total, note = page.matches
                caption = f"filter: {self.wanted} ({left} of {total})"
                caption += f", {note}" * bool(note)
        self._frame.subtitle(self._edge(caption))

    def _draw_detail(self) -> None:
        detail = self._page.detail
        pieces: Sequence[Pieces] = ()
        if detail:
            # The height is computed, since the layout may still have the one before.
            height = max(1, min(4, self._frame.size.height // 6))
            pieces = detail(self.list.entry, self.list.size.width, height)
            pieces = [*pieces, *[[]] * (height - len(pieces))]
        self._detail.show(pieces)

    @property
    def title_room(self) -> int:
        """Cells that the title may take."""
        return max(1, min(self.WIDEST, self.size.width) - 8)

    def _edge(self, caption: str) -> str:
        """Return the caption, then the first keys of the screen and what they do: as many as the
        frame has room for. The last key, which leaves the screen, is left out last.
        """
        words = [caption] * bool(caption)
        least = len(words)
        for names, does in columns(self.FOOTER):
            keys = " ".join(self.view.keys[name] for name in names.split())
            words.append(f"{keys} {does}")
        while len(words) > least and cell_len(_DOT.join(words)) > self.title_room:
            del words[max(least, len(words) - 2)]
        return fit(_DOT.join(words), self.title_room)

    # -- keys --------------------------------------------------------------------------------------

    @on(Rows.Chosen)
    def _row_chosen(self, event: Rows.Chosen) -> None:
        if event.entry < len(self._page.names):
            self._chosen = self._page.names[event.entry]
        self._draw_detail()

    @on(Entries.Opened)
    def _entry_opened(self, message: Entries.Opened) -> None:
        if self._page.opens and self.is_active:
            self.dismiss()
            self._page.opens(message.entry)

    async def action_other(self, way: int) -> None:
        """Look at the next or previous run."""
        await self.app.run_action(f"switch_run({way})")

    def action_filter(self) -> None:
        """Open the line to type a filter in."""
        self.bar.open(self.FILTER[0], self.wanted)
        self.redraw()

    def action_back(self) -> None:
        """Leave the filter, else close."""
        if self.bar.display or self.wanted:
            self.wanted = ""
            self.bar.close()
            self.redraw()
        else:
            self.dismiss()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self.wanted = event.value.strip()
        self.redraw()

    @on(Input.Submitted)
    def _kept(self) -> None:
        self.bar.close()
        self.redraw()
