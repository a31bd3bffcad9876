"""The console of the shown run as text, over the full screen: follow it, search it, go from error
to error.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual import on
from textual.binding import Binding
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Input

from verl_tui.on_demand.log import LogReader, ReplayCutoff
from verl_tui.rendering.log.line_kinds import Alarms, LineKind, TextQuery
from verl_tui.rendering.log.pager import LogLayout, Pager, Unread
from verl_tui.rendering.log.pieces import ROLES, drawn, number_cells
from verl_tui.rendering.log.seeking import Seeker
from verl_tui.rendering.log.target import LogTarget, texts
from verl_tui.rendering.text.printable import middle, printable, wrapped
from verl_tui.rendering.text.search import Search
from verl_tui.rendering.text.wrap import fit
from verl_tui.tui.export import copy_text
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.screens.log.line import LineScreen
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.terminal.styles import RoleStyled
from verl_tui.tui.widgets.input_line import Box
from verl_tui.tui.widgets.line import Line as StatusLine
from verl_tui.tui.widgets.log_rows import LogRows
from verl_tui.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.timer import Timer

    from verl_tui.on_demand.log import Log
    from verl_tui.records import SourceStatus
    from verl_tui.rendering.log.pager import ScreenRow
    from verl_tui.rendering.log.rows import LogRow
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece

_LOOKS = 0.5
"""Seconds between two looks at the file while somebody looks at its text."""
_ROOMY = 60
"""Columns from which on lines have numbers, and names their full length."""
_KEYS = (
    *(
        "/ search",
        " · n N hits",
        " · e E errors",
        " · ! @ warnings",
        " · enter whole line",
        " · f follow",
    ),
    *(" · u unfold", " · w wrap", " · y copy", " · tab next file", " · esc back"),
)
"""Those that there is no room for are in the help."""


class LogScreen(BufferedScreen[None], RoleStyled):
    """The text of one of the run's files."""

    AUTO_FOCUS = "#rows"
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (10, "-tall")]  # noqa: RUF012 - an instance variable to Textual
    PREFIX = "log"
    STYLED_ROLES = ROLES
    HELP_SECTION = HelpSection("log", rank=40)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="log.back"),
        Binding("q,l", "dismiss", "Close", id="log.close"),
        Binding("f", "follow", "Follow", id="log.follow"),
        Binding("slash", "search", "Search", key_display="/", id="log.search"),
        Binding("n", "hit(1)", "Next hit", id="log.next_hit"),
        Binding("N", "hit(-1)", "Previous hit", id="log.previous_hit"),
        Binding("e", "alarm(1)", "Next error", id="log.next_alarm"),
        Binding("E", "alarm(-1)", "Previous error", id="log.previous_alarm"),
        Binding(
            "exclamation_mark", "warning(1)", "Next warning", key_display="!", id="log.next_warning"
        ),
        Binding(
            "at", "warning(-1)", "Previous warning", key_display="@", id="log.previous_warning"
        ),
        Binding("u", "fold", "Unfold prefixes and what repeats itself", id="log.unfold"),
        Binding("w", "wrap", "Wrap or cut lines", id="log.wrap"),
        Binding("enter", "whole", "The whole line; of a record every field", id="log.whole"),
        Binding("y", "copy", "Copy the line", id="log.copy"),
        Binding("tab", "source(1)", "Next file", id="log.next_source"),
        Binding("shift+tab", "source(-1)", "Previous file", id="log.previous_source"),
        Binding("left_square_bracket", "other(-1)", "Previous run", id="log.previous"),
        Binding("right_square_bracket", "other(1)", "Next run", id="log.next"),
    ]
    DEFAULT_CSS = """
    LogScreen {
        overflow: hidden hidden;
        layout: vertical;
        & > #place { background: $panel; }
        & > #rows { height: 1fr; }
        & > #search { dock: bottom; height: 1; border: none; padding: 0 1; display: none; }
        &.-searching > #search { display: block; }
        &.-searching > #keys, &.-flat > #keys { display: none; }
        & > .log--error { color: $text-error; }
        & > .log--warning { color: $text-warning; }
        & > .log--mark { color: $text-success; }
        & > .log--step { color: $text-primary; }
        & > .log--progress { color: $text-muted; }
        & > .log--plain { color: $foreground; }
        & > .log--tag { color: $text-muted; }
        & > .log--count { color: $text-primary; text-style: bold; }
        & > .log--number { color: $text-disabled; }
        & > .log--hit { color: $text-primary; text-style: reverse; }
    }
    """

    class Read(Message):
        """More of a log has been read."""

        def can_replace(self, message: Message) -> bool:
            """One is enough: whoever draws, draws all there is."""
            return isinstance(message, LogScreen.Read)

    def __init__(self, view: View, aim: LogTarget | None = None) -> None:
        """Make the screen.

        Args:
            view: The state to begin with.
            aim: Which line to begin at; at the newest if none.
        """
        super().__init__()
        self._view = view
        self._reader = LogReader(lambda: self.post_message(self.Read()))
        self._pagers: dict[str, Pager] = {}
        self._path = aim.path if aim is not None else None
        self._rows = LogRows(id="rows")
        self._head, self._foot = StatusLine(id="place"), StatusLine(id="keys")
        self._seeker = Seeker(aim, self._say)
        self._wrap, self._fold = False, True
        self._lines: Sequence[ScreenRow] = ()
        """What is in sight."""
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """The text, a line above that says where one is, and one below for the keys."""
        yield self._head
        yield self._rows
        yield self._foot
        yield Box("text or expression · enter searches, esc leaves", id="search")

    def on_mount(self) -> None:
        """Look at the file again and again: what grows is to be seen."""
        self._timer = self.set_interval(_LOOKS, self._look)

    def on_unmount(self) -> None:
        """Stop reading."""
        self._reader.stop()

    def show(self, view: View) -> None:
        """Take note of the newest state: which run, which files."""
        self._view = view
        self.redraw()

    @on(Read)
    @on(LogRows.Resized)
    def _read(self) -> None:
        self.redraw()

    def _look(self) -> None:
        if (log := self._shown_log) is not None and not self._view.paused:
            log.look()

    # -- what is shown -----------------------------------------------------------------------------

    @property
    def _source(self) -> SourceStatus | None:
        sources = texts(self._view.run)
        return next(
            (one for one in sources if one.path == self._path), sources[0] if sources else None
        )

    @property
    def _shown_log(self) -> Log | None:
        source, view = self._source, self._view
        if source is None:
            return None
        played = view.replay is not None and view.run is not None
        cutoff = (
            ReplayCutoff(source.size, view.run.step) if played and view.run is not None else None
        )
        return self._reader.log(source.path, cutoff)

    @property
    def _pager(self) -> Pager | None:
        log = self._shown_log
        if log is None:
            return None
        path = str(log.path)
        if path not in self._pagers or self._pagers[path].log is not log:
            self._pagers[path] = Pager(log)
        return self._pagers[path]

    def redraw(self) -> None:
        """Draw what is in sight, and say where that is."""
        if not self.is_mounted or not self.size.width:
            return
        pager, rows = self._pager, self._rows
        if pager is None or pager.log.problem is not None:
            self._lines = ()
            self._draw_words(self._why_nothing(pager))
        elif pager.log.known:
            self._seeker.arrive(pager)
            self._draw_lines(pager, rows)
        self._draw_status(pager)

    def _why_nothing(self, pager: Pager | None) -> str:
        if pager is not None:
            return f"{pager.log.path.name}: {pager.log.problem}"
        if self._view.run is None:
            return "No run yet."
        return "No source of this run is text that can be read again."

    def _draw_words(self, words: str) -> None:
        rows = self._rows
        rows.chosen = None
        rows.set_strips([Strip([Segment(line)]) for line in wrapped(words, max(1, rows.width))])

    def _draw_lines(self, pager: Pager, rows: LogRows) -> None:
        width, height = rows.width, rows.size.height
        if width < 1 or height < 1:
            return
        roomy = width >= _ROOMY
        numbers = number_cells(pager.log, self._lines) if roomy else 0
        query = self._seeker.query
        apart = query.found if query is not None else None
        look = LogLayout(
            max(1, width - 2 - numbers), self._wrap, self._fold, 16 if roomy else 5, apart
        )
        try:
            self._lines = pager.lines(look, height)
        except Unread:
            return  # what was seen before stays until more is read
        if roomy and number_cells(pager.log, self._lines) != numbers:
            self._draw_lines(pager, rows)
            return
        if not self._lines:
            self._draw_words("The file is empty.")
            return
        hits = query.search if query is not None else None
        numbered = [pager.log.number(line.row.start) if numbers else None for line in self._lines]
        rows.set_strips(
            [
                self.inked(drawn(line, number, numbers, hits, ascii_only=self._view.ascii))
                for line, number in zip(self._lines, numbered, strict=True)
            ]
        )
        rows.chosen = self._seeker.marked(self._lines)

    def _draw_status(self, pager: Pager | None) -> None:
        self._head.show(*self._place(pager))
        query = self._seeker.query
        asked: list[Piece] = []
        if query is not None:
            asked.append((f"/{query.search.expression}/ ", "accent"))
            asked += [("long lines not searched ", "warning")] if query.search.given_up else []
        self._foot.show([*asked, *((key, "dim") for key in _KEYS)])

    def _place(self, pager: Pager | None) -> tuple[list[Piece], list[Piece]]:
        """Return the first line: which file of which run, and where in it one is."""
        width, run, source = self.size.width, self._view.run, self._source
        left: list[Piece] = [("log ", "dim")] if width >= _ROOMY else []
        if run is not None and width >= _ROOMY:
            left.append(
                (f"{middle(run.name, max(8, width // 3), ascii_only=self._view.ascii)}  ", "strong")
            )
        if pager is None or source is None:
            return left, []
        paths = [one.path for one in texts(run)]
        which = f" {paths.index(source.path) + 1}/{len(paths)}" if len(paths) > 1 else ""
        name = middle(
            PurePath(source.path).name, max(8, width // 2 - 8), ascii_only=self._view.ascii
        )
        left.append((f"{name}{which}", ""))
        if source.unreadable:
            left.append((f"  {source.unreadable:,} unreadable", "warning"))
        if doing := self._seeker.doing(pager.log):
            return left, [(doing, "accent")]
        share = f"{pager.share(self._lines[-1])}%" if self._lines else ""
        return left, [("following" if pager.follow else share, "dim")]

    def _next(self, query: Alarms | TextQuery, way: int) -> None:
        pager = self._pager
        if pager is not None and pager.log.known:
            self._seeker.next(pager, self._lines, query, way)
            self.redraw()

    # -- keys --------------------------------------------------------------------------------------

    @on(LogRows.Moved)
    def _moved(self, event: LogRows.Moved) -> None:
        pager = self._pager
        if pager is None:
            return
        self._seeker.aim = None
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
        if event.index < len(self._lines):
            self._seeker.mark = self._lines[event.index].row.start
            self.redraw()

    def action_follow(self) -> None:
        """Show the newest line as it comes, or stay where we are."""
        pager = self._pager
        if pager is not None:
            if pager.follow:
                pager.move(0)
            else:
                pager.go_end()
            self.redraw()

    def action_hit(self, way: int) -> None:
        """Go to the next or previous hit."""
        if (query := self._seeker.query) is None:
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
        """Show every line as it was printed, or fold again who printed it and what repeats
        itself.
        """
        self._fold = not self._fold
        self.redraw()

    def action_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self._wrap = not self._wrap
        self.redraw()

    def action_source(self, way: int) -> None:
        """Show another file of the run."""
        paths, source = [one.path for one in texts(self._view.run)], self._source
        if source is not None and len(paths) > 1:
            self._path = paths[(paths.index(source.path) + way) % len(paths)]
            self._seeker.drop()
            self.redraw()

    def action_other(self, way: int) -> None:
        """Look at the log of another run."""
        names, run = list(self._view.monitor.runs), self._view.run
        if run is not None and len(names) > 1:
            self._seeker.drop()
            self.post_message(RunsPanel.Picked(names[(names.index(run.name) + way) % len(names)]))

    def action_copy(self) -> None:
        """Copy the line that one has gone to, else the newest one if followed, else the one at the
        top.
        """
        if text := self.clip():
            copy_text(self.app, text)

    def clip(self) -> str:
        """Go to the line that is copied, and return it."""
        row = self._go_to_row()
        return row.whole if row is not None else ""

    def action_whole(self) -> None:
        """Show the line that would be copied in full."""
        pager, row = self._pager, self._go_to_row()
        if pager is None or row is None:
            return
        number = pager.log.number(row.start)
        which = f"line {number + row.count - 1:,} of " if number is not None else ""
        self.app.push_screen(LineScreen(row.whole, f"{which}{pager.log.path.name}", self._view))

    def _go_to_row(self) -> LogRow | None:
        """Mark the row one has gone to, else the newest one if followed, else the one at the top;
        return it.
        """
        pager, lines = self._pager, self._lines
        if pager is None or not lines:
            return None
        at = self._seeker.marked(lines)
        row = lines[at if at is not None else -1 if pager.follow else 0].row
        self._seeker.mark = row.start
        self.redraw()
        return row

    def action_back(self) -> None:
        """Undo the last of: what is typed, a search that goes on, what was searched for; then
        close.
        """
        log, seeker = self._shown_log, self._seeker
        if self.has_class("-searching"):
            self._close_search()
        elif seeker.search is not None and log is not None:
            log.stop_search()
            seeker.search = None
            self.redraw()
        elif seeker.query is not None:
            seeker.query = None
            self.redraw()
        else:
            self.dismiss()

    def action_search(self) -> None:
        """Ask what to search for."""
        box = self.query_one("#search", Input)
        query = self._seeker.query
        box.value = query.search.expression if query is not None else ""
        box.display = True  # at once: whoever types fast loses no key
        self.add_class("-searching")
        self.set_focus(box, scroll_visible=False)

    @on(Input.Submitted, "#search")
    def _asked(self, event: Input.Submitted) -> None:
        pager, seeker = self._pager, self._seeker
        try:
            seeker.query = TextQuery(Search(event.value)) if event.value else None
        except ValueError as error:
            self._say(str(error))
            return
        self._close_search()
        if seeker.query is not None and pager is not None:
            seeker.mark = None
            # Who sees the newest line looks back from there.
            self._next(seeker.query, -1 if pager.follow else 1)

    def _close_search(self) -> None:
        self.query_one("#search", Input).display = False
        self.remove_class("-searching")
        self._rows.focus(scroll_visible=False)
        self.redraw()

    def _say(self, sentence: str) -> None:
        """Say something in one line, in place of what was said before."""
        self.app.clear_notifications()
        self.notify(fit(printable(sentence), max(12, self.size.width - 8)), timeout=4, markup=False)
