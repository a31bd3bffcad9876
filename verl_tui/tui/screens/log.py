"""Log: the console as text, at the line of the chosen finding, at the cursor's step, or where the
traceback of a crash begins.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from textual import events, on
from textual.widgets import Input

from verl_tui.rendering.log.target import log_target
from verl_tui.rendering.text.piece import wrap
from verl_tui.tui.keys import WHY, HelpSection, actions
from verl_tui.tui.messages import Once, toast
from verl_tui.tui.screens.rows_screen import RowsPage, RowsScreen
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.widgets.filter_bar import FilterBar, Keys
from verl_tui.tui.widgets.rows import Line, Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from verl_tui.rendering.log.line_rows import LogRow
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.tui.screens.dashboard import Dashboard

_INTERVAL = 0.5
"""Seconds between two looks at the file."""
_MOST = 5000
"""Most rows of a line: more than any takes on a terminal of twenty columns."""


class LineScreen(RowsScreen):
    """One line of a log in full: as printed, or one row for each field of a JSONL record."""

    BINDINGS = actions("""
        escape,q,enter  dismiss  line.close  Close
    """)
    FOOTER = """
        copy        copies
        line.close  closes
    """
    WIDEST = 140

    def __init__(self, line: str, title: str, dashboard: Dashboard) -> None:
        """Make the screen.

        Args:
            line: As it was printed.
            title: Which line it is.
            dashboard: The one below.
        """
        from verl_tui.rendering.log.line_rows import whole_line

        super().__init__(dashboard)
        self._text = whole_line(line)
        self._title = title

    def page(self, width: int) -> RowsPage:
        """Wrap the line."""
        rows = [[(row, "")] for row in islice(wrap(self._text, width), _MOST)]
        return RowsPage(rows, title=self._title)

    def clip(self) -> str:
        """Return what is copied: all of it."""
        return self._text

    async def action_other(self, way: int) -> None:
        """Do nothing: the line is of this run."""


class LogRows(Rows):
    """The rows in sight; moves are left to the screen, which knows the whole log."""

    BINDINGS = actions("""
        j,down    screen.go('move', 1)     list.down       down
        k,up      screen.go('move', -1)    list.up         up
        ctrl+d    screen.go('page', 0.5)   list.half_down  half a page down
        ctrl+u    screen.go('page', -0.5)  list.half_up    half a page up
        pagedown,ctrl+f,space  screen.go('page', 1)   list.page_down  page down
        pageup,ctrl+b          screen.go('page', -1)  list.page_up    page up
        g,home    screen.go('go_end', -1)  list.first      first
        G,end     screen.go('go_end', 1)   list.last       last
    """)
    DEFAULT_CSS = "LogRows { height: 1fr; overflow: hidden hidden; }"

    class Stale(Once):
        """More of a log has been read, or there is room for other rows."""

    def on_resize(self) -> None:
        """Have as many rows drawn as fit now."""
        self.post_message(self.Stale())

    @on(events.MouseScrollDown)
    @on(events.MouseScrollUp)
    async def _scrolled(self, event: events.MouseEvent) -> None:
        event.stop()
        by = 3 if isinstance(event, events.MouseScrollDown) else -3
        await self.run_action(f"screen.go('move', {by})")


class LogScreen(BufferedScreen):
    """The text of one of the run's files."""

    SCREEN = ("l", "log", "Log: the console as text", "Log")
    AUTO_FOCUS = "LogRows"
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (10, "-tall")]  # noqa: RUF012 - as Textual has it
    HELP_SECTION = HelpSection("log", WHY, 40)
    FOOTER = """
        log.back                               Back
        log.search                             Search
        log.next_hit log.previous_hit          Hits
        log.next_alarm log.previous_alarm      Errors
        log.next_warning log.previous_warning  Warnings
        log.whole                              Whole line
        log.follow                             Follow
        log.unfold                             Unfold
        log.wrap                               Wrap
        log.copy                               Copy
        log.next_source                        Next file
    """
    BINDINGS = actions("""
        escape  back                  log.back              Back
        q,l     dismiss               log.close             Close
        f       follow                log.follow            Follow
        /       search                log.search            Search
        n       hit(1)                log.next_hit          Next hit
        N       hit(-1)               log.previous_hit      Previous hit
        e       alarm('error', 1)     log.next_alarm        Next error
        E       alarm('error', -1)    log.previous_alarm    Previous error
        !       alarm('warning', 1)   log.next_warning      Next warning
        @       alarm('warning', -1)  log.previous_warning  Previous warning
        u       flip('fold')          log.unfold            Unfold repeated lines and prefixes
        w       flip('wrap')          log.wrap              Wrap or cut lines

        enter      whole          log.whole            The whole line, or every field of a record
        y          app.copy_here  log.copy             Copy the line
        tab        source(1)      log.next_source      Next file
        shift+tab  source(-1)     log.previous_source  Previous file

        [  app.switch_run(-1)  log.previous  Previous run
        ]  app.switch_run(1)   log.next      Next run
    """)
    DEFAULT_CSS = """
    LogScreen {
        & > Line { background: $panel; }
        &.-flat > Keys { display: none; }
    }
    """

    def __init__(self, dashboard: Dashboard) -> None:
        """Make the screen, at the chosen finding, the cursor, or where a run crashed."""
        from verl_tui.rendering.log.window import LogWindow

        super().__init__()
        self._dashboard = dashboard
        view, finding = dashboard.view, dashboard.chosen_finding
        if not finding and view.cursor is None:
            crashes = (one for one in view.verdict.findings if one.id == "crash")
            finding = next(crashes, None)
        self.window = LogWindow(
            view,
            log_target(view.run, finding, view.cursor),
            on_read=lambda: self.post_message(LogRows.Stale()),
            say=lambda sentence: toast(self.app, sentence),
        )
        self._rows = LogRows()
        self._head = Line()
        self._bar = FilterBar("text or expression")

    def compose(self) -> ComposeResult:
        """Make the line above with the place, the text, the search box and the keys."""
        yield self._head
        yield self._rows
        yield self._bar
        yield Keys()

    def on_mount(self) -> None:
        """Check again and again whether the file has grown."""
        self.set_interval(_INTERVAL, self.check)

    def on_unmount(self) -> None:
        """Stop reading."""
        self.window.reader.stop()

    def show(self, view: View) -> None:
        """Draw the newest state."""
        if view.run is not self.window.view.run:
            self.window.forget()
        self.window.view = view
        self.redraw()

    def check(self) -> None:
        """Check whether the file has grown, unless paused."""
        pager = self.window.pager
        if pager and not self.window.view.paused:
            pager.log.check()

    @on(LogRows.Stale)
    def redraw(self) -> None:
        """Draw the rows in sight, and the lines above and below them."""
        from verl_tui.rendering.log.window import place_line

        if not self.is_mounted or not self.size.width:
            return
        window, rows = self.window, self._rows
        shown = window.rows(rows.width, rows.size.height)
        if shown is not None:
            rows.set(shown, range(len(shown)))
            rows.chosen = window.marked
        self._head.show(*place_line(window, self.size.width))

    # -- keys --------------------------------------------------------------------------------------

    def action_go(self, way: str, by: float) -> None:
        """Go by so many rows or pages, or to an end: `move`, `page`, `go_end`."""
        pager = self.window.pager
        if pager:
            self.window.target = None
            getattr(pager, way)(by)
            self.redraw()

    @on(Rows.Chosen)
    def _clicked(self, event: Rows.Chosen) -> None:
        if event.entry < len(self.window.lines):
            self.window.mark = self.window.lines[event.entry].row.start
            self.redraw()

    def action_follow(self) -> None:
        """Follow the newest line, or stay at the lines in sight."""
        pager = self.window.pager
        follows = pager and pager.follow
        self.action_go(*(("move", 0) if follows else ("go_end", 1)))

    def action_hit(self, way: int) -> None:
        """Go to the next or previous hit."""
        if not self.window.query:
            self.action_search()
        else:
            self.window.seek(self.window.query, way)
            self.redraw()

    def action_alarm(self, kind: str, way: int) -> None:
        """Go to the next or previous error, or warning."""
        from verl_tui.rendering.log.line_rows import Alarms, LineKind

        self.window.seek(Alarms(LineKind(kind)), way)
        self.redraw()

    def action_flip(self, what: str) -> None:
        """Fold or unfold repeated lines and the prefixes that name the process; wrap or cut."""
        setattr(self.window, what, not getattr(self.window, what))
        self.redraw()

    def action_source(self, way: int) -> None:
        """Show another file of the run."""
        self.window.next_source(way)
        self.redraw()

    def clip(self) -> str:
        """Mark the line that is copied, and return it."""
        row = self._mark_current()
        return row.whole if row else ""

    def action_whole(self) -> None:
        """Show the line that would be copied in full."""
        pager, row = self.window.pager, self._mark_current()
        if pager and row:
            title, number = pager.log.path.name, pager.log.number(row.start)
            if number is not None:
                title = f"line {number + row.times - 1:,} of {title}"
            self.app.push_screen(LineScreen(row.whole, title, self._dashboard))

    def _mark_current(self) -> LogRow | None:
        row = self.window.mark_current()
        if row:
            self.redraw()
        return row

    def action_back(self) -> None:
        """Leave the search line, stop the search under way, drop the search; then close."""
        window = self.window
        if self._bar.display:
            self._bar.close()
        elif window.pager and window.pager.log.search:
            window.stop_search()
        elif window.query:
            window.query = None
        else:
            self.dismiss()
        self.redraw()

    # -- search ------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Open the line to type a search in."""
        query = self.window.query
        self._bar.open("search this log: ", query.search.expression if query else "")
        self._say_matches()
        # the bar may have come while the rows were made
        self.call_after_refresh(self.redraw)

    @on(Input.Changed)
    def _say_matches(self) -> None:
        """Say beside the typed text how many of the lines in sight have it."""
        from verl_tui.rendering.log.window import hits_in_sight

        counts = hits_in_sight(self.window.lines, self._bar.input.value)
        escape = self.window.view.keys["log.back"]
        self._bar.say(counts, enter="searches the whole log", escape=escape)

    @on(Input.Submitted)
    def _search(self, event: Input.Submitted) -> None:
        from verl_tui.rendering.log.line_rows import TextQuery
        from verl_tui.rendering.text.search import Search

        window, pager = self.window, self.window.pager
        try:
            window.query = TextQuery(Search(event.value)) if event.value else None
        except ValueError as error:
            toast(self.app, str(error))
            return
        self._bar.close()
        if window.query and pager:
            window.mark = None
            # From the newest line there is only the way back.
            window.seek(window.query, -1 if pager.follow else 1)
        self.redraw()
