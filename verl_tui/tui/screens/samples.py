"""All samples of the step that the charts' cursor, the finding or the samples panel is at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from verl_tui.given_files import why
from verl_tui.means import next_of
from verl_tui.rendering.samples import query, words
from verl_tui.rendering.samples.browse import Browse, Marked
from verl_tui.rendering.samples.export import Export
from verl_tui.rendering.samples.listing import sample_table
from verl_tui.runs.cached import LastResult
from verl_tui.tui.export import copy_text, folder
from verl_tui.tui.keys import SAMPLES, HelpSection, actions
from verl_tui.tui.messages import toast
from verl_tui.tui.panels.samples import MOVES, DocumentRows, SampleMoves, SamplesPanel
from verl_tui.tui.terminal.buffered_screen import BufferedScreen
from verl_tui.tui.terminal.scrolling import LazyRows
from verl_tui.tui.widgets.filter_bar import FilterBar, Keys
from verl_tui.tui.widgets.rows import FewRows, Line, Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from verl_tui.on_demand.samples import SamplePage
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.tui.screens.dashboard import Dashboard


class SamplesScreen(SampleMoves, BufferedScreen):
    """A list of a step's samples beside one of them."""

    SCREEN = ("o", "samples.open", "Samples of this step", "Samples")
    AUTO_FOCUS = "#text"
    HORIZONTAL_BREAKPOINTS = [(0, "-single"), (80, "-double")]  # noqa: RUF012 - as Textual has it
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (12, "-tall")]  # noqa: RUF012
    FOOTER = """
        samples.back                   Back
        samples.next samples.previous  Sample
        samples.older samples.newer    Step
        samples.filter                 Filter
        samples.sort                   Sort
        samples.mates                  Same prompt
        samples.history                Other steps
        samples.map                    Map
        samples.beside                 Beside
        samples.best samples.worst     Best, worst
        samples.follow                 Follow
    """
    HELP_SECTION = HelpSection("all samples of a step", SAMPLES, 20, query.HELP)
    BINDINGS = actions(
        MOVES,
        """
        /              filter             samples.filter        Filter, search
        s              change('sort')     samples.sort          Sort
        S              change('reverse')  samples.turn          Sort the other way round
        a              mates              samples.mates         Same prompt
        h              history            samples.history       Other steps of the prompt
        d              beside             samples.beside        Mark; then another beside it
        [              app.switch_run(-1)  run.previous         Previous run
        ]              app.switch_run(1)   run.next             Next run
        escape         back               samples.back          Back
        .              hit(1)             samples.next_hit      Next hit
        comma          hit(-1)            samples.previous_hit  Previous hit
        tab,shift+tab  swap               samples.swap          List or sample

        enter  enter                     samples.enter   Open; in a sample: fold the part at the top
        u,1    change('fold', 'prompt')  samples.unfold  Fold or unfold the prompt

        2    change('fold', 'response')  samples.fold_response  Fold or unfold the response
        3    change('fold', 'truth')     samples.fold_truth     Fold or unfold the ground truth
        4    change('fold', 'fields')    samples.fold_fields    Fold or unfold the fields
        R    change('show_raw')          samples.raw            Raw text, without margin and colours
        y    app.copy_here               samples.copy           Copy the sample
        Y    copy_response               samples.copy_response  Copy the response
        x    export(False)               samples.export         Write the sample to a file
        X    export(True)                samples.export_all     Write all listed samples to a file
        space  app.simulate_key('pagedown')  list.space
        q,o  leave                       samples.leave          Back to the dashboard
        """,
    )
    DEFAULT_CSS = """
    SamplesScreen {
        & > Line { padding: 0 1; }
        & > #place { background: $panel; }
        & > #body { height: 1fr; }
        & #side { width: 3fr; max-width: 72; border-right: vkey $panel-lighten-2; }
        & #titles { padding: 0; }
        & #list { height: 1fr; scrollbar-gutter: stable; }
        & #main { width: 5fr; }
        & #text { height: 1fr; scrollbar-gutter: stable; padding: 0 0 0 1; }
        & #sample { padding: 0 1; }
        &.-single {
            & > Line, & #text, & #sample { padding: 0; }
            & #side { display: none; border-right: none; }
            & #main { width: 1fr; }
            & > Keys { display: none; }
            &.-list #side { display: block; width: 1fr; max-width: 100%; }
            &.-list #main { display: none; }
        }
        &.-nothing #side, &.-beside #side { display: none; }
        &.-beside #main { display: block; }
        &.-flat { & > #listed, & > Keys { display: none; } }
    }
    """

    _export: Export | None = None

    def __init__(self, dashboard: Dashboard) -> None:
        """Make the screen; the panel knows the sample shown, the filter, the order, the folds."""
        super().__init__()
        self._view = view = dashboard.view
        self._panel = dashboard.panel(SamplesPanel)
        self._panel.show(view)  # it may be out of sight
        self._place = Line(id="place")
        self._listed = Line(id="listed")
        self._titles = FewRows(id="titles")
        self._list = Rows(id="list")
        self._line = Line(id="sample")
        self.text = DocumentRows(self, id="text")
        self._compared = LastResult()
        self._bar = FilterBar(query.HINT)
        # the sentence has the room of the list where there is nothing to list
        self.set_class(self.browse.page is None, "-nothing")
        self.set_class(self._panel.beside, "-beside")

    @property
    def browse(self) -> Browse:
        """What is shown, of what."""
        return self._panel.browse

    def compose(self) -> ComposeResult:
        """Make two lines about the place and the list, the samples, the filter box and the keys."""
        yield self._place
        yield self._listed
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield self._titles
                yield self._list
            with Vertical(id="main"):
                yield self._line
                yield self.text
        yield self._bar
        yield Keys()

    def show(self, view: View) -> None:
        """Draw the newest state; of another run the same step, or the nearest."""
        shown, before = self.browse.shown, self._view.run
        self._view = self._panel.view = view
        if shown and view.run and view.run is not before:
            nearest = view.run.samples.nearest_place(*shown[0])
            self.browse.go_to(nearest or shown[0], shown[1])
        if self.has_class("-beside") is not self._panel.beside:
            self._list_or_text(to_list=False)
        self.redraw()

    show_samples = show

    # -- drawing -----------------------------------------------------------------------------------

    def redraw(self) -> None:
        """Draw the samples and the lines above them."""
        if not self.text.is_attached or not self.size.width:
            return  # too early, or the app is ending
        browse, view = self.browse, self._view
        run = view.run
        if self._panel.settle():
            self.to_top()
        self.set_class(not browse.page, "-nothing")
        if not browse.page or not run:
            self._place.show([("samples", "strong")])
            self.text.show_rows(words.why_none(view, max(1, self.text.width - 1)))
            return
        step = words.step_words(browse, run.samples.places, view.name_in(40), view.keys)
        self._place.show(*step)
        self._listed.show(*words.list_words(browse))
        self._draw_list(browse.page)
        if self._panel.beside:
            self._draw_beside(run)
        else:
            self._draw_sample()
        if self._export and self._export.done:
            self._say(self._export.words())
            self._export = None

    def _draw_list(self, page: SamplePage) -> None:
        browse, rows = self.browse, self._list
        if not rows.display or rows.width < 2:
            return
        listing, visible = browse.listing, browse.listing.visible
        table = sample_table(page, listing, browse.order, rows.width)
        self._titles.show([table.heading("dim")])
        made = LazyRows(visible, lambda index: table.row(listing.facts[index]))
        rows.set(made, range(len(visible)))
        if browse.row != rows.chosen:
            rows.chosen = browse.row
            if browse.row is not None:
                rows.reveal(browse.row)

    def _draw_sample(self) -> None:
        browse = self.browse
        if browse.index is None:
            key = self._view.keys["samples.back"]
            none = f"no sample matches, {key} clears the filter"
            self._line.show([(none if browse.listing.complete else "looking …", "dim")])
            self.text.show_rows([])
            return
        browse.read_ahead()
        sample = browse.sample  # the newest request is read first
        said = words.sample_words(browse)
        strip = words.group_strip(browse)
        if not sample:
            self._line.show([("reading … ", "warning"), *said], strip)
            return
        text = self.text
        width, height = text.width - 1, text.size.height
        if width > 0 and text.display:
            look = {"folded": browse.folded, "searches": browse.query.searches}
            text.show(sample, width, height, **look, here=browse.hit, raw=browse.raw)
            hits = text.document.hits if text.document is not None else ()
            if browse.hit is not None and hits:
                strip = [(f"hit {browse.hit + 1:,}/{len(hits):,}", "accent")]
        self._line.show(said, strip)

    def _draw_beside(self, run: Run) -> None:
        """Draw the shown sample beside the marked one."""
        shown, marked = self.browse.shown, self._panel.marked
        if not marked or not shown:
            return
        both = marked, Marked(run.name, run.samples, *shown)
        # the newest request is read first
        found = [one.read(self._view.browser) for one in both]
        width = max(1, self.text.width - 1)
        self._line.show([(words.DIFFERENCES, "dim")])
        asked = both, found, width
        rows = self._compared.of(asked, lambda: words.beside_rows(*asked))
        self.text.show_rows(rows)

    def _say(self, sentence: str) -> None:
        toast(self.app, sentence, rows=4)

    # -- moving ------------------------------------------------------------------------------------

    @on(Rows.Chosen)
    def _chosen(self, event: Rows.Chosen) -> None:
        self.moved(self.browse.to_row(event.entry))

    def action_enter(self) -> None:
        """Open the chosen row; in the sample, fold or unfold the part at the top."""
        if self.focused is self._list:
            self._list_or_text(to_list=False)
        elif self.text.document is not None:
            part = self.text.document.part_at(self.text.scroll_offset.y)
            self.action_change("fold", part)

    def action_swap(self) -> None:
        """Move the focus between list and sample; on a narrow screen show the one that has it."""
        self._list_or_text(to_list=self.focused is not self._list)

    def _list_or_text(self, *, to_list: bool) -> None:
        to_list = to_list and not self._panel.beside
        self.set_class(to_list, "-list")
        self.set_class(self._panel.beside, "-beside")
        self.redraw()

        def go_on() -> None:
            (self._list if to_list else self.text).focus(scroll_visible=False)
            self.redraw()

        self.call_after_refresh(go_on)

    def action_back(self) -> None:
        """Leave the filter line, what is listed, or the screen."""
        if self._bar.display:
            self._bar.close()
        elif self._panel.beside or self.browse.back():
            self._panel.beside = False  # the mark stays
            self._list_or_text(to_list=False)
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Go back to the dashboard."""
        self.browse.leave()
        self._panel.beside = False
        self.dismiss()

    def action_mates(self) -> None:
        """List the responses to this prompt only, or the step again."""
        self.browse.compare()
        self._list_or_text(to_list=self.browse.query.like is not None)

    async def action_history(self) -> None:
        """Show this sample's prompt at all steps."""
        self.browse.stay()
        await self.app.run_action("open_screen('prompts')")

    def action_beside(self) -> None:
        """Mark the sample, or show it beside the marked one, or alone again."""
        run, shown = self._view.run, self.browse.shown
        if run and shown:
            self._say(self._panel.compare(Marked(run.name, run.samples, *shown)))
            self._list_or_text(to_list=False)

    def action_change(self, what: str, *given: str) -> None:
        """Change the order, the folds or the look, by a method of `Browse`."""
        getattr(self.browse, what)(*given)
        self.redraw()

    # -- filter, search, order, folding ------------------------------------------------------------

    def action_filter(self) -> None:
        """Open the line to type a filter in."""
        self._bar.open("filter samples: ", self.browse.query.text)
        self._say_matches()

    @on(Input.Changed)
    def _say_matches(self) -> None:
        """Say beside the typed filter how much matches it, as far as facts alone tell."""
        counts = self.browse.listing.matches(self._bar.input.value)
        self._bar.say(counts, enter="filters", escape=self._view.keys["samples.back"])

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        try:
            wanted = self.browse.listing.asked(event.value)
        except ValueError as error:
            self._say(str(error))
            return
        self._bar.close()
        self.browse.leave()
        self.browse.query = wanted
        self._list_or_text(to_list=False)

    def action_hit(self, by: int) -> None:
        """Go to the next or previous hit in this sample, and unfold what it is in."""
        browse, document = self.browse, self.text.document
        if not document or not document.hits:
            if browse.query.searches:
                self._say("no hit in this sample's text")
            return
        browse.hit = next_of(range(len(document.hits)), browse.hit, by)
        hit = document.hits[browse.hit]
        browse.folded -= {document.part_of(hit)}
        self.redraw()
        laid = self.text.document or document
        self.text.go_to(laid.row_of(hit))

    # -- out of here -------------------------------------------------------------------------------

    def action_copy_response(self) -> None:
        """Copy the response to the clipboard of the terminal."""
        sample = self.browse.sample
        if sample:
            copy_text(self.app, sample.response)

    def action_export(self, everything: bool) -> None:
        """Write the sample, or all listed ones, to a JSONL file in the current directory."""
        browse, run = self.browse, self._view.run
        indices = browse.listing.visible
        if not everything:
            indices = [] if browse.index is None else [browse.index]
        if self._export:
            self._say("still writing")
        elif not browse.page or not run or not indices:
            self._say("nothing to write")
        else:
            try:
                self._export = Export(browse.page, indices, run.name)
            except OSError as error:
                self._say(f"cannot write to {folder()}: {why(error)}")
                return
            self._view.browser.run_later(self._export)
