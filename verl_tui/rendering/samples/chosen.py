"""The shown sample: the user's choice, resolved against the samples there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_tui.rendering.samples.listing import SampleListing
    from verl_tui.runs.samples import Place, Samples


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
            (p for p in reversed(present) if p.validation is validation), present[-1]
        )
    if place in places:
        return place
    return samples.nearest_place(place.step, place.validation) or samples.nearest_place(
        place.step
    )


def index_of(chosen: SampleChoice, listing: SampleListing) -> int | None:
    """Return the sample to show; None if nothing is listed or that is not known yet."""
    index = chosen.index
    visible = listing.visible
    if listing.place_of(index) is not None:
        return index
    if not listing.complete:
        return _while_reading(chosen, listing)
    if not visible:
        return None
    if index is None:
        return visible[-1 if chosen.last else 0]
    if listing.filtered:
        return visible[0]
    return min(visible, key=lambda other: abs(other - index))


def _while_reading(chosen: SampleChoice, listing: SampleListing) -> int | None:
    """Return the sample to show while its step is being read."""
    index = chosen.index
    if chosen.last:
        return None
    if not listing.filtered and len(listing.facts) <= (index or 0):
        return index or 0  # it can be read before it can be listed
    if listing.visible and index is None:
        return listing.visible[0]
    return None


def next_sample(
    place: Place, index: int | None, listing: SampleListing, samples: Samples, by: int
) -> SampleChoice | None:
    """Return the next (1) or previous (-1) sample, past the ends that of another step."""
    at = listing.place_of(index)
    if at is not None and 0 <= at + by < len(listing.visible):
        return SampleChoice(place, listing.visible[at + by])
    if not listing.complete:
        if listing.filtered or index is None:
            return None  # the next one is not known yet
        if index + by >= 0:
            # it can be read before it can be listed
            return SampleChoice(place, index + by)
    beyond = next_place(place, samples, by)
    if beyond is None:
        return None
    return SampleChoice(beyond, None, last=by < 0)


def next_place(place: Place, samples: Samples, by: int) -> Place | None:
    """Return the older (1) or newer (-1) place of the same kind."""
    kind = [other for other in samples.places if other.validation is place.validation]
    at = kind.index(place) - by if place in kind else -1
    if 0 <= at < len(kind):
        return kind[at]
    return None
