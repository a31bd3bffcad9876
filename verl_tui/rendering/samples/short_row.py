"""The shown sample in one row, where the dashboard has no room for more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.samples.excerpts import excerpt
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.piece import cells_of

if TYPE_CHECKING:
    from verl_tui.records import Sample
    from verl_tui.rendering.samples.listing import SampleListing
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.runs.samples import Place

_FACTS = 0.55
"""Most of the row that facts get beside the response, as a share."""


def short_row(
    place: Place, index: int, listing: SampleListing, sample: Sample, width: int
) -> Pieces:
    """Return score, step and the answer of a sample, or the end of its response.

    Args:
        place: The step shown.
        index: Index of the sample shown.
        listing: All samples of the step.
        sample: The sample.
        width: Cells of the row.
    """
    ways = _facts(place, index, listing)
    facts = next((way for way in ways if cells_of(way) <= width * _FACTS), ways[-1])
    words = excerpt(sample.response)
    between: Pieces = [("  ", "")]
    if words.answer:
        between = [(" · ", "dim"), ("answer ", "label")]
    room = width - cells_of([*facts, *between])
    if room < 1:
        return facts if cells_of(facts) <= width else []
    return [*facts, *between, words.piece(room)]


def _facts(place: Place, index: int, listing: SampleListing) -> list[Pieces]:
    """Return what is said of the sample, from the longest way to the shortest."""
    known = index < len(listing.facts)
    score, group = (
        (listing.facts[index].score, listing.facts[index].group)
        if known
        else (None, "")
    )
    glyph, role = listing.scores.mark(score, group)
    points = "no score" if score is None else compact(score)
    words = points if score is None else f"score {points}"
    of_group = listing.scores.group_words(group) if known else ""
    dot = (" · ", "dim")
    step: Pieces = [("sample", "label"), (f" of step {exact_step(place.step)} ", "dim")]
    long: Pieces = [*step, (f"{glyph} {words}", role)]
    kind: Pieces = [dot, ("validation", "label")] if place.validation else []
    ways = [
        long,
        [("sample ", "label"), (f"{glyph} {points}", role)],
        [(f"{glyph} {points}", role)],
    ]
    if kind:
        ways.insert(0, [*long, *kind])
    if of_group:
        ways.insert(0, [*long, dot, (of_group, "dim"), *kind])
    return ways
