"""The console of the shown run as text, over the full screen: follow, search, go to errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.message import Message
from textual.widgets import Input

from verl_tui.rendering.log import window as log_window
from verl_tui.rendering.log.line_kinds import Alarms, LineKind, TextQuery
from verl_tui.rendering.log.window import LogWindow
from verl_tui.rendering.text.search import Search
from verl_tui.tui.export import copy_text
from verl_tui.tui.keys.act import act
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import WHY
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.screens.log.whole_line import LineScreen
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.toast import toast
from verl_tui.tui.widgets import looks
from verl_tui.tui.widgets.filter_bar import FilterBar
from verl_tui.tui.widgets.footer import Keys
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.log_rows import LogRows
from verl_tui.tui.widgets.role_styled import RoleStyled
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.rendering.log.line_rows import LogRow
    from verl_tui.rendering.log.target import LogTarget
    from verl_tui.rendering.session.snapshot import View

_INTERVAL = 0.5
"""Seconds between two looks at the file."""
_KEYS = (
    ("escape", "back", "Back", "back"),
    ("q,l", "dismiss", "Close", "close"),
    ("f", "follow", "Follow", "follow"),
    ("slash", "search", "Search", "search"),
    ("n", "hit(1)", "Next hit", "next_hit"),
    ("N", "hit(-1)", "Previous hit", "previous_hit"),
    ("e", "alarm(1)", "Next error", "next_alarm"),
    ("E", "alarm(-1)", "Previous error", "previous_alarm"),
    ("exclamation_mark", "warning(1)", "Next warning", "next_warning"),
    ("at", "warning(-1)", "Previous warning", "previous_warning"),
    ("u", "fold", "Unfold repeated lines and prefixes", "unfold"),
    ("w", "wrap", "Wrap or cut lines", "wrap"),
    ("enter", "whole", "The whole line, or every field of a record", "whole"),
    ("y", "copy", "Copy the line", "copy"),
    ("tab", "source(1)", "Next file", "next_source"),
    ("shift+tab", "source(-1)", "Previous file", "previous_source"),
    ("left_square_bracket", "other(-1)", "Previous run", "previous"),
    ("right_square_bracket", "other(1)", "Next run", "next"),
)
"""Key, action, what it does, and its name in the configuration."""


class LogScreen(BufferedScreen[None], RoleStyled):
    """The text of one of the run's files."""

    AUTO_FOCUS = "#rows"
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (10, "-tall")]  # noqa: RUF012 - as Textual has it
    LOOKS = looks.LOG_LINES
    HELP_SECTION = HelpSection("log", rank=40, task=WHY)
    FOOTER = (
        ("log.back", "Back"),
        ("log.search", "Search"),
        ("log.next_hit log.previous_hit", "Hits"),
        ("log.next_alarm log.previous_alarm", "Errors"),
        ("log.next_warning log.previous_warning", "Warnings"),
        ("log.whole", "Whole line"),
        ("log.follow", "Follow"),
        ("log.unfold", "Unfold"),
        ("log.wrap", "Wrap"),
        ("log.copy", "Copy"),
        ("log.next_source", "Next file"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        act(key, action, f"log.{name}", does) for key, action, does, name in _KEYS
    ]
    DEFAULT_CSS = """
    LogScreen {
        overflow: hidden hidden;
        layout: vertical;
        & > #place { background: $panel; }
        & > #rows { height: 1fr; }
        & > #search-bar { dock: bottom; padding: 0 1; display: none; }
        &.-searching > #search-bar { display: block; }
        &.-searching > Keys, &.-flat > Keys { display: none; }
    }
    """

    class Read(Message):
        """More of a log has been read."""

        def can_replace(self, message: Message) -> bool:
            """True for another of its kind: one drawing shows all that was read."""
            return isinstance(message, LogScreen.Read)

    def __init__(self, view: View, target: LogTarget | None = None) -> None:
        """Make the screen.

        Args:
            view: The state to begin with.
            target: The line to begin at; the newest if None.
        """
        super().__init__()
        self.window = LogWindow(
            view,
            target,
            on_read=lambda: self.post_message(self.Read()),
            say=lambda sentence: toast(self.app, sentence),
        )
        self._rows = LogRows(id="rows")
        self._head = Line(id="place")

    def compose(self) -> ComposeResult:
        """Make the line above with the place, the text, the search box and the keys."""
        yield self._head
        yield self._rows
        yield FilterBar(id="search-bar", input_id="search", hint="text or expression")
        yield Keys()

    def on_mount(self) -> None:
        """Look again and again whether the file has grown."""
        self.set_interval(_INTERVAL, self.look)

    def on_unmount(self) -> None:
        """Stop reading."""
        self.window.reader.stop()

    def show(self, view: View) -> None:
        """Draw the newest state."""
        self.window.view = view
        self.redraw()

    @on(Read)
    @on(LogRows.Resized)
    def _draw_again(self) -> None:
        self.redraw()

    def look(self) -> None:
        """Look whether the file has grown, unless paused."""
        log = self.window.log
        if log is not None and not self.window.view.paused:
            log.look()

    def redraw(self) -> None:
        """Draw the rows in sight, and the lines above and below them."""
        if not self.is_mounted or not self.size.width:
            return
        window = self.window
        rows = self._rows
        shown = window.rows(rows.width, rows.size.height)
        if shown is not None:
            rows.set_strips([self.inked(row) for row in shown])
            rows.chosen = window.marked
        self._head.show(*log_window.place_line(window, self.size.width))

    def _next(self, query: Alarms | TextQuery, way: int) -> None:
        self.window.seek(query, way)
        self.redraw()

    # -- keys --------------------------------------------------------------------------------------

    @on(LogRows.Moved)
    def _moved(self, event: LogRows.Moved) -> None:
        pager = self.window.pager
        if pager is None:
            return
        self.window.target = None
        if event.what == "row":
            pager.move(event.by)
        elif event.what == "page":
            pager.page(event.by)
        elif event.by < 0:
            pager.go_home()
        else:
            pager.go_end()
        self.redraw()

    @on(Rows.Chosen)
    def _clicked(self, event: Rows.Chosen) -> None:
        window = self.window
        if event.index < len(window.lines):
            window.mark = window.lines[event.index].row.start
            self.redraw()

    def action_follow(self) -> None:
        """Follow the newest line, or stay at the lines in sight."""
        pager = self.window.pager
        if pager is not None:
            if pager.follow:
                pager.move(0)
            else:
                pager.go_end()
            self.redraw()

    def action_hit(self, way: int) -> None:
        """Go to the next or previous hit."""
        query = self.window.query
        if query is None:
            self.action_search()
        else:
            self._next(query, way)

    def action_alarm(self, way: int) -> None:
        """Go to the next or previous error."""
        self._next(Alarms(), way)

    def action_warning(self, way: int) -> None:
        """Go to the next or previous warning."""
        self._next(Alarms(LineKind.WARNING), way)

    def action_fold(self) -> None:
        """Fold or unfold repeated lines and the prefixes that name the process."""
        self.window.fold = not self.window.fold
        self.redraw()

    def action_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self.window.wrap = not self.window.wrap
        self.redraw()

    def action_source(self, way: int) -> None:
        """Show another file of the run."""
        self.window.next_source(way)
        self.redraw()

    def action_other(self, way: int) -> None:
        """Show the log of the next or previous run."""
        view = self.window.view
        other = view.beside(way)
        if other is not None and other is not view.run:
            self.window.forget()
            self.post_message(RunsPanel.Picked(other.name))

    def action_copy(self) -> None:
        """Copy the marked line, else the newest one if followed, else the one at the top."""
        text = self.clip()
        if text:
            copy_text(self.app, text)

    def clip(self) -> str:
        """Mark the line that is copied, and return it."""
        row = self._mark_current()
        return row.whole if row is not None else ""

    def action_whole(self) -> None:
        """Show the line that would be copied in full."""
        pager = self.window.pager
        row = self._mark_current()
        if pager is None or row is None:
            return
        number = pager.log.number(row.start)
        which = f"line {number + row.count - 1:,} of " if number is not None else ""
        self.app.push_screen(
            LineScreen(row.whole, f"{which}{pager.log.path.name}", self.window.view)
        )

    def _mark_current(self) -> LogRow | None:
        row = self.window.mark_current()
        if row is not None:
            self.redraw()
        return row

    def action_back(self) -> None:
        """Leave the search line, stop the search under way, drop the search; then close."""
        log = self.window.log
        window = self.window
        if self.has_class("-searching"):
            self._close_search()
        elif window.search is not None and log is not None:
            log.stop_search()
            window.search = None
            self.redraw()
        elif window.query is not None:
            window.query = None
            self.redraw()
        else:
            self.dismiss()

    def action_search(self) -> None:
        """Open the line to type a search in."""
        query = self.window.query
        expression = query.search.expression if query is not None else ""
        self.query_one(FilterBar).open("search this log: ", expression)
        self._say_matches()
        self.add_class("-searching")

    @on(Input.Changed, "#search")
    def _say_matches(self) -> None:
        """Say beside the typed text how many of the lines in sight have it."""
        bar = self.query_one(FilterBar)
        view = self.window.view
        counts = log_window.hits_in_sight(self.window.lines, bar.input.value)
        enter = "searches the whole log"
        bar.say(counts, enter=enter, escape=view.keys["log.back"])

    @on(Input.Submitted, "#search")
    def _search(self, event: Input.Submitted) -> None:
        window = self.window
        pager = window.pager
        try:
            window.query = TextQuery(Search(event.value)) if event.value else None
        except ValueError as error:
            toast(self.app, str(error))
            return
        self._close_search()
        if window.query is not None and pager is not None:
            window.mark = None
            # From the newest line there is only the way back.
            self._next(window.query, -1 if pager.follow else 1)

    def _close_search(self) -> None:
        self.query_one(FilterBar).display = False
        self.remove_class("-searching")
        self._rows.focus(scroll_visible=False)
        self.redraw()
