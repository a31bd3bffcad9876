"""The console of the shown run as text, over the full screen: follow it, search it, go from error to error."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual import on
from textual.binding import Binding
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Input

from verl_tui.logtext import LogReader
from verl_tui.tui.log.aim import Aim, texts
from verl_tui.tui.log.drawing import ROLES, drawn, number_cells
from verl_tui.tui.log.kinds import Alarms, Kind, StepLine, TextQuery
from verl_tui.tui.log.pager import Look, Pager, Unread
from verl_tui.tui.panels.runs import RunsPanel
from verl_tui.tui.samples.search import Search
from verl_tui.tui.takeaway import copy_text
from verl_tui.tui.widgets.box import Box
from verl_tui.tui.widgets.line import Line as StatusLine
from verl_tui.tui.widgets.line import Piece
from verl_tui.tui.widgets.rows import Rows
from verl_tui.tui.widgets.words import middle, printable, wrapped
from verl_tui.tui.widgets.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style
    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.timer import Timer

    from verl_tui.logtext import Hunt, Log
    from verl_tui.records import SourceStatus
    from verl_tui.tui.log.pager import Line
    from verl_tui.tui.view import View

_LOOKS = 0.5
"""Seconds between two looks at the file while somebody looks at its text."""
_ROOMY = 60
"""Columns from which on lines have numbers, and names their full length."""
_KEYS = "/ search · n N hits · e E errors · ! @ warnings · f follow · u unfold · w wrap · y copy · esc back"


class LogRows(Rows):
    """The rows in sight; where to move is decided by who knows the whole log."""

    DEFAULT_CSS = "LogRows { overflow: hidden hidden; }"

    class Moved(Message):
        """The user wants to see other rows."""

        def __init__(self, what: str, by: int) -> None:
            self.what, self.by = what, by
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(choosing=True, id=id)

    def action_move(self, by: int) -> None:
        """Move by rows."""
        self.post_message(self.Moved("row", by))

    def action_page(self, by: int) -> None:
        """Move by a screenful."""
        self.post_message(self.Moved("page", by))

    def action_end(self, way: int) -> None:
        """Go to the beginning or the end of the log."""
        self.post_message(self.Moved("end", way))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move down."""
        event.stop()
        self.action_move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move up."""
        event.stop()
        self.action_move(-3)


class LogScreen(Screen[None]):
    """The text of one of the run's files."""

    AUTO_FOCUS = "#rows"
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (10, "-tall")]  # noqa: RUF012 - an instance variable to Textual
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"log--{role}" for role in ROLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="log.back"),
        Binding("q,l", "dismiss", "Close", id="log.close"),
        Binding("f", "follow", "Follow", id="log.follow"),
        Binding("slash", "search", "Search", key_display="/", id="log.search"),
        Binding("n", "hit(1)", "Next hit", id="log.next_hit"),
        Binding("N", "hit(-1)", "Previous hit", id="log.previous_hit"),
        Binding("e", "alarm(1)", "Next error", id="log.next_alarm"),
        Binding("E", "alarm(-1)", "Previous error", id="log.previous_alarm"),
        Binding("exclamation_mark", "warning(1)", "Next warning", key_display="!", id="log.next_warning"),
        Binding("at", "warning(-1)", "Previous warning", key_display="@", id="log.previous_warning"),
        Binding("u", "fold", "Unfold prefixes and what repeats itself", id="log.unfold"),
        Binding("w", "wrap", "Wrap or cut lines", id="log.wrap"),
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

    def __init__(self, view: View, aim: Aim | None = None) -> None:
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
        self._aim = aim
        """What is still to be found."""
        self._wrap, self._fold = False, True
        self._query: TextQuery | None = None
        self._hunted: Hunt | None = None
        """The search of which one waits for the end."""
        self._again = False
        """Whether it has begun again at the other end of the log."""
        self._mark: int | None = None
        """Where the line begins that one has gone to."""
        self._lines: Sequence[Line] = ()
        """What is in sight."""
        self._styles_by_role: dict[str, Style] = {}
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """The text, a line above that says where one is, and one below for the keys."""
        yield StatusLine(id="place")
        yield LogRows(id="rows")
        yield StatusLine(id="keys")
        yield Box("text or expression · enter searches, esc leaves", id="search")

    def on_mount(self) -> None:
        """Look at the file again and again: what grows is to be seen."""
        self._timer = self.set_interval(_LOOKS, self._look)
        self.app.theme_changed_signal.subscribe(self, lambda _: self.call_after_refresh(self._draw))

    def on_unmount(self) -> None:
        """Stop reading."""
        self._reader.stop()

    def on_screen_resume(self) -> None:
        """Draw when the size is known."""
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        """Lay out anew."""
        self.call_after_refresh(self._draw)

    def notify_style_update(self) -> None:
        """Take the colours of another theme."""
        super().notify_style_update()
        self._styles_by_role = {}

    def show(self, view: View) -> None:
        """Take note of the newest state: which run, which files."""
        self._view = view
        self._draw()

    @on(Read)
    def _read(self) -> None:
        self._draw()

    def _look(self) -> None:
        if (log := self._log) is not None and not self._view.paused:
            log.look()

    # -- what is shown ----------------------------------------------------------------------------------------------

    @property
    def _rows(self) -> LogRows:
        return self.query_one("#rows", LogRows)

    @property
    def _source(self) -> SourceStatus | None:
        sources = texts(self._view.run)
        return next((one for one in sources if one.path == self._path), sources[0] if sources else None)

    @property
    def _log(self) -> Log | None:
        source = self._source
        return self._reader.log(source.path) if source is not None else None

    @property
    def _pager(self) -> Pager | None:
        log = self._log
        if log is None:
            return None
        path = str(log.path)
        if path not in self._pagers or self._pagers[path].log is not log:
            self._pagers[path] = Pager(log)
        return self._pagers[path]

    def _draw(self) -> None:
        if not self.is_mounted or not self.size.width:
            return
        if not self._styles_by_role:
            self._styles_by_role = {role: self.get_component_rich_style(f"log--{role}") for role in ROLES}
        pager, rows = self._pager, self._rows
        if pager is None or pager.log.problem is not None:
            self._lines = ()
            self._draw_words(self._why_nothing(pager))
        elif pager.log.known:
            self._take_aim(pager)
            self._end_hunt(pager)
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
        apart = self._query.found if self._query is not None else None
        look = Look(max(1, width - 2 - numbers), self._wrap, self._fold, 16 if roomy else 5, apart)
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
        hits = self._query.search if self._query is not None else None
        numbered = [pager.log.number(line.row.start) if numbers else None for line in self._lines]
        rows.set_strips(
            [
                self._strip(drawn(line, number, numbers, hits, ascii_only=self._view.ascii))
                for line, number in zip(self._lines, numbered, strict=True)
            ]
        )
        rows.chosen = self._marked()

    def _strip(self, pieces: Sequence[Piece]) -> Strip:
        return Strip([Segment(text, self._styles_by_role.get(role)) for text, role in pieces if text])

    def _marked(self) -> int | None:
        """Return which row in sight is the one that one has gone to."""
        mark = self._mark
        if mark is None:
            return None
        return next((at for at, line in enumerate(self._lines) if line.row.start <= mark < line.row.end), None)

    def _draw_status(self, pager: Pager | None) -> None:
        width, run, source = self.size.width, self._view.run, self._source
        left: list[Piece] = [("log ", "dim")] if width >= _ROOMY else []
        if run is not None and width >= _ROOMY:
            left.append((f"{middle(run.name, max(8, width // 3), ascii_only=self._view.ascii)}  ", "strong"))
        right: list[Piece] = []
        if pager is not None and source is not None:
            paths = [one.path for one in texts(run)]
            which = f" {paths.index(source.path) + 1}/{len(paths)}" if len(paths) > 1 else ""
            name = middle(PurePath(source.path).name, max(8, width // 2 - 8), ascii_only=self._view.ascii)
            left.append((f"{name}{which}", ""))
            right = [(self._where(pager), "accent" if self._hunting(pager) else "dim")]
        self.query_one("#place", StatusLine).show(left, right)
        asked: list[Piece] = [(f"/{self._query.search.expression}/ ", "accent")] if self._query is not None else []
        given_up: list[Piece] = [("long lines not searched ", "warning")] if self._given_up else []
        self.query_one("#keys", StatusLine).show([*asked, *given_up, (fit(_KEYS, width), "dim")])

    @property
    def _given_up(self) -> bool:
        return self._query is not None and self._query.search.given_up

    def _hunting(self, pager: Pager) -> bool:
        return self._hunted is not None and self._hunted is pager.log.hunt

    def _where(self, pager: Pager) -> str:
        hunt, log = self._hunted, pager.log
        if hunt is not None and hunt is log.hunt:
            return f"searching {hunt.share(log.size):.0%}"
        if self._aim is not None and self._aim.line is not None:
            return f"looking for line {self._aim.line}"
        if pager.follow:
            return "following"
        return f"{pager.share(self._lines[-1])}%" if self._lines else ""

    # -- going to a line --------------------------------------------------------------------------------------------

    def _take_aim(self, pager: Pager) -> None:
        """Go to the line that the log was opened for, once it is known where that is."""
        aim = self._aim
        if aim is None:
            return
        if aim.line is not None:
            start = pager.log.start_of(aim.line)
            if start is None:
                return
            if start < 0:
                self._say(f"{pager.log.path.name} has no line {aim.line}")
            else:
                self._go(pager, start)
        elif aim.step is not None:
            self._hunt(pager, StepLine(aim.step), pager.log.size, -1, again=True)
        self._aim = None

    def _go(self, pager: Pager, start: int) -> None:
        self._mark = start
        pager.go_to(start)

    def _hunt(self, pager: Pager, query: Alarms | StepLine | TextQuery, origin: int, way: int, *, again: bool) -> None:
        self._hunted, self._again = pager.log.find(query, origin, way), again

    def _end_hunt(self, pager: Pager) -> None:
        """Go to what was searched for, or go on at the other end of the log."""
        hunt, log = self._hunted, pager.log
        if hunt is None or not hunt.done:
            return
        self._hunted = None
        query = hunt.query
        assert isinstance(query, Alarms | StepLine | TextQuery)
        if hunt.found is not None:
            self._go(pager, hunt.found)
            if self._again and not isinstance(query, StepLine):
                self._say("from the beginning" if hunt.way > 0 else "from the end")
        elif self._again:
            self._say(f"no {query.words} in {log.path.name}")
        else:
            self._hunt(pager, query, 0 if hunt.way > 0 else log.size, hunt.way, again=True)

    def _next(self, query: Alarms | TextQuery, way: int) -> None:
        """Look for the next line from where one is."""
        pager = self._pager
        if pager is None or not pager.log.known:
            return
        at, lines = self._marked(), self._lines
        if at is not None:
            origin = lines[at].row.end if way > 0 else lines[at].row.start
        elif not lines or pager.follow:
            origin = pager.log.size
        else:
            origin = lines[0].row.start if way > 0 else lines[-1].row.end
        self._hunt(pager, query, origin, way, again=False)
        self._draw()

    # -- keys -------------------------------------------------------------------------------------------------------

    @on(LogRows.Moved)
    def _moved(self, event: LogRows.Moved) -> None:
        pager = self._pager
        if pager is None:
            return
        self._aim = None
        if event.what == "row":
            pager.move(event.by)
        elif event.what == "page":
            pager.page(event.by)
        elif event.by < 0:
            pager.go_home()
        else:
            pager.go_end()
        self._draw()

    @on(Rows.Chosen)
    def _clicked(self, event: Rows.Chosen) -> None:
        if event.index < len(self._lines):
            self._mark = self._lines[event.index].row.start
            self._draw()

    def action_follow(self) -> None:
        """Show the newest line as it comes, or stay where we are."""
        pager = self._pager
        if pager is not None:
            if pager.follow:
                pager.move(0)
            else:
                pager.go_end()
            self._draw()

    def action_hit(self, way: int) -> None:
        """Go to the next or previous hit."""
        if self._query is None:
            self.action_search()
        else:
            self._next(self._query, way)

    def action_alarm(self, way: int) -> None:
        """Go to the next or previous error."""
        self._next(Alarms(), way)

    def action_warning(self, way: int) -> None:
        """Go to the next or previous warning."""
        self._next(Alarms(Kind.WARNING), way)

    def action_fold(self) -> None:
        """Show every line as it was printed, or fold again who printed it and what repeats itself."""
        self._fold = not self._fold
        self._draw()

    def action_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self._wrap = not self._wrap
        self._draw()

    def action_source(self, way: int) -> None:
        """Show another file of the run."""
        paths, source = [one.path for one in texts(self._view.run)], self._source
        if source is not None and len(paths) > 1:
            self._path = paths[(paths.index(source.path) + way) % len(paths)]
            self._mark = self._aim = self._hunted = None
            self._draw()

    def action_other(self, way: int) -> None:
        """Look at the log of another run."""
        names, run = list(self._view.monitor.runs), self._view.run
        if run is not None and len(names) > 1:
            self._mark = self._aim = self._hunted = None
            self.post_message(RunsPanel.Picked(names[(names.index(run.name) + way) % len(names)]))

    def action_copy(self) -> None:
        """Copy the line that one has gone to, else the newest one if followed, else the one at the top."""
        if text := self.clip():
            copy_text(self.app, text)

    def clip(self) -> str:
        """Go to the line that is copied, and return it."""
        pager, lines = self._pager, self._lines
        if pager is None or not lines:
            return ""
        at = self._marked()
        line = lines[at if at is not None else -1 if pager.follow else 0]
        self._mark = line.row.start
        self._draw()
        return line.row.whole

    def action_back(self) -> None:
        """Undo the last of: what is typed, a search that goes on, what was searched for; then close."""
        log = self._log
        if self.has_class("-searching"):
            self._close_search()
        elif self._hunted is not None and log is not None:
            log.stop_hunt()
            self._hunted = None
            self._draw()
        elif self._query is not None:
            self._query = None
            self._draw()
        else:
            self.dismiss()

    def action_search(self) -> None:
        """Ask what to search for."""
        box = self.query_one("#search", Input)
        box.value = self._query.search.expression if self._query is not None else ""
        box.display = True  # at once: whoever types fast loses no key
        self.add_class("-searching")
        self.set_focus(box, scroll_visible=False)

    @on(Input.Submitted, "#search")
    def _asked(self, event: Input.Submitted) -> None:
        pager = self._pager
        try:
            self._query = TextQuery(Search(event.value)) if event.value else None
        except ValueError as error:
            self._say(str(error))
            return
        self._close_search()
        if self._query is not None and pager is not None:
            self._mark = None
            # Who sees the newest line looks back from there.
            self._next(self._query, -1 if pager.follow else 1)

    def _close_search(self) -> None:
        self.query_one("#search", Input).display = False
        self.remove_class("-searching")
        self._rows.focus(scroll_visible=False)
        self._draw()

    def _say(self, sentence: str) -> None:
        """Say something in one line, in place of what was said before."""
        self.app.clear_notifications()
        self.notify(fit(printable(sentence), max(12, self.size.width - 8)), timeout=4, markup=False)
