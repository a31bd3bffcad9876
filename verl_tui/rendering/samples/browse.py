"""State of the samples screen: step, sample, filter and order, or the responses to one prompt."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from verl_tui.rendering.choices import next_choice
from verl_tui.rendering.samples import sample_order
from verl_tui.rendering.samples.changed_words import Side
from verl_tui.rendering.samples.chosen import SampleChoice
from verl_tui.rendering.samples.document import PARTS
from verl_tui.rendering.samples.excerpts import Excerpts, excerpt
from verl_tui.rendering.samples.history import History
from verl_tui.rendering.samples.position import SamplePosition
from verl_tui.rendering.samples.query import SampleQuery
from verl_tui.rendering.samples.response_rows import ResponseItem
from verl_tui.rendering.samples.sample_order import SampleOrder
from verl_tui.rendering.samples.sample_rows import score_words
from verl_tui.rendering.text.numbers import exact_step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from verl_tui.on_demand.samples import SampleBrowser, SamplePage
    from verl_tui.records import Sample, SampleFacts
    from verl_tui.rendering.samples.excerpts import Excerpt
    from verl_tui.rendering.samples.history import PastResponse
    from verl_tui.runs.samples import Place, Samples

_AHEAD = (1, -1)
"""Neighbours of the shown sample that are read ahead."""


class Browse(SamplePosition):
    """The user's choice, and the sample or responses shown for it.

    Methods that move return True if there was somewhere to go; there never is among responses.
    """

    def __init__(self, chosen: SampleChoice) -> None:
        """Begin with a choice."""
        super().__init__(chosen)
        self.query = SampleQuery()
        self.order = SampleOrder()
        self.folded = frozenset({"prompt"})
        """Parts of the sample folded to a few rows."""
        self.excerpts = Excerpts()
        """Words of the listed responses."""
        self.raw = False
        """True to show texts as they stand, without margin and turns."""
        self.mates: int | None = None
        """Index of the sample whose prompt's responses are shown."""
        self.history: History | None = None
        """The responses to a prompt at several steps, if they are shown."""

    # -- what is shown -----------------------------------------------------------------------------

    @property
    def responses(self) -> bool:
        """True if the responses to one prompt are shown instead of a sample."""
        return self.mates is not None or self.history is not None

    def indices(self, *, everything: bool) -> Sequence[int]:
        """Return the indices of all listed samples, or of the one that is shown."""
        if everything:
            return self.listing.visible
        if self.index is None:
            return []
        return [self.index]

    @property
    def fact(self) -> SampleFacts | None:
        """The facts of the shown sample."""
        facts = self.listing.facts
        if self.index is not None and self.index < len(facts):
            return facts[self.index]
        return None

    def settle(
        self, samples: Samples | None, browser: SampleBrowser, end: int | None = None
    ) -> bool:
        """Resolve the choice, and read on in a prompt's history."""
        if self.history is not None and samples is not None and samples.places:
            self.history.advance(browser)
        moved = super().settle(samples, browser, end)
        if samples is not None and self.page is not None and self._searches:
            browser.page(samples, self.page.place)  # wake it for the search
        return moved

    @property
    def _searches(self) -> bool:
        """True while the listed samples are searched: not while the history of a prompt is, for a
        step is searched for one thing at a time.
        """
        return bool(self.query.searches) and self.history is None

    def _list(self, page: SamplePage) -> None:
        if self._searches or not self.query.searches:
            self.listing.update(page, self.query, self.order)

    def read(self) -> Sample | None:
        """Return the sample if it has been read, and request its neighbours."""
        page = self.page
        at = self.listing.place_of(self.index)
        visible = self.listing.visible
        for by in _AHEAD if page is not None and at is not None else ():
            if page is not None and at is not None and 0 <= at + by < len(visible):
                page.sample(visible[at + by])
        return self.sample  # the newest request is read first

    # -- moving ------------------------------------------------------------------------------------

    def _at(self) -> tuple[Samples, Place] | None:
        if self.responses:
            return None
        return super()._at()

    def to_row(self, at: int) -> bool:
        """Go to a row of the list."""
        visible = self.listing.visible
        return (
            self.page is not None
            and at < len(visible)
            and self._go(SampleChoice(self.page.place, visible[at]))
        )

    def to_item(self, item: ResponseItem) -> bool:
        """Show one of the responses; a filter that hides it is dropped."""
        self.close()
        if (
            self.page is None
            or item.place != self.page.place
            or self.listing.place_of(item.row) is None
        ):
            self.query = SampleQuery()
        return self._go(SampleChoice(item.place, item.row))

    # -- how it is shown ---------------------------------------------------------------------------

    def ask(self, wanted: SampleQuery) -> None:
        """Apply a filter."""
        self.close()
        self.query = wanted

    def sort(self) -> None:
        """Sort by the next field."""
        choices = sample_order.choices(self.listing.fields)
        field = choices[0]
        if self.order.field in choices:
            field = next_choice(choices, self.order.field)
        self.order = SampleOrder(field, down=self.order.down)

    def turn(self) -> None:
        """Reverse the order."""
        self.order = self.order._replace(down=not self.order.down)

    def fold(self, part: str) -> None:
        """Fold or unfold a part of the sample."""
        if part in PARTS and not self.responses:
            self.folded ^= {part}

    # -- the responses to one prompt ---------------------------------------------------------------

    def close(self) -> None:
        """Show the sample again."""
        self.mates = self.history = None

    def compare(self) -> None:
        """Show all responses to the prompt of this sample, or the sample again."""
        opens = self.mates is None and self.fact is not None
        self.close()
        if opens:
            self.mates = self.index
            self.stay()

    def look_back(self) -> None:
        """Show the responses to this sample's prompt at other steps, or the sample again."""
        opens = self.history is None
        sample = self.sample
        shown = self.shown
        self.close()
        if (
            opens
            and self._samples is not None
            and sample is not None
            and shown is not None
        ):
            self.history = History(self._samples, shown[0], sample.prompt)
            self.stay()

    def items(self) -> Sequence[Callable[[], ResponseItem]]:
        """Return a function for each response that makes its item: most are never in sight."""

        def item(
            place: Place, fact: SampleFacts, words: Excerpt | None
        ) -> ResponseItem:
            score = score_words(fact, self.listing.scores)
            return ResponseItem(place, fact.index, score, fact.length, words)

        def mate(page: SamplePage, fact: SampleFacts) -> ResponseItem:
            sample = page.sample(fact.index)
            return item(
                page.place, fact, None if sample is None else excerpt(sample.response)
            )

        if self.history is not None:
            return [
                partial(item, past.place, past.fact, past.excerpt)
                for past in self.history.found
            ]
        if self.mates is None or self.page is None:
            return []
        facts = self.listing.facts
        mates = self.listing.mates(self.mates)
        known = [facts[index] for index in mates if index < len(facts)]
        return [partial(mate, self.page, fact) for fact in known]

    def changes(self, at: int) -> tuple[Side, Side] | None:
        """Return a response of a prompt's history beside the earliest one, or beside the newest if
        it is of the earliest step; None without another step.
        """
        found = self.history.found if self.history is not None else []
        if not 0 <= at < len(found) or found[0].place == found[-1].place:
            return None
        first = found[0]
        second = found[at]
        if second.place == first.place:
            first = second
            second = found[-1]
        return (self._side(first), self._side(second))

    def _side(self, one: PastResponse) -> Side:
        score, role = score_words(one.fact, self.listing.scores)
        title = [(f"step {exact_step(one.place.step)}  ", "strong"), (score, role)]
        return Side(title, one.response)
