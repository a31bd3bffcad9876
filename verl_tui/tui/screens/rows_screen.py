"""A screen of rows over the dashboard, in one frame, and the keys that all of them have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rich.cells import cell_len
from textual import on
from textual.content import Content
from textual.screen import ModalScreen, ScreenResultType
from textual.widgets import Input

from verl_tui.rendering.last_result import LastResult
from verl_tui.rendering.text.piece import fit, printable
from verl_tui.text import one_line
from verl_tui.tui.keys import actions, columns, first_keys
from verl_tui.tui.panels.panel import Panel
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.widgets.filter_bar import FilterBar
from verl_tui.tui.widgets.rows import Entries, FewRows, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult
    from typing_extensions import Self

    from verl_tui.health.finding import Episode
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.rendering.text.search import Matches
    from verl_tui.tui.screens import ScreenContext

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


class _Frame(Panel):
    """The rows in a frame."""

    DEFAULT_CSS = """
    _Frame {
        border: round $accent;
        border-title-color: $accent;
        background: $surface;
        & > #list { height: 1fr; scrollbar-gutter: stable; }
        & > FewRows { padding: 0; }
        & > #detail { background: $panel; }
    }
    """


class RowsScreen(BufferedScreen[ScreenResultType], ModalScreen[ScreenResultType]):
    """Rows of the shown run over the dashboard; a screen says which."""

    TITLE_WORDS: ClassVar[str] = ""
    """Begins the title, before the run's name."""
    FOOTER = ""
    """Names of actions in the configuration, and the words for their keys in the frame."""
    WIDEST: ClassVar[int | None] = None
    """Cells that the frame takes at most, where its lines would be too long to read otherwise."""
    FILTER: ClassVar[tuple[str, str, str]] = ("", "", "")
    """Where the rows can be filtered: the words before what is typed, a hint, and what is counted.
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-wide")]  # noqa: RUF012 - as Textual has it
    # A modal screen hides the app's keys: those without words are in the help under `everywhere`.
    BINDINGS = actions("""
        [       other(-1)            run.previous  Previous run
        ]       other(1)             run.next      Next run
        ?,f1    app.look_at('help')  help
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
        &.-line > * { border: none; }
    }
    """

    def __init__(self, view: View | None = None) -> None:
        """Make the screen; without a view it is empty until `show`."""
        super().__init__()
        self._view = view
        self._frame = _Frame(classes="-focused")  # nothing else could have the focus
        self._frame.styles.max_width = self.WIDEST
        self._heading = FewRows(id="heading")
        self.list = Entries(id="list")
        self._detail = FewRows(id="detail")
        self.bar = FilterBar(self.FILTER[1])
        self.wanted = ""
        """The filter."""
        self._chosen: object = None
        """Name of the chosen entry."""
        self._page = RowsPage([])

    @classmethod
    def opened(cls, context: ScreenContext) -> Self:
        """Return the screen as its key opens it."""
        return cls(context.view)

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
        self._view = view
        self.redraw()

    def title_words(self, view: View) -> str:
        """Return the title."""
        run = view.run
        return self.TITLE_WORDS + (f" of {one_line(run.name, 80)}" if run else "")

    def page(self, view: View, width: int) -> RowsPage:
        """Return what is shown in rows of so many cells."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw the newest state again; changes nothing that is as it was."""
        width = self.list.width
        if self._view is None or not self._frame.is_mounted or width < 1:
            return
        page = self._page = self.page(self._view, width)
        title = Content(fit(printable(self.title_words(self._view)), self.title_room))
        # else Textual would paint all of it anew
        if self._frame.border_title != title.markup:
            self._frame.border_title = title
        self.list.set(page.rows, page.starts)
        if page.names:
            at = page.names.index(self._chosen) if self._chosen in page.names else 0
            self._chosen = page.names[at]
            self.list.choose(at)
        flat = self._frame.size.height < _FLAT
        self._heading.show(page.heading[: -1 if flat else None])
        self._draw_detail()
        caption = page.caption
        if page.matches is not None:
            escape = first_keys(self.app, columns(self.FOOTER)[-1][0])
            self.bar.say({self.FILTER[2]: page.matches}, escape=escape)
            if self.wanted:
                left, total, note = page.matches
                caption = f"filter: {self.wanted} ({left} of {total})"
                caption += f", {note}" * bool(note)
        self._frame.subtitle(self.edge(*filter(None, [caption])))

    def _draw_detail(self) -> None:
        detail = self._page.detail
        pieces: Sequence[Pieces] = ()
        if detail is not None:
            # The height is computed, since the layout may still have the one before.
            height = max(1, min(4, self._frame.size.height // 6))
            pieces = detail(self.list.entry, self.list.size.width, height)
            pieces = [*pieces, *[[]] * (height - len(pieces))]
        self._detail.show(pieces)

    @property
    def title_room(self) -> int:
        """Cells that the title may take."""
        width = self.size.width
        return max(1, (min(self.WIDEST, width) if self.WIDEST else width) - 8)

    def edge(self, *words: str) -> str:
        """Return words, then the first keys of the screen and what they do: as many as the frame
        has room for. The last key, which leaves the screen, is left out last.
        """
        keys = [
            f"{first_keys(self.app, names)} {does}"
            for names, does in columns(self.FOOTER)
        ]
        while keys and cell_len(_DOT.join((*words, *keys))) > self.title_room:
            del keys[-2 if len(keys) > 1 else -1]
        return fit(_DOT.join((*words, *keys)), self.title_room)

    # -- keys --------------------------------------------------------------------------------------

    @on(Rows.Chosen)
    def _row_chosen(self) -> None:
        at = self.list.entry
        if at is not None and at < len(self._page.names):
            self._chosen = self._page.names[at]
        self._draw_detail()

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


class EpisodesScreen(RowsScreen[None]):
    """Rows that begin at steps; one that is opened is followed on the dashboard."""

    def __init__(self, view: View, follow: Callable[[Episode], None]) -> None:
        """Make the screen; `follow` is called with the episode that is opened."""
        super().__init__(view)
        self._follow = follow
        self.episodes: Sequence[Episode] = ()
        """Those of the rows that can be opened."""
        self.known: LastResult[Any] = LastResult()
        """What the rows are made of."""

    @on(Entries.Opened)
    def _opened(self, message: Entries.Opened) -> None:
        self.dismiss()
        self._follow(self.episodes[message.entry])

    @classmethod
    def opened(cls, context: ScreenContext) -> Self:
        """Return the screen, from which an episode is followed on the dashboard."""
        return cls(context.view, context.dashboard.follow_episode)
