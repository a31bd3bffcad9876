"""The sample of a run that is shown, and the ways from there to others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.samples.chosen import (
    SampleChoice,
    index_of,
    next_place,
    next_sample,
    place_of,
)
from verl_tui.rendering.samples.listing import SampleListing
from verl_tui.rendering.samples.query import SampleQuery
from verl_tui.rendering.samples.sample_order import SampleOrder

if TYPE_CHECKING:
    from verl_tui.on_demand.samples import SampleBrowser, SamplePage
    from verl_tui.records import Sample
    from verl_tui.runs.samples import Place, Samples


class SamplePosition:
    """The user's choice, and the sample shown for it.

    Methods that move return True if there was somewhere to go.
    """

    def __init__(self, chosen: SampleChoice) -> None:
        """Begin with a choice."""
        self.chosen = chosen
        self.listing = SampleListing()
        self.page: SamplePage | None = None
        """The shown step, None without samples."""
        self.index: int | None = None
        """Index of the shown sample."""
        self._samples: Samples | None = None

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
    def leaving(self) -> SampleChoice:
        """The choice to continue with on another screen."""
        if self.shown is not None and not self.chosen.follow:
            return SampleChoice(*self.shown)
        return self.chosen

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
        self.page = browser.page(samples, place)
        self._list(self.page)
        self.index = index_of(self.chosen, self.listing)
        return before is not None and self.shown != before

    def _list(self, page: SamplePage) -> None:
        """List the samples of the shown step."""
        self.listing.update(page, SampleQuery(), SampleOrder())

    def _at(self) -> tuple[Samples, Place] | None:
        """Return where moves begin, None where there are none."""
        if self._samples is None or self.page is None:
            return None
        return self._samples, self.page.place

    def _go(self, chosen: SampleChoice | None) -> bool:
        if chosen is not None:
            self.chosen = chosen
        return chosen is not None

    def to_sample(self, by: int) -> bool:
        """Go to the next or previous sample, past the last or first to another step."""
        at = self._at()
        return at is not None and self._go(
            next_sample(at[1], self.index, self.listing, at[0], by)
        )

    def to_step(self, by: int) -> bool:
        """Go to the same index (a validation's same prompt) of the older (1) or newer (-1) step."""
        at = self._at()
        beyond = next_place(at[1], at[0], by) if at is not None else None
        return beyond is not None and self._go(SampleChoice(beyond, self.index))

    def to_extreme(self, *, best: bool) -> bool:
        """Go to the best or worst listed sample, from there to the next with the same score."""
        at = self._at()
        index = self.listing.extreme(self.index, best=best)
        return (
            at is not None
            and index is not None
            and self._go(SampleChoice(at[1], index))
        )

    def to_kind(self) -> bool:
        """Go to the nearest validation, or to the nearest training step.

        Raises:
            LookupError: There is none.
        """
        at = self._at()
        if at is None:
            return False
        samples, place = at
        other = samples.nearest_place(place.step, not place.validation)
        if other is None:
            raise LookupError(
                "no training samples" if place.validation else "no validation samples"
            )
        return self._go(SampleChoice(other, follow=self.chosen.follow))

    def follow(self) -> bool:
        """Start or stop following the newest step."""
        on = not self.chosen.follow
        return (at := self._at()) is not None and self._go(
            SampleChoice(at[1], None if on else self.index, follow=on)
        )

    def stay(self) -> bool:
        """Stop following, so that the sample being read is not replaced."""
        return (
            self.chosen.follow
            and self.shown is not None
            and self._go(SampleChoice(*self.shown))
        )
