"""The lines above the samples: which step is shown, how it scored, which sample this is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.samples.order import FILE
from verl_tui.rendering.samples.table import score_words
from verl_tui.rendering.text.numbers import exact_step
from verl_tui.rendering.text.printable import middle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.on_demand.sample_browser import Page
    from verl_tui.records import SampleFacts
    from verl_tui.rendering.samples.history import History
    from verl_tui.rendering.samples.listing import SampleListing
    from verl_tui.rendering.samples.order import SampleOrder
    from verl_tui.rendering.samples.query import SampleQuery
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.samples import Place

_ROLES = {"good": "good", "warning": "warning", "critical": "critical"}


def place_words(
    place: Place, places: Sequence[Place], run: str, *, following: bool, ascii: bool
) -> tuple[Pieces, Pieces]:
    """Say which step of the run is shown."""
    kind = [p for p in places if p.validation is place.validation]
    at = kind.index(place) + 1 if place in kind else 0
    left = [
        (f"step {exact_step(place.step)}", "strong"),
        ("  validation" if place.validation else "  training", "accent"),
        (f"  {at:,} of {len(kind):,}", "dim"),
        (f"  {middle(run, 40, ascii_only=ascii)}", "dim"),
    ]
    return left, [("following" if following else "f follows", "accent" if following else "dim")]


def answers_words(history: History | None, *, on: bool) -> Pieces:
    """Say that the answers to one prompt are shown, of this step or of many."""
    if history is not None:
        return [(f"one prompt, {history.looked_at} of {history.steps} steps  ", "accent")]
    return [("all answers  ", "accent")] if on else []


def list_words(
    listing: SampleListing,
    page: Page,
    query: SampleQuery,
    order: SampleOrder,
    *,
    given_up: bool,
    ascii: bool,
) -> tuple[Pieces, Pieces]:
    """Say how the samples of the step scored, and which of them are listed in which order."""
    between = " | " if ascii else " · "
    said = listing.scores.words(complete=listing.complete, ascii=ascii)
    left: Pieces = [(f"{between if at else ''}{words}", "") for at, words in enumerate(said)]
    if page.problem is not None:
        left.append((f"  {page.problem}", "warning"))
    right: Pieces = []
    if query:
        found = f"{len(listing.visible):,} match{'es' * (len(listing.visible) != 1)}"
        right.append((f"{found}{'' if listing.complete else ' so far'} ", "accent"))
        right.append((f"{middle(query.text, 30, ascii_only=ascii)} ", "dim"))
    if given_up:
        right.append(("long lines skipped ", "warning"))
    if order.field != FILE or order.down:
        sign = ("v" if order.down else "^") if ascii else ("▼" if order.down else "▲")
        right.append((f"by {middle(order.field, 20, ascii_only=ascii)}{sign}", "dim"))
    return left, right


def sample_words(
    index: int, fact: SampleFacts | None, listing: SampleListing, *, reading: bool, ascii: bool
) -> Pieces:
    """Say which sample is shown."""
    at = listing.place_of(index)
    place = f"{at + 1:,}/{len(listing.visible):,}" if at is not None else "not listed"
    pieces: Pieces = []
    if fact is not None:
        words, role = score_words(fact, listing.scores, ascii=ascii)
        pieces.append((f"{words} ", _ROLES.get(role, "")))
    pieces += [(f" #{index + 1}", "strong"), (f"  {place}", "dim")]
    if fact is not None:
        mates = listing.mates(index)
        if len(mates) > 1:
            pieces.append(
                (
                    f"  group {listing.groups[fact.group or '']}: "
                    f"{mates.index(index) + 1}/{len(mates)}",
                    "dim",
                )
            )
        pieces.append((f"  {fact.length:,} characters", "dim"))
    if reading:
        pieces.insert(0, ("reading ... " if ascii else "reading … ", "warning"))
    return pieces
