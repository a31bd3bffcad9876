"""The samples of a run over the full screen: step by step, prompt by prompt, sample by sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.widgets import Input

from verl_tui.rendering.filter_words import filter_label
from verl_tui.rendering.samples import header_lines, query
from verl_tui.rendering.samples.browse import Browse
from verl_tui.rendering.samples.export import Export, whole
from verl_tui.rendering.samples.panel_rows import empty_rows
from verl_tui.rendering.samples.query import SampleQuery
from verl_tui.tui.export import copy_text, folder
from verl_tui.tui.keys.help_section import HelpSection
from verl_tui.tui.keys.tasks import SAMPLES
from verl_tui.tui.screens.samples.keys import SAMPLES_KEYS
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.toast import toast
from verl_tui.tui.widgets.filter_bar import FilterBar
from verl_tui.tui.widgets.footer import Keys
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.rows import Rows
from verl_tui.tui.widgets.side_by_side import SideBySide

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from verl_tui.on_demand.samples import SamplePage
    from verl_tui.rendering.samples.chosen import SampleChoice
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run


class SamplesScreen(BufferedScreen["SampleChoice | None"]):
    """A list of a step's samples beside one of them; returns the sample that was shown last."""

    AUTO_FOCUS = "#text"
    HORIZONTAL_BREAKPOINTS = [(0, "-single"), (80, "-double")]  # noqa: RUF012 - as Textual has it
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (12, "-low"), (20, "-tall")]  # noqa: RUF012
    FOOTER = (
        ("samples.back", "Back"),
        ("samples.next samples.previous", "Sample"),
        ("samples.older samples.newer", "Step"),
        ("samples.filter", "Filter"),
        ("samples.sort", "Sort"),
        ("samples.mates", "Same prompt"),
    )
    """Keys that the last row begins with, in fewer words."""
    HELP_SECTION = HelpSection(
        "all samples of a step", rank=20, notes=query.HELP, task=SAMPLES
    )
    BINDINGS = SAMPLES_KEYS
    DEFAULT_CSS = """
    SamplesScreen {
        overflow: hidden hidden;
        layout: vertical;
        & > Line { padding: 0 1; }
        & > #place { background: $panel; }
        & > #query-bar { dock: bottom; padding: 0 1; display: none; }
        & > Keys { dock: bottom; }
        &.-single {
            & > Line, & #text, & #sample { padding: 0; }
            & #side { display: none; border-right: none; }
            & #main { width: 1fr; }
            & > Keys { display: none; }
            & > .-list #side { display: block; width: 1fr; max-width: 100%; }
            & > .-list #main { display: none; }
            & > .-digest #side { display: none; }
        }
        &.-flat { & > #listed, & > Keys { display: none; } }
        &.-filtering { & > #query-bar { display: block; } & > Keys { display: none; } }
    }
    """

    def __init__(self, view: View, chosen: SampleChoice) -> None:
        """Make the screen.

        Args:
            view: The state to begin with.
            chosen: Where to begin.
        """
        super().__init__()
        self._view = view
        self.browse = Browse(chosen)
        """The sample shown, the filter, the order and the folds."""
        self._place = Line(id="place")
        self._listed_line = Line(id="listed")
        self._body = SideBySide(self.browse, id="body")
        self._bar = FilterBar(id="query-bar", input_id="query", hint=query.HINT)
        self._export: Export | None = None

    def compose(self) -> ComposeResult:
        """Make two lines about the place and the list, the samples, the filter box and the keys."""
        yield self._place
        yield self._listed_line
        yield self._body
        yield self._bar
        yield Keys()

    def on_mount(self) -> None:
        """Watch the sample being scrolled."""
        self.watch(self._body.text, "scroll_y", self._scrolled, init=False)

    def show(self, view: View) -> None:
        """Draw the newest state."""
        self._view = view
        self.redraw()

    def show_samples(self, view: View) -> None:
        """Draw after samples have been read."""
        self.show(view)

    # -- drawing -----------------------------------------------------------------------------------

    def _later(self) -> None:
        """Draw after the next layout."""
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Draw the samples and the lines above them."""
        if not self._body.is_attached or not self.size.width:
            return  # too early, or the app is ending
        browse = self.browse
        run = self._view.run
        samples, end = (run.samples, run.end) if run is not None else (None, None)
        if browse.settle(samples, self._view.browser, end):
            self._body.scroll_to_top()
        if browse.page is None or run is None:
            self._place.show([("samples", "strong")])
            width = max(1, self._body.text.width - 1)
            self._body.draw_instead(empty_rows(run, width, loading=self._view.loading))
            return
        self._draw_lines(run, browse.page)
        self._body.draw(clear=self._view.keys["samples.back"])
        self._report_export()

    def _draw_lines(self, run: Run, page: SamplePage) -> None:
        browse = self.browse
        following = browse.chosen.follow
        left, right = header_lines.place_words(
            page.place,
            run.samples.places,
            run.name,
            following=following,
            key=self._view.keys["samples.follow"],
        )
        self._place.show(
            [*header_lines.responses_words(browse.history, on=browse.responses), *left],
            right,
        )
        given_up = any(search.given_up for search in browse.query.searches)
        left, right = header_lines.list_words(
            browse.listing, page, browse.query, browse.order, given_up=given_up
        )
        self._listed_line.show(left, right)

    def _scrolled(self, y: float) -> None:
        if y > 0 and self.browse.stay():
            self.redraw()

    def _say(self, sentence: str) -> None:
        toast(self.app, sentence, rows=4)

    # -- moving ------------------------------------------------------------------------------------

    def _show_from_top(self, moved: bool) -> None:
        if moved:
            self._body.scroll_to_top()
            self.redraw()

    def action_sample(self, by: int) -> None:
        """Show the next or previous sample, beyond the ends those of older and newer steps."""
        if self.browse.responses:
            self._body.digest.action_move(by)
        else:
            self._show_from_top(self.browse.to_sample(by))

    def action_step(self, by: int) -> None:
        """Show the same place of the older (1) or newer (-1) step: in validations that is the same
        prompt.
        """
        self._show_from_top(self.browse.to_step(by))

    def action_extreme(self, which: str) -> None:
        """Show the best or worst sample of those listed; again, the next one that scored the
        same.
        """
        self._show_from_top(self.browse.to_extreme(best=which == "best"))

    def action_kind(self) -> None:
        """Show the nearest validation, or the nearest training step."""
        try:
            self._show_from_top(self.browse.to_kind())
        except LookupError as error:
            self._say(str(error))

    def action_follow(self) -> None:
        """Follow the newest step, or stay at this one."""
        self._show_from_top(self.browse.follow())

    @on(Rows.Chosen, "#list")
    def _listed(self, event: Rows.Chosen) -> None:
        self._show_from_top(self.browse.to_row(event.index))

    def action_enter(self) -> None:
        """Open the chosen response or row; in the sample, fold or unfold the part at the top."""
        body = self._body
        if self.browse.responses:
            item = body.item
            if item is not None:
                moved = self.browse.to_item(item)
                self._take_turns()
                self._show_from_top(moved)
        elif self.focused is body.list:
            body.remove_class("-list")
            body.text.focus(scroll_visible=False)
            self._later()
        elif body.part is not None:
            self.action_fold(body.part)

    def action_swap(self) -> None:
        """Move the focus between list and sample; on a narrow screen show the one that has it."""
        body = self._body
        if self.browse.responses:
            body.swap_responses()
            return
        to_list = self.focused is not body.list
        body.set_class(to_list, "-list")

        def go_on() -> None:
            (body.list if to_list else body.text).focus(scroll_visible=False)
            self.redraw()

        self.call_after_refresh(go_on)

    def action_back(self) -> None:
        """Leave the filter line, the responses side by side, the filter, or the screen."""
        if self.has_class("-filtering"):
            self._close_filter()
        elif self.browse.responses:
            self.browse.close()
            self._take_turns()
        elif self.browse.query:
            self._set_filter(SampleQuery())
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Go back to the dashboard."""
        self.dismiss(self.browse.leaving)

    # -- the responses to one prompt ---------------------------------------------------------------

    def _take_turns(self) -> None:
        self._body.take_turns()
        self._later()

    def action_mates(self) -> None:
        """Show all responses to the prompt of this sample, or the sample again."""
        self.browse.compare()
        self._take_turns()

    def action_history(self) -> None:
        """Show the responses to this sample's prompt at other steps, or the sample again."""
        self.browse.look_back()
        self._take_turns()

    # -- filter, search, order, folding ------------------------------------------------------------

    def action_filter(self) -> None:
        """Open the line to type a filter in."""
        self._bar.open(filter_label(["samples"]), self.browse.query.text)
        self._say_matches()
        self.add_class("-filtering")

    @on(Input.Changed, "#query")
    def _say_matches(self) -> None:
        """Say beside the typed filter how much matches it, as far as facts alone tell."""
        view = self._view
        counts = self.browse.listing.matches(self._bar.input.value)
        escape = view.keys["samples.back"]
        self._bar.say(counts, enter="filters", escape=escape)

    @on(Input.Submitted, "#query")
    def _submitted(self, event: Input.Submitted) -> None:
        try:
            wanted = self.browse.listing.asked(event.value)
        except ValueError as error:
            self._say(str(error))
            return
        self._close_filter()
        self._set_filter(wanted)

    def _set_filter(self, wanted: SampleQuery) -> None:
        turns = self.browse.responses
        self.browse.ask(wanted)
        if turns:
            self._take_turns()
        self.redraw()

    def _close_filter(self) -> None:
        self._bar.display = False
        self.remove_class("-filtering")
        self._body.text.focus(scroll_visible=False)

    def action_hit(self, by: int) -> None:
        """Go to the next or previous hit in this sample."""
        if self._body.hit(by):
            self.redraw()
        elif self.browse.query.searches:
            self._say("no hit in this sample's text")

    def action_sort(self) -> None:
        """Sort by the next field."""
        self.browse.sort()
        self.redraw()

    def action_turn(self) -> None:
        """Sort the other way round."""
        self.browse.turn()
        self.redraw()

    def action_fold(self, part: str) -> None:
        """Fold or unfold a part of the sample."""
        self.browse.fold(part)
        self.redraw()

    def action_raw(self) -> None:
        """Show texts as they stand, or set apart by speaker and kind."""
        self.browse.raw = not self.browse.raw
        self.redraw()

    # -- out of here -------------------------------------------------------------------------------

    def action_copy(self, response: bool) -> None:
        """Copy the sample, or only its response, to the clipboard of the terminal."""
        sample = self.browse.sample
        if sample is not None:
            copy_text(self.app, sample.response if response else self.clip())

    def clip(self) -> str:
        """Return the sample as it is copied."""
        sample = self.browse.sample
        return whole(sample) if sample is not None else ""

    def action_export(self, everything: bool) -> None:
        """Write the sample, or all listed ones, to a JSONL file in the current directory."""
        if self._export is not None:
            self._say("still writing")
            return
        page = self.browse.page
        run = self._view.run
        indices = self.browse.indices(everything=everything)
        if page is None or run is None or not indices:
            self._say("nothing to write")
            return
        try:
            self._export = Export(page, indices, run.name)
        except OSError as error:
            self._say(f"cannot write to {folder()}: {error.strerror or error}")
            return
        self._view.browser.run_later(self._export)

    def _report_export(self) -> None:
        if self._export is not None and self._export.done:
            self._say(self._export.words())
            self._export = None
