"""Which sample of a run is shown, of which list, and the ways from there to others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import next_of
from verl_tui.rendering.samples.document import PARTS
from verl_tui.rendering.samples.listing import SampleListing
from verl_tui.rendering.samples.query import FILE, GROUP, SampleOrder, SampleQuery
from verl_tui.runs.samples import Place, Samples

if TYPE_CHECKING:
    from verl_tui.on_demand.samples import SampleBrowser, SamplePage
    from verl_tui.records import Sample, SampleFacts


class Marked(NamedTuple):
    """A sample of any run, to be seen beside another."""

    run: str
    samples: Samples
    place: Place
    at: int
    """Index of the sample."""

    def read(self, browser: SampleBrowser) -> Sample | None:
        """Return the sample, None while it is being read."""
        return browser.page(self.samples, self.place).sample(self.at)


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
    """The user's choice, and the sample shown for it.

    Methods that move return True if there was somewhere to go.
    """

    def __init__(self) -> None:
        self.chosen = SampleChoice(follow=True)
        self.query = SampleQuery()
        self.order = SampleOrder()
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
        self._samples = Samples()

    @property
    def place(self) -> Place | None:
        """Step and kind that are shown, None without samples."""
        return self.page.place if self.page else None

    @property
    def shown(self) -> tuple[Place, int] | None:
        """Place and index of the shown sample, None without one."""
        if not self.page or self.index is None:
            return None
        return self.page.place, self.index

    @property
    def sample(self) -> Sample | None:
        """The shown sample, None while it is being read."""
        if not self.page or self.index is None:
            return None
        return self.page.sample(self.index)

    @property
    def fact(self) -> SampleFacts | None:
        """The facts of the shown sample."""
        return self.listing.fact(self.index)

    @property
    def row(self) -> int | None:
        """The row of the list that the shown sample has."""
        return self.listing.place_of(self.index)

    def settle(
        self, samples: Samples, browser: SampleBrowser, end: int | None = None
    ) -> bool:
        """Resolve the choice; return True if another sample is shown than before.

        Args:
            samples: The run's samples by now.
            browser: Reads them.
            end: The last step of the run's present segment; None without a restart.
        """
        before = self.shown
        self._samples = samples
        place = place_of(self.chosen, samples, end)
        if not place:
            self.page = self.index = None
            return False
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
        if at is not None and self.page:
            visible = self.listing.visible
            for other in (*visible[at + 1 : at + 2], *visible[max(0, at - 1) : at]):
                self.page.sample(other)

    # -- moving ------------------------------------------------------------------------------------

    def _go(self, place: Place | None, index: int | None, **more: bool) -> bool:
        if not place:
            return False
        if place != self.place:
            self.query = self.query._replace(like=None)
        self.chosen = SampleChoice(place, index, **more)
        return True

    def go_to(self, place: Place, index: int | None = None) -> None:
        """Go to another step, or to a sample of it."""
        self._go(place, index)

    def to_row(self, at: int) -> bool:
        """Go to a row of the list."""
        visible = self.listing.visible
        return 0 <= at < len(visible) and self._go(self.place, visible[at])

    def to_sample(self, by: int) -> bool:
        """Go to the next or previous sample, past the last or first to another step."""
        at = self.row
        if at is not None and self.to_row(at + by):
            return True
        if self.query.like or not self.listing.complete:
            return False
        return self._go(self._beyond(by), None, last=by < 0)

    def to_step(self, by: int) -> bool:
        """Go to the same index (a validation's same prompt) of the older (1) or newer (-1) step."""
        return self._go(self._beyond(by), self.index)

    def _beyond(self, by: int) -> Place | None:
        """Return the older (1) or newer (-1) place of the same kind."""
        here = self.place
        places = self._samples.places
        kind = [one for one in places if here and one.validation is here.validation]
        at = kind.index(here) - by if here in kind else -1
        return kind[at] if 0 <= at < len(kind) else None

    def to_extreme(self, way: int) -> bool:
        """Go to the best (1) or worst (-1) listed sample, then to the next that scored the same."""
        index = self.listing.extreme(self.index, best=way > 0)
        return index is not None and self._go(self.place, index)

    def to_kind(self) -> bool:
        """Go to the nearest validation, or to the nearest training step."""
        if not self.place:
            return False
        step, validation = self.place
        other = self._samples.nearest_place(step, not validation)
        return self._go(other, None, follow=self.chosen.follow)

    def follow(self) -> bool:
        """Start or stop following the newest step."""
        on = not self.chosen.follow
        return self._go(self.place, None if on else self.index, follow=on)

    def stay(self) -> bool:
        """Stop following, so that the sample being read is not replaced."""
        shown = self.shown
        return self.chosen.follow and shown is not None and self._go(*shown)

    # -- what is listed, and how a sample is shown -------------------------------------------------

    def back(self) -> bool:
        """Leave the other samples of the prompt, or the filter."""
        if self.query.like:
            self.query = self.query._replace(like=None)
        elif self.query:
            self.query = SampleQuery()
        else:
            return False
        return True

    def leave(self) -> None:
        """List all samples in the order of the file."""
        self.hit = None
        self.query = SampleQuery()
        self.order = SampleOrder()

    def compare(self) -> None:
        """List the samples of this one's prompt only, or the others too."""
        like = None if self.query.like else self.fact
        self.stay()
        self.query = self.query._replace(like=like)

    def sort(self) -> None:
        """Sort by the next field."""
        fields = dict.fromkeys((FILE, "score", "length", GROUP, *self.listing.fields))
        self.order = self.order._replace(field=next_of(fields, self.order.field))

    def reverse(self) -> None:
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
    if not place or chosen.follow:
        validation = place is not None and place.validation
        present = samples.up_to(end)
        return next(
            (one for one in reversed(present) if one.validation is validation),
            present[-1],
        )
    nearest = samples.nearest_place(place.step, place.validation)
    return nearest or samples.nearest_place(place.step)
