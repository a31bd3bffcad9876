"""Lines above the samples: the step and its scores, the filter and order, the sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.samples.panel_rows import group_strip
from verl_tui.rendering.samples.sample_order import FILE
from verl_tui.rendering.samples.sample_rows import score_words
from verl_tui.rendering.session.hint_keys import HINT_KEYS
from verl_tui.rendering.text.numbers import exact_step
from verl_tui.rendering.text.printable import middle
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from verl_tui.on_demand.samples import SamplePage
    from verl_tui.records import SampleFacts
    from verl_tui.rendering.samples.history import History
    from verl_tui.rendering.samples.listing import SampleListing
    from verl_tui.rendering.samples.query import SampleQuery
    from verl_tui.rendering.samples.sample_order import SampleOrder
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.samples import Place

_ROLES = {"good": "good", "warning": "warning", "critical": "critical"}
_STRIP_ROLES = _ROLES | {f"here-{role}": role for role in _ROLES} | {"strong": "strong"}
_LONGEST_STRIP = 20
"""Most glyphs of a group, its brackets among them."""


def place_words(
    place: Place,
    places: Sequence[Place],
    run: str,
    *,
    following: bool,
    key: str = HINT_KEYS["samples.follow"],
) -> tuple[Pieces, Pieces]:
    """Describe the step that is shown; `key` is the one that follows."""
    kind = [p for p in places if p.validation is place.validation]
    at = kind.index(place) + 1 if place in kind else 0
    left = [
        (f"step {exact_step(place.step)}", "strong"),
        ("  validation" if place.validation else "  training", "accent"),
        (f"  {at:,} of {len(kind):,}", "dim"),
        (f"  {middle(run, 40)}", "dim"),
    ]
    return left, [("following", "accent") if following else (f"{key} follows", "dim")]


def responses_words(history: History | None, *, on: bool) -> Pieces:
    """Name the mode in which the responses to one prompt are shown."""
    if history is not None:
        return [
            (f"one prompt, {history.looked_at} of {history.steps} steps  ", "accent")
        ]
    return [("all responses  ", "accent")] if on else []


def list_words(
    listing: SampleListing,
    page: SamplePage,
    query: SampleQuery,
    order: SampleOrder,
    *,
    given_up: bool,
) -> tuple[Pieces, Pieces]:
    """Return the step's scores for the left, filter and order of the list for the right."""
    words = listing.scores.words(complete=listing.complete)
    left: Pieces = [
        (f"{' · ' if at else ''}{word}", "") for at, word in enumerate(words)
    ]
    if page.problem is not None:
        left.append((f"  {page.problem}", "warning"))
    right = _filter_words(listing, query) if query else []
    if given_up:
        right.append(("long lines not searched ", "warning"))
    if order.field != FILE or order.down:
        arrow = order.arrow()
        right.append((f"by {middle(order.field, 20)}{arrow}", "dim"))
    return left, right


def _filter_words(listing: SampleListing, query: SampleQuery) -> Pieces:
    """Return a filter and the number of samples that pass it."""
    found = counted(len(listing.visible), "match", "matches")
    so_far = "" if listing.complete else " so far"
    text = middle(query.text, 30)
    return [(f"{found}{so_far} ", "accent"), (f"{text} ", "dim")]


def sample_words(
    index: int, fact: SampleFacts | None, listing: SampleListing, *, reading: bool
) -> Pieces:
    """Describe the sample that is shown."""
    at = listing.place_of(index)
    place = f"{at + 1:,}/{len(listing.visible):,}" if at is not None else "not listed"
    pieces: Pieces = []
    if fact is not None:
        words, role = score_words(fact, listing.scores)
        pieces.append((f"{words} ", _ROLES.get(role, "")))
    pieces += [(f" #{index + 1}", "strong"), (f"  {place}", "dim")]
    if fact is not None:
        mates = listing.mates(index)
        if len(mates) > 1:
            group = listing.groups[fact.group or ""]
            pieces.append(
                (f"  group {group}: {mates.index(index) + 1}/{len(mates)}", "dim")
            )
            pieces += _group_words(index, fact, listing)
        pieces.append((f"  {counted(fact.length, 'character')}", "dim"))
    if reading:
        pieces.insert(0, ("reading … ", "warning"))
    return pieces


def _group_words(index: int, fact: SampleFacts, listing: SampleListing) -> Pieces:
    """Return a glyph per sample of the prompt, if they are few, and how many are right."""
    strip = group_strip(listing, index)
    strip = [(glyph, _STRIP_ROLES.get(role, "")) for glyph, role in strip]
    shown: Pieces = [("  ", ""), *strip] if len(strip) <= _LONGEST_STRIP else []
    words = listing.scores.group_words(fact.group)
    if words:
        return [*shown, (f"  {words}", "dim")]
    return shown
