"""Which sample of a run is shown, of which list, and the ways from there to others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.rendering.samples.document import PARTS
from verl_tui.rendering.samples.listing import SampleListing, SampleRow, excerpt
from verl_tui.rendering.samples.query import FILE, GROUP, SampleOrder, SampleQuery
from verl_tui.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from verl_tui.on_demand.samples import SampleBrowser, SamplePage
    from verl_tui.records import Sample, SampleFacts
    from verl_tui.runs.samples import Place, Samples


_MOST_STEPS = 50
"""Most steps searched, those nearest."""
_SHOWN = 8000
"""Most characters kept of a response."""


class PastResponse(NamedTuple):
    """A sample of the prompt."""

    place: Place
    row: SampleRow
    response: str
    """Beginning of the response."""

    @property
    def fact(self) -> SampleFacts:
        """What is known of it."""
        return self.row.fact


class SamePrompt(NamedTuple):
    """Matches rows that contain a prompt exactly as it is shown."""

    prompt: str

    def found(self, texts: Iterable[str]) -> bool:
        """Return True if one of a row's texts is the prompt."""
        return any(text == self.prompt or self._alike(text) for text in texts)

    def _alike(self, text: str) -> bool:
        # `safe` hardly changes the length, by which most texts can be excluded.
        size = len(self.prompt)
        return size // 2 <= len(text) <= 2 * size + 100 and safe(text) == self.prompt


class History:
    """The samples of one prompt found so far at steps of one kind."""

    def __init__(self, samples: Samples, place: Place, prompt: str) -> None:
        self.found: list[PastResponse] = []
        """Ascending by step, then in the order of the file."""
        self._samples = samples
        self._prompt = SamePrompt(prompt)
        self._waiting = sorted(
            (one for one in samples.places if one.validation is place.validation),
            key=lambda one: (abs(one.step - place.step), one.step),
        )[:_MOST_STEPS]
        self.steps = len(self._waiting)
        """Number of steps to search in all."""
        self._taken = 0
        """Number of hits taken from the current step."""

    @property
    def looked_at(self) -> int:
        """Number of steps searched."""
        return self.steps - len(self._waiting)

    def pair(self, at: int | None) -> tuple[PastResponse, PastResponse] | None:
        """Return a response beside the earliest one, or beside the newest if it is of the earliest
        step; None without another step.
        """
        found = self.found
        if at is None or not found or found[0].place == found[-1].place:
            return None
        if found[at].place == found[0].place:
            return found[at], found[-1]
        return found[0], found[at]

    def advance(self, browser: SampleBrowser) -> None:
        """Add what has been read, and request the next step."""
        while self._waiting:
            place = self._waiting[0]
            page = browser.page(self._samples, place)
            if not self._take(page, place):
                browser.page(self._samples, place)  # request the samples of the hits
                return
            self._waiting.pop(0)
            self._taken = 0

    def _take(self, page: SamplePage, place: Place) -> bool:
        """Add the hits of a step; return True if these were all."""
        hits = page.hits(self._prompt)
        facts = page.facts
        for row in hits.rows[self._taken :]:
            sample = page.sample(row) if row < len(facts) else None
            if sample is None:
                return page.problem is not None
            self._add(place, facts[row], sample)
            self._taken += 1
        known = page.complete and len(facts) >= page.count
        return (hits.complete and known) or page.problem is not None

    def _add(self, place: Place, fact: SampleFacts, sample: Sample) -> None:
        if sample.prompt == self._prompt.prompt:
            response = sample.response
            row = SampleRow(fact, place.step, excerpt(response))
            self.found.append(PastResponse(place, row, response[:_SHOWN]))
            self.found.sort(key=lambda found: (found.place, found.fact.index))


@dataclass(frozen=True, slots=True)
class SampleChoice:
    """The user's choice, which stays the same while samples come and go."""

    place: Place | None = None
    """Step and kind; None for the newest training step."""
    index: int | None = None
    """The sample; None for the first or last that is listed."""
    last: bool = False
    """True for the last instead of the first."""
    follow: bool = False
    """True to show each new step of the kind."""


