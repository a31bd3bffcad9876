"""The samples of a run over the full screen: step by step, prompt by prompt, sample by sample."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual import on
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Footer, Input

from verl_tui.tui.panels.sample_rows import empty_rows
from verl_tui.tui.samples import digest, document, order, query, table, words
from verl_tui.tui.samples.chosen import Chosen, index_of, next_place, next_sample, place_of
from verl_tui.tui.samples.digest import Item
from verl_tui.tui.samples.document import PARTS, Document
from verl_tui.tui.samples.export import Export
from verl_tui.tui.samples.history import History
from verl_tui.tui.samples.listing import Listing
from verl_tui.tui.samples.order import Order
from verl_tui.tui.samples.query import Query
from verl_tui.tui.samples.table import score_words
from verl_tui.tui.widgets.document_rows import DocumentRows
from verl_tui.tui.widgets.lazy import LazyStrips
from verl_tui.tui.widgets.line import Line
from verl_tui.tui.widgets.rows import Rows
from verl_tui.tui.widgets.words import printable
from verl_tui.tui.widgets.wrap import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.style import Style
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from verl_tui.browsing import Page
    from verl_tui.records import Fact, Sample
    from verl_tui.runs.run import Run
    from verl_tui.runs.samples import Place, Samples
    from verl_tui.tui.samples.table import Row
    from verl_tui.tui.view import View

_ROLES = dict.fromkeys((*document.ROLES, *table.ROLES))
_MOST_COPIED = 74_000
"""Bytes copied at most: terminals refuse longer sequences, and this becomes 100 kB."""
_AHEAD = (1, -1)
"""Neighbours of the shown sample that are read before they are asked for."""


class SamplesScreen(Screen["Chosen | None"]):
    """A list of a step's samples, and one of them; ends with where the user was."""

    AUTO_FOCUS = "#text"
    HORIZONTAL_BREAKPOINTS = [(0, "-single"), (80, "-double")]  # noqa: RUF012 - an instance variable to Textual
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (12, "-low"), (20, "-tall")]  # noqa: RUF012
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"browse--{role}" for role in _ROLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "sample(1)", "Next sample", key_display="n p", id="samples.next"),
        Binding("p", "sample(-1)", "Previous sample", show=False, id="samples.previous"),
        Binding("N", "step(1)", "Older step", key_display="N P", id="samples.older"),
        Binding("P", "step(-1)", "Newer step", show=False, id="samples.newer"),
        Binding("slash", "filter", "Filter, search", key_display="/", id="samples.filter"),
        Binding("s", "sort", "Sort", id="samples.sort"),
        Binding("S", "turn", "Sort the other way round", show=False, id="samples.turn"),
        Binding("escape", "back", "Back", key_display="esc", id="samples.back"),
        Binding("a", "mates", "Same prompt", id="samples.mates"),
        Binding("h", "history", "Other steps", id="samples.history"),
        Binding("b", "extreme('best')", "Best of those listed", show=False, id="samples.best"),
        Binding("w", "extreme('worst')", "Worst of those listed", show=False, id="samples.worst"),
        Binding("full_stop", "hit(1)", "Next hit", show=False, id="samples.next_hit"),
        Binding("comma", "hit(-1)", "Previous hit", show=False, id="samples.previous_hit"),
        Binding("tab,shift+tab", "swap", "List or sample", show=False, id="samples.swap"),
        Binding("enter", "enter", "Open; in a sample: fold the part at the top", show=False, id="samples.enter"),
        Binding("u,1", "fold('prompt')", "Fold or unfold the prompt", show=False, id="samples.unfold"),
        Binding("2", "fold('response')", "Fold or unfold the response", show=False, id="samples.fold_response"),
        Binding("3", "fold('truth')", "Fold or unfold the ground truth", show=False, id="samples.fold_truth"),
        Binding("4", "fold('fields')", "Fold or unfold the fields", show=False, id="samples.fold_fields"),
        Binding("t", "kind", "Training or validation", id="samples.kind"),
        Binding("f", "follow", "Follow", id="samples.follow"),
        Binding("y", "copy(False)", "Copy the sample", show=False, id="samples.copy"),
        Binding("Y", "copy(True)", "Copy the response", show=False, id="samples.copy_response"),
        Binding("x", "export(False)", "Write the sample to a file", show=False, id="samples.export"),
        Binding("X", "export(True)", "Write all that are listed to a file", show=False, id="samples.export_all"),
        Binding("q", "leave", "Back to the dashboard", show=False, id="samples.leave"),
    ]
    DEFAULT_CSS = """
    SamplesScreen {
        overflow: hidden hidden;
        layout: vertical;
        & > Line { padding: 0 1; }
        & > #place { background: $panel; }
        & > #query { dock: bottom; height: 1; border: none; padding: 0 1; display: none; }
        & > Footer { dock: bottom; }
        & > #body { height: 1fr; }
        & #side { width: 3fr; max-width: 72; border-right: vkey $panel-lighten-2; }
        & #titles { padding: 0; }
        & #list, & #digest { height: 1fr; scrollbar-gutter: stable; }
        & #main { width: 5fr; }
        & #text { height: 1fr; scrollbar-gutter: stable; padding: 0 0 0 1; }
        & #sample { padding: 0 1; }
        & #digest { display: none; }
        &.-digest {
            & #digest { display: block; width: 1fr; }
            & #side, & #main { display: none; }
        }
        &.-single {
            & > Line, & #text, & #sample { padding: 0; }
            & #side { display: none; border-right: none; }
            & #main { width: 1fr; }
            & > Footer { display: none; }
            &.-list #side { display: block; width: 1fr; max-width: 100%; }
            &.-list #main { display: none; }
            &.-digest #side { display: none; }
        }
        &.-flat { & > #standing, & > Footer { display: none; } }
        &.-filtering { & > #query { display: block; } & > Footer { display: none; } }
        &.-ascii #side { border-right: ascii $panel-lighten-2; }
        & > .browse--heading { color: $text-accent; text-style: bold; }
        & > .browse--strong { color: $foreground; text-style: bold; }
        & > .browse--dim { color: $text-muted; }
        & > .browse--prompt { color: $foreground; }
        & > .browse--response { color: $foreground; }
        & > .browse--truth { color: $text-primary; }
        & > .browse--fields { color: $foreground; }
        & > .browse--field { color: $foreground; }
        & > .browse--good { color: $text-success; }
        & > .browse--warning { color: $text-warning; }
        & > .browse--critical { color: $text-error; }
        & > .browse--even { color: $text-muted; }
        & > .browse--token { color: $text-disabled; text-style: dim; }
        & > .browse--tag { color: $text-accent; text-style: italic; }
        & > .browse--repeated { color: $text-warning; text-style: underline; }
        & > .browse--hit { color: $text-primary; text-style: reverse; }
        & > .browse--here { color: $text-warning; text-style: bold reverse; }
        & Toast { width: auto; max-width: 100%; padding: 0 1; margin: 0; }
    }
    """

    def __init__(self, view: View, chosen: Chosen) -> None:
        """Make the screen.

        Args:
            view: The state to begin with.
            chosen: Where to begin.
        """
        super().__init__()
        self._view = view
        self._chosen = chosen
        self._query = Query()
        self._order = Order()
        self._folded = frozenset({"prompt"})
        self._listing = Listing()
        self._page: Page | None = None
        """The step that is shown, None where there is none."""
        self._index: int | None = None
        """The sample that is shown."""
        self._mates: int | None = None
        """The sample whose prompt's samples are shown side by side."""
        self._history: History | None = None
        self._items: Sequence[Callable[[], Item]] = ()
        self._export: Export | None = None
        self._styles_by_role: dict[str, Style] = {}
        self._drawn: dict[str, object] = {}
        """What each widget was drawn from."""

    def compose(self) -> ComposeResult:
        """The list on the left, the sample on the right, or one of both; the answers to a prompt instead of them."""
        yield Line(id="place")
        yield Line(id="standing")
        with Horizontal(id="body"):
            with Vertical(id="side"):
                titles = Rows(id="titles")
                titles.can_focus = False
                titles.styles.height = 1
                yield titles
                yield Rows(choosing=True, id="list")
            with Vertical(id="main"):
                yield Line(id="sample")
                yield DocumentRows(id="text")
            yield Rows(choosing=True, id="digest")
        yield Input(
            id="query",
            placeholder='score>0.5 acc=1 len>=2000 group:ab word /regex/ "text" · enter filters',
            compact=True,
        )
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Who scrolls reads, and must not lose the sample to a newer one."""
        self.query_one(Footer).compact = True
        self.watch(self._text, "scroll_y", self._scrolled, init=False)
        self.app.theme_changed_signal.subscribe(self, lambda _: self.call_after_refresh(self._draw))

    def on_unmount(self) -> None:
        """Leave no file half open."""
        if self._export is not None:
            self._export.close()

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
        """Draw the newest state."""
        self._view = view
        self._draw()

    def show_samples(self, view: View) -> None:
        """Draw what has been read since."""
        self.show(view)

    @property
    def shown(self) -> tuple[Place, int] | None:
        """Place and index of the sample shown, None where there is none."""
        return (self._page.place, self._index) if self._page is not None and self._index is not None else None

    # -- drawing ----------------------------------------------------------------------------------------------------

    @property
    def _text(self) -> DocumentRows:
        return self.query_one("#text", DocumentRows)

    @property
    def _list(self) -> Rows:
        return self.query_one("#list", Rows)

    @property
    def _digest(self) -> Rows:
        return self.query_one("#digest", Rows)

    @property
    def _samples(self) -> Samples | None:
        run = self._view.run
        return run.samples if run is not None and run.samples.places else None

    def _draw(self) -> None:
        if not self.is_mounted or not self.size.width:
            return
        if not self._styles_by_role:
            self._styles_by_role = {role: self.get_component_rich_style(f"browse--{role}") for role in _ROLES}
        self.set_class(self._view.ascii, "-ascii")
        samples, run = self._samples, self._view.run
        place = place_of(self._chosen, samples) if samples is not None else None
        if samples is None or run is None or place is None:
            self._page = self._index = None
            self._draw_nothing()
            return
        self._settle(samples, place)
        self._draw_lines(run, samples, place)
        if self.has_class("-digest"):
            self._draw_digest()
        else:
            self._draw_list()
            self._draw_sample(place)
        self._go_on_exporting()

    def _settle(self, samples: Samples, place: Place) -> None:
        """Find out what is shown of what the user has asked for."""
        before, browser = self.shown, self._view.browser
        if self._history is not None:
            self._history.advance(browser)
        self._page = browser.page(samples, place)
        if self._history is None or not self._query.searches:  # a page is searched for one thing at a time
            self._listing.update(self._page, self._query, self._order)
            browser.page(samples, place)  # it has learnt what to look for
        self._index = index_of(self._chosen, self._listing)
        if before is not None and self.shown != before:
            self._text.scroll_home(animate=False, immediate=True)

    def _draw_nothing(self) -> None:
        self.query_one("#place", Line).show([("samples", "strong")])
        rows = empty_rows(self._view.run, max(1, self._text.width - 1), loading=self._view.loading)
        if self._drawn.get("text") != rows:
            self._drawn["text"] = rows
            self._text.show(None, {})
            self._text.set_strips([self._strip(row) for row in rows])

    def _draw_lines(self, run: Run, samples: Samples, place: Place) -> None:
        page = self._page
        assert page is not None
        ascii, listing = self._view.ascii, self._listing
        left, right = words.place_words(place, samples.places, run.name, following=self._chosen.follow, ascii=ascii)
        if self._mates is not None:
            left.insert(0, ("all answers  ", "accent"))
        elif self._history is not None:
            done = self._history
            left.insert(0, (f"one prompt, {done.looked_at} of {done.steps} steps  ", "accent"))
        self.query_one("#place", Line).show(left, right)
        given_up = any(search.given_up for search in self._query.searches)
        left, right = words.list_words(listing, page, self._query, self._order, given_up=given_up, ascii=ascii)
        self.query_one("#standing", Line).show(left, right)

    def _draw_list(self) -> None:
        rows, listing, ascii = self._list, self._listing, self._view.ascii
        width = rows.width
        if not rows.display or width < 2:
            return
        key = (listing.revision, self._order, width, ascii, tuple(self._styles_by_role.values()))
        if key != self._drawn.get("list"):
            self._drawn["list"] = key
            shown = table.columns(listing.fields, len(listing.facts), self._order, width)
            self.query_one("#titles", Rows).set_strips([self._strip(table.heading(shown, self._order, ascii=ascii))])
            # What is drawn later is drawn from what holds now: the listing goes on.
            facts, visible, standing, groups = listing.facts, listing.visible, listing.standing, listing.groups
            rows.set_strips(
                LazyStrips(
                    len(visible),
                    lambda at: self._strip(table.line(facts[visible[at]], shown, standing, groups, ascii=ascii)),
                )
            )
        at = listing.place_of(self._index)
        if at != rows.chosen:
            rows.chosen = at
            if at is not None:
                rows.reveal(at)

    def _draw_sample(self, place: Place) -> None:
        index, text, ascii = self._index, self._text, self._view.ascii
        line = self.query_one("#sample", Line)
        if index is None:
            nothing = "nothing matches" if self._listing.complete else "looking ..." if ascii else "looking …"
            line.show([(nothing, "dim")])
            self._drawn["text"] = None
            text.show(None, {})
            return
        sample = self._read(index)
        fact = self._fact(index)
        shown = text.document
        right: words.Pieces = []
        if sample is not None and shown is not None and shown.here is not None:
            right = [(f"hit {shown.hits.index(shown.here) + 1:,}/{len(shown.hits):,}", "accent")]
        line.show(words.sample_words(index, fact, self._listing, reading=sample is None, ascii=ascii), right)
        if sample is None or not text.display:
            return
        width, height = text.width - 1, text.size.height
        searches = self._query.searches
        styles = tuple(self._styles_by_role.values())
        key = (place, index, sample, width, height, self._folded, searches, ascii, styles)
        if width > 0 and key != self._drawn.get("text"):
            self._drawn["text"] = key
            laid = Document(sample, width, height, folded=self._folded, searches=searches, ascii=ascii)
            text.show(laid, self._styles_by_role)

    def _read(self, index: int) -> Sample | None:
        """Return a sample if it has been read, and have its neighbours read, too."""
        page = self._page
        assert page is not None
        at = self._listing.place_of(index)
        for by in _AHEAD if at is not None else ():
            if at is not None and 0 <= at + by < len(self._listing.visible):
                page.sample(self._listing.visible[at + by])
        return page.sample(index)  # what is asked for last is read first

    def _fact(self, index: int | None) -> Fact | None:
        facts = self._listing.facts
        return facts[index] if index is not None and index < len(facts) else None

    def _strip(self, row: Row) -> Strip:
        return Strip([Segment(text, self._styles_by_role.get(role)) for text, role in row if text])

    # -- all answers to a prompt ------------------------------------------------------------------------------------

    def _draw_digest(self) -> None:
        rows, ascii = self._digest, self._view.ascii
        width = rows.width
        if width < 2 or self._page is None:
            return
        self._items = self._found() if self._history is not None else self._answers(self._page)
        items, steps = self._items, self._history is not None
        rows.set_strips(
            LazyStrips(len(items), lambda at: self._strip(digest.row(items[at](), width, with_step=steps, ascii=ascii)))
        )
        if rows.chosen is None or rows.chosen >= len(items):
            rows.chosen = self._own_item() if items else None
            if rows.chosen is not None:
                rows.reveal(rows.chosen)

    def _own_item(self) -> int:
        """Return where the sample that one came from stands among those shown."""
        places = [(item.place, item.row) for item in (make() for make in self._items)]
        return places.index(self.shown) if self.shown in places else 0

    def _answers(self, page: Page) -> Sequence[Callable[[], Item]]:
        assert self._mates is not None
        return [partial(self._answer, page, index) for index in self._listing.mates(self._mates)]

    def _answer(self, page: Page, index: int) -> Item:
        fact, sample = self._fact(index), page.sample(index)
        assert fact is not None
        score = score_words(fact, self._listing.standing, ascii=self._view.ascii)
        return Item(page.place, index, score, fact.length, sample.response if sample is not None else None)

    def _found(self) -> Sequence[Callable[[], Item]]:
        assert self._history is not None
        ascii, standing = self._view.ascii, self._listing.standing
        return [
            partial(
                Item,
                one.place,
                one.fact.index,
                score_words(one.fact, standing, ascii=ascii),
                one.fact.length,
                one.answer,
            )
            for one in self._history.found
        ]

    def _show_digest(self, *, on: bool) -> None:
        self.set_class(on, "-digest")
        if not on:
            self._mates = self._history = None
        self._digest.chosen = None
        (self._digest if on else self._text).focus(scroll_visible=False)
        self._later()

    def action_mates(self) -> None:
        """Show all answers to the prompt of this sample, or the sample again."""
        on = self._mates is None and self._fact(self._index) is not None
        self._history = None
        self._mates = self._index if on else None
        self._show_digest(on=on)

    def action_history(self) -> None:
        """Show the answers to this sample's prompt at other steps, or the sample again."""
        self._mates = None
        if self._history is not None:
            self._show_digest(on=False)
            return
        samples, sample, shown = self._samples, self._sample(), self.shown
        if samples is not None and sample is not None and shown is not None:
            self._history = History(samples, shown[0], sample.prompt)
            self._show_digest(on=True)

    def _sample(self) -> Sample | None:
        """Return the sample that is shown."""
        return self._page.sample(self._index) if self._page is not None and self._index is not None else None

    # -- moving -----------------------------------------------------------------------------------------------------

    def _later(self) -> None:
        """Draw when the layout has been applied."""
        self.call_after_refresh(self._draw)

    def _go(self, chosen: Chosen) -> None:
        """Show another sample from its beginning."""
        self._chosen = chosen
        self._text.scroll_home(animate=False, immediate=True)
        self._draw()

    def _scrolled(self, y: float) -> None:
        if y > 0 and self._chosen.follow and self.shown is not None:
            self._chosen = Chosen(*self.shown)
            self._draw()

    def _at(self) -> tuple[Samples, Place, int | None] | None:
        """Return where one is, None where keys that move have nothing to move in."""
        samples, page = self._samples, self._page
        if samples is None or page is None or self.has_class("-digest"):
            return None
        return samples, page.place, self._index

    def action_sample(self, by: int) -> None:
        """Show the next or previous sample; past the last comes the older step, before the first the newer one."""
        if self.has_class("-digest"):
            self._digest.action_move(by)
        elif (at := self._at()) is not None:
            samples, place, index = at
            beyond = next_sample(place, index, self._listing, samples, by)
            if beyond is not None:
                self._go(beyond)

    def action_step(self, by: int) -> None:
        """Show the same place of the older (1) or newer (-1) step: in validations that is the same prompt."""
        if (at := self._at()) is not None:
            samples, place, index = at
            beyond = next_place(place, samples, by)
            if beyond is not None:
                self._go(Chosen(beyond, index))

    def action_extreme(self, which: str) -> None:
        """Show the best or worst sample of those listed; again, the next one that scored the same."""
        if (at := self._at()) is not None:
            index = self._listing.extreme(self._index, best=which == "best")
            if index is not None:
                self._go(Chosen(at[1], index))

    def action_kind(self) -> None:
        """Show the nearest validation, or the nearest training step."""
        if (at := self._at()) is not None:
            samples, place, _ = at
            other = samples.nearest_place(place.step, not place.validation)
            if other is None:
                self._say("no training samples" if place.validation else "no validation samples")
            else:
                self._go(Chosen(other, follow=self._chosen.follow))

    def action_follow(self) -> None:
        """Show the newest step as it comes, or stay where we are."""
        if (at := self._at()) is not None:
            follow = not self._chosen.follow
            self._go(Chosen(at[1], None if follow else at[2], follow=follow))

    @on(Rows.Chosen, "#list")
    def _listed(self, event: Rows.Chosen) -> None:
        if self._page is not None and event.index < len(self._listing.visible):
            self._go(Chosen(self._page.place, self._listing.visible[event.index]))

    def action_enter(self) -> None:
        """Open what is chosen; in the sample, fold or unfold the part at the top."""
        if self.has_class("-digest"):
            self._open_item()
        elif self.focused is self._list:
            self.remove_class("-list")
            self._text.focus(scroll_visible=False)
            self._later()
        elif self._text.document is not None:
            self.action_fold(self._text.document.part_at(self._text.scroll_offset.y))

    def _open_item(self) -> None:
        at = self._digest.chosen
        if at is None or at >= len(self._items):
            return
        item = self._items[at]()
        if self._page is None or item.place != self._page.place or self._listing.place_of(item.row) is None:
            self._query = Query()  # what hides it is dropped
        self._show_digest(on=False)
        self._go(Chosen(item.place, item.row))

    def action_swap(self) -> None:
        """Give the focus to the list or to the sample; where there is room for one of them, show it."""
        if self.has_class("-digest"):
            return
        to_list = self.focused is not self._list
        self.set_class(to_list, "-list")
        self._draw_after_swap(self._list if to_list else self._text)

    def _draw_after_swap(self, rows: Rows) -> None:
        def go_on() -> None:
            rows.focus(scroll_visible=False)
            self._draw()

        self.call_after_refresh(go_on)

    def action_back(self) -> None:
        """Undo the last of: what is typed, answers side by side, the filter; then leave."""
        if self.has_class("-filtering"):
            self._close_filter()
        elif self.has_class("-digest"):
            self._show_digest(on=False)
        elif self._query:
            self._ask(Query())
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Go back to the dashboard."""
        self.dismiss(Chosen(*self.shown) if self.shown is not None and not self._chosen.follow else self._chosen)

    # -- filter, search, order, folding -----------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Ask for a filter."""
        box = self.query_one("#query", Input)
        box.value = self._query.text
        # Shown at once, not when the stylesheet is applied next: whoever types fast loses no key.
        box.display = True
        self.add_class("-filtering")
        self.set_focus(box)

    @on(Input.Submitted, "#query")
    def _submitted(self, event: Input.Submitted) -> None:
        try:
            wanted = query.parse(event.value)
        except ValueError as error:
            self._say(str(error))
            return
        unknown = wanted.unknown(self._listing.fields)
        if unknown and self._listing.complete:
            known = ", ".join(("score", "len", *self._listing.fields))
            self._say(f"no field is called {unknown[0]}: there are {known}")
            return
        self._close_filter()
        self._ask(wanted)

    def _ask(self, wanted: Query) -> None:
        self._query = wanted
        if self.has_class("-digest"):
            self._show_digest(on=False)
        self._draw()

    def _close_filter(self) -> None:
        self.query_one("#query", Input).display = False
        self.remove_class("-filtering")
        self._text.focus(scroll_visible=False)

    def action_hit(self, by: int) -> None:
        """Go to the next or previous hit in this sample."""
        shown = self._text.document
        if shown is None or not shown.hits or self.has_class("-digest"):
            if self._query.searches:
                self._say("no hit in this sample's text")
            return
        at = shown.hits.index(shown.here) + by if shown.here in shown.hits else 0 if by > 0 else -1
        hit = shown.hits[at % len(shown.hits)]
        if shown.name_of(hit) in self._folded:
            self.action_fold(shown.name_of(hit))
            shown = self._text.document
            assert shown is not None
        shown.here = hit
        self._text.show(shown, self._styles_by_role)
        self._text.go_to(shown.row_of(hit))
        self._draw()

    def action_sort(self) -> None:
        """Sort by the next field."""
        choices = order.choices(self._listing.fields)
        at = choices.index(self._order.field) if self._order.field in choices else -1
        self._order = Order(choices[(at + 1) % len(choices)], down=self._order.down)
        self._draw()

    def action_turn(self) -> None:
        """Sort the other way round."""
        self._order = self._order._replace(down=not self._order.down)
        self._draw()

    def action_fold(self, part: str) -> None:
        """Fold or unfold a part of the sample."""
        if part in PARTS and not self.has_class("-digest"):
            self._folded ^= {part}
            self._draw()

    # -- out of here ------------------------------------------------------------------------------------------------

    def action_copy(self, response: bool) -> None:
        """Copy the sample, or only its response, to the clipboard of the terminal."""
        sample = self._sample()
        if sample is None:
            return
        text = sample.response if response else "\n\n".join((sample.prompt, sample.response))
        data = text.encode("utf-8", "replace")
        copied = data[:_MOST_COPIED].decode("utf-8", "ignore")
        self.app.copy_to_clipboard(copied)
        whole = "" if len(data) <= _MOST_COPIED else f" of {len(text):,}, terminals take no more"
        tmux = "; tmux needs set-clipboard on" if os.environ.get("TMUX") else ""
        self._say(f"copied {len(copied):,} characters{whole}{tmux}")

    def action_export(self, everything: bool) -> None:
        """Write the sample, or all that are listed, to a JSONL file in the current directory."""
        indices = self._listing.visible if everything else [i for i in (self._index,) if i is not None]
        run = self._view.run
        if self._export is not None or not indices or self._page is None or run is None:
            self._say("still writing" if self._export is not None else "nothing to write")
            return
        try:
            self._export = Export(self._page, indices, run.name)
        except OSError as error:
            self._say(f"cannot be written: {error.strerror or error}")
            return
        self._go_on_exporting()

    def _go_on_exporting(self) -> None:
        export = self._export
        if export is None:
            return
        before = export.written
        try:
            done = export.advance()
        except OSError as error:
            self._export = None
            self._say(f"cannot be written: {error.strerror or error}")
            return
        if done:
            self._export = None
            skipped = f", {export.skipped} could not be read" if export.skipped else ""
            self._say(f"{export.written:,} sample{'s' * (export.written != 1)} in {export.path}{skipped}")
        elif export.written > before:
            self.call_later(self._go_on_exporting)

    def _say(self, sentence: str) -> None:
        """Say something in place of what was said before."""
        self.app.clear_notifications()
        self.notify(fit(printable(sentence), 4 * max(16, self.size.width - 8)), timeout=6, markup=False)