class Browse:
    """The user's choice, and the sample shown for it: of a step's list, or of one prompt's history.

    Methods that move return True if there was somewhere to go.
    """

    def __init__(self) -> None:
        self.chosen = SampleChoice(follow=True)
        self.query = SampleQuery()
        self.order = SampleOrder()
        self.history: History | None = None
        """The responses to a prompt at several steps, if they are listed."""
        self.folded = frozenset({"prompt"})
        """Parts of the sample folded to a few rows on the screen."""
        self.raw = False
        """True to show texts as they stand, without margin and turns."""
        self.hit: int | None = None
        """Number of the search hit in the sample that the user has gone to."""
        self.listing = SampleListing()
        self.page: SamplePage | None = None
        """The shown step, None without samples."""
        self.index: int | None = None
        """Index of the shown sample."""
        self._samples: Samples | None = None
        self._past: tuple[Place, int] | None = None
        """The chosen response of the history."""

    @property
    def shown(self) -> tuple[Place, int] | None:
        """Place and index of the shown sample, None without one."""
        if self.page is not None and self.index is not None:
            return self.page.place, self.index
        return None

    @property
    def sample(self) -> Sample | None:
        """The shown sample, None while it is being read."""
        if self.page is not None and self.index is not None:
            return self.page.sample(self.index)
        return None

    @property
    def fact(self) -> SampleFacts | None:
        """The facts of the shown sample."""
        return self.listing.fact(self.index)

    @property
    def row(self) -> int | None:
        """The row of the list that the shown sample has."""
        if self.history is None:
            return self.listing.place_of(self.index)
        places = [(one.place, one.fact.index) for one in self.history.found]
        return places.index(self._past) if self._past in places else None

    def settle(
        self, samples: Samples | None, browser: SampleBrowser, end: int | None = None
    ) -> bool:
        """Resolve the choice; return True if another sample is shown than before.

        Args:
            samples: The run's samples by now, None while there are none.
            browser: Reads them.
            end: The last step of the run's present segment; None without a restart.
        """
        before = self.shown
        self._samples = samples
        place = place_of(self.chosen, samples, end) if samples is not None else None
        if samples is None or place is None:
            self.page = self.index = None
            return False
        if self.history is not None:
            self.history.advance(browser)
        self.page = browser.page(samples, place)
        self.listing.update(self.page, self.query, self.order)
        self.index = self._index()
        moved = before is not None and self.shown != before
        self.hit = None if moved else self.hit
        return moved

    def _index(self) -> int | None:
        """Return the sample to show; None if nothing is listed or that is not known yet."""
        chosen, listing = self.chosen, self.listing
        index, visible = chosen.index, listing.visible
        if listing.place_of(index) is not None:
            return index
        if not listing.complete and not listing.filtered:
            # it can be read before it can be listed
            return None if chosen.last else index or 0
        if not visible:
            return None
        if index is None or listing.filtered:
            return visible[-1 if chosen.last else 0]
        return min(visible, key=lambda other: abs(other - index))

    def read_ahead(self) -> None:
        """Request the neighbours of the sample."""
        at = self.listing.place_of(self.index)
        if at is not None and self.page is not None:
            visible = self.listing.visible
            for other in (*visible[at + 1 : at + 2], *visible[max(0, at - 1) : at]):
                self.page.sample(other)

    # -- moving ------------------------------------------------------------------------------------

    def _go(self, place: Place, index: int | None, **more: bool) -> bool:
        if self.page is not None and place != self.page.place:
            self.query = replace(self.query, like=None)
        self.chosen = SampleChoice(place, index, **more)
        return True

    def go_to(self, place: Place) -> None:
        """Go to another step."""
        self._go(place, None)

    def to_row(self, at: int) -> bool:
        """Go to a row of the list."""
        if self.history is not None:
            found = self.history.found[at : at + 1] if at >= 0 else []
            self._past = (found[0].place, found[0].fact.index) if found else self._past
            return bool(found)
        visible = self.listing.visible
        if self.page is None or not 0 <= at < len(visible):
            return False
        return self._go(self.page.place, visible[at])

    def to_sample(self, by: int) -> bool:
        """Go to the next or previous sample, past the last or first to another step."""
        at = self.row
        if self.history is not None:
            return self.to_row((at or 0) + by)
        if at is not None and self.to_row(at + by):
            return True
        return self.query.like is None and self._to_unlisted(by)

    def _to_unlisted(self, by: int) -> bool:
        """Go to a sample that is not listed yet, as its step is still being read, else to another
        step.
        """
        if not self.listing.complete and self.shown is not None:
            place, index = self.shown
            if index + by >= 0:
                return self._go(place, index + by)
        beyond = self._beyond(by)
        return beyond is not None and self._go(beyond, None, last=by < 0)

    def to_step(self, by: int) -> bool:
        """Go to the same index (a validation's same prompt) of the older (1) or newer (-1) step."""
        beyond = self._beyond(by)
        return beyond is not None and self._go(beyond, self.index)

    def _beyond(self, by: int) -> Place | None:
        """Return the older (1) or newer (-1) place of the same kind."""
        if self._samples is None or self.page is None or self.history is not None:
            return None
        here = self.page.place
        kind = [
            one for one in self._samples.places if one.validation is here.validation
        ]
        at = kind.index(here) - by if here in kind else -1
        return kind[at] if 0 <= at < len(kind) else None

    def to_extreme(self, way: int) -> bool:
        """Go to the best (1) or worst (-1) listed sample, then to the next that scored the same."""
        index = self.listing.extreme(self.index, best=way > 0)
        if self.page is None or self.history is not None or index is None:
            return False
        return self._go(self.page.place, index)

    def to_kind(self) -> bool:
        """Go to the nearest validation, or to the nearest training step."""
        if self._samples is None or self.page is None or self.history is not None:
            return False
        place = self.page.place
        other = self._samples.nearest_place(place.step, not place.validation)
        return other is not None and self._go(other, None, follow=self.chosen.follow)

    def follow(self) -> bool:
        """Start or stop following the newest step."""
        if self.page is None or self.history is not None:
            return False
        on = not self.chosen.follow
        return self._go(self.page.place, None if on else self.index, follow=on)

    def stay(self) -> bool:
        """Stop following, so that the sample being read is not replaced."""
        shown = self.shown
        return self.chosen.follow and shown is not None and self._go(*shown)

    # -- what is listed, and how a sample is shown -------------------------------------------------

    def back(self) -> bool:
        """Leave the history, the other samples of the prompt, or the filter."""
        if self.history is not None:
            self.history = None
        elif self.query.like is not None:
            self.query = replace(self.query, like=None)
        elif self.query:
            self.query = SampleQuery()
        else:
            return False
        return True

    def leave(self) -> None:
        """List all samples in the order of the file."""
        self.history = self.hit = None
        self.query = SampleQuery()
        self.order = SampleOrder()

    def compare(self) -> None:
        """List the samples of this one's prompt only, or the others too."""
        like = self.fact if self.query.like is None else None
        self.history = None
        self.stay()
        self.query = replace(self.query, like=like)

    def look_back(self) -> None:
        """List the responses to this sample's prompt at other steps, or the step again."""
        sample = self.sample
        opens = self.history is None and sample is not None
        self.history = None
        if opens and sample is not None and self._samples is not None and self.shown:
            self.stay()
            self._past = self.shown
            self.history = History(self._samples, self.shown[0], sample.prompt)

    def open_past(self) -> bool:
        """Show the chosen response of the history; a filter that hides it is dropped."""
        past = self._past
        self.history = None
        if past is None or past == self.shown:
            return False
        self.query = SampleQuery()
        return self._go(*past)

    def sort(self) -> None:
        """Sort by the next field."""
        fields = dict.fromkeys((FILE, "score", "length", GROUP, *self.listing.fields))
        names = [*fields, FILE]
        at = names.index(self.order.field) if self.order.field in fields else -1
        self.order = self.order._replace(field=names[at + 1])

    def turn(self) -> None:
        """Reverse the order."""
        self.order = self.order._replace(down=not self.order.down)

    def show_raw(self) -> None:
        """Show texts as they stand, or set apart by speaker and kind."""
        self.raw = not self.raw

    def fold(self, part: str) -> None:
        """Fold or unfold a part of the sample."""
        if part in PARTS:
            self.folded ^= {part}


def place_of(
    chosen: SampleChoice, samples: Samples, end: int | None = None
) -> Place | None:
    """Return the place to show, or the nearest if the choice is gone; None without samples.

    Args:
        chosen: The user's choice.
        samples: The run's samples.
        end: The last step of the run's present segment; None without a restart.
    """
    places = samples.places
    place = chosen.place
    if not places:
        return None
    if place is None or chosen.follow:
        validation = place is not None and place.validation
        present = samples.up_to(end)
        return next(
            (one for one in reversed(present) if one.validation is validation),
            present[-1],
        )
    if place in places:
        return place
    nearest = samples.nearest_place(place.step, place.validation)
    return nearest or samples.nearest_place(place.step)
