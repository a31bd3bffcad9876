"""What is said around samples: of a step, of the list, of one sample, and why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.rendering.samples.answers import change_rows
from verl_tui.rendering.samples.listing import SampleListing, excerpt
from verl_tui.rendering.samples.query import FILE
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import (
    ELLIPSIS,
    Pieces,
    TextRows,
    cells_of,
    cut,
    middle,
    paragraph,
)
from verl_tui.text import one_line
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.records import Sample
    from verl_tui.rendering.samples.browse import Browse, Marked
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.runs.run import Run
    from verl_tui.runs.samples import Place, Samples

_VERL_WRITES = (
    "verl writes them with trainer.rollout_data_dir=DIR "
    "and trainer.validation_data_dir=DIR"
)
_OTHERS_WRITE = ", TRL and ms-swift with log_completions=True"
COMPARED = 8000
"""Characters of two responses that are compared."""
_LEAST_STRIP, _LONGEST_STRIP = 5, 20
"""Least cells of glyphs for samples, and most for those of a prompt."""


def step_words(
    browse: Browse, places: Sequence[Place], run: str, keys: Mapping[str, str]
) -> tuple[Pieces, Pieces]:
    """Describe the step that is shown, which there is, and whether the newest is followed."""
    place = browse.place
    assert place
    left = [
        (f"step {place.step}", "strong"),
        ("  validation" if place.validation else "  training", "accent"),
        (f"  {_nth(place, places)}", "dim"),
        (f"  {run}", "dim"),
    ]
    follows = (f"{keys['samples.follow']} follows", "dim")
    return left, [("following", "accent") if browse.chosen.follow else follows]


def _nth(place: Place, places: Sequence[Place]) -> str:
    """Say which of how many steps of its kind one is."""
    kind = [one for one in places if one.validation is place.validation]
    return f"{kind.index(place) + 1 if place in kind else 0:,} of {len(kind):,}"


def list_words(browse: Browse) -> tuple[Pieces, Pieces]:
    """Return the step's scores for the left, filter and order of the list for the right."""
    listing, query, order = browse.listing, browse.query, browse.order
    left = listing.scores.words(complete=listing.complete)
    if browse.page and browse.page.problem is not None:
        left.append((f"  {browse.page.problem}", "warning"))
    right: Pieces = []
    if query:
        so_far = "" if listing.complete else " so far"
        found = counted(len(listing.visible), "match", "matches")
        same = "same prompt " if query.like else ""
        right.append((f"{found}{so_far} ", "accent"))
        right.append((f"{same}{middle(query.text, 30)} ", "dim"))
    if any(search.given_up for search in query.searches):
        right.append(("long lines not searched ", "warning"))
    if order.field != FILE or order.down:
        right.append((f"by {middle(order.field, 20)}{order.arrow}", "dim"))
    return left, right


def sample_words(browse: Browse) -> Pieces:
    """Describe the sample that is shown, and how it stands among those of its prompt."""
    listing, index = browse.listing, browse.index
    if index is None or not browse.page:
        return []
    count = max(browse.page.count, len(listing.facts))
    pieces: Pieces = [(f"sample {index + 1:,}/{count:,}", "strong")]
    fact = listing.fact(index)
    if not fact:
        return pieces
    score, role = listing.scores.score_words(fact)
    pieces.append((f" · {score}", role))
    mates = listing.mates(fact)
    if len(mates) > 1 and fact.group is not None:
        of_group = f"{mates.index(index) + 1}/{len(mates)}"
        pieces.append((f" · group {listing.groups[fact.group]}: {of_group}", "dim"))
        words = listing.scores.group_words(fact.group)
        pieces.append((f" · {words}" * bool(words), "dim"))
    return pieces


def strip(
    listing: SampleListing, index: int, among: Sequence[int], width: int
) -> Pieces:
    """Return a glyph for each score, as many as fit around the sample at `index`, which stands in
    brackets; none where no sample has a score, or without room.
    """
    if not listing.scores.scores or width < _LEAST_STRIP:
        return []
    at = among.index(index) if index in among else 0
    room = max(1, width - 2)
    if len(among) > room:
        room = max(1, room - 2)
    first = max(0, min(at - room // 2, len(among) - room))
    row: Pieces = [(ELLIPSIS, "dim")] if first > 0 else []
    for other in among[first : first + room]:
        glyph = listing.scores.mark(listing.facts[other])
        here = other == index
        row += [("[", "strong"), glyph, ("]", "strong")] if here else [glyph]
    return [*row, (ELLIPSIS, "dim")] if first + room < len(among) else row


def group_strip(browse: Browse) -> Pieces:
    """Return a glyph for each sample of the prompt, none for a single one."""
    fact = browse.fact
    mates = browse.listing.mates(fact) if fact else []
    if not fact or len(mates) < 2:
        return []
    return [("  ", ""), *strip(browse.listing, fact.index, mates, _LONGEST_STRIP)]


def header(browse: Browse, width: int) -> tuple[Pieces, Pieces]:
    """Return the step, the sample and its score for the left, those of the others for the right."""
    if not browse.shown:
        return [], []
    place, index = browse.shown
    left = [(f"step {place.step} · ", "strong"), *sample_words(browse)]
    left += [(" · validation", "accent")] if place.validation else []
    scores = browse.listing.scores
    if len(scores.scores) > 1:
        left.append((f" · step mean {compact(scores.mean)}", "dim"))
    # step, sample and score are never left out for the others' scores
    room = min(width // 3, width - 1 - cells_of(left[:3]))
    return left, strip(browse.listing, index, range(len(browse.listing.facts)), room)


def short_row(browse: Browse, sample: Sample, width: int) -> Pieces:
    """Return the step, the score and the answer of a sample, or the end of its response."""
    fact = browse.fact
    scores = browse.listing.scores
    words = excerpt(sample.response)
    row: Pieces = [("sample ", "label")]
    roomy, place = width >= 60, browse.place
    if roomy and place:
        kind = " of a validation" * place.validation
        row.append((f"of step {place.step}{kind} ", "dim"))
    if fact:
        row.append(scores.score_words(fact, "score " * roomy))
        group = scores.group_words(fact.group) if roomy else ""
        row.append((f" · {group}" * bool(group), "dim"))
    row.append((" · answer " if words.answer else "  ", "dim"))
    return cut([*row, words.piece(max(1, width - cells_of(row)))], width)


def caption(browse: Browse, samples: Samples, keys: Mapping[str, str]) -> str:
    """Return the words below a sample: which step of how many it is of, and the keys that lead to
    others.
    """
    if not browse.shown:
        return ""
    place, _ = browse.shown
    words = [f"{samples.dropped:,} older samples dropped"] * bool(samples.dropped)
    if browse.chosen.follow:
        words.append("following")
    else:
        words.append(f"step {place.step}, {_nth(place, samples.places)}")
        words.append(f"{keys['samples.follow']} follows")
    return " · ".join((*words, f"{keys['samples.open']} opens"))


def why_none(view: View, width: int, *, short: bool = False) -> TextRows:
    """Say why there is no sample, and where samples come from; in one row, which key opens the
    panel that says so.
    """
    run = view.run
    none = "No samples yet"
    if not run:
        none = "No run yet."
    elif view.loading:
        none = "No samples read yet."
    elif short:
        how = f" ({view.keys['panel.samples']}: how to have them written)"
        none += f"{how * (len(none + how) < width)}."
    else:
        none += ". " + _where_samples_are(run)
    return paragraph(none, "dim", width)[: 1 if short else None]


def _where_samples_are(run: Run) -> str:
    """Say where a run writes its samples, or how to have it write some."""
    names = (f"trainer.{kind}_data_dir" for kind in ("rollout", "validation"))
    settings = [run.settings.get(name) for name in names]
    folders = [one_line(one, 300) for one in settings if isinstance(one, str) and one]
    if folders:
        where = "that directory" if len(folders) == 1 else "those directories"
        named = " and ".join(folders)
        return f"This run writes them to {named}: name {where} too to see them here."
    others = "" if run.dialect == "verl" else _OTHERS_WRITE
    return f"{_VERL_WRITES}{others}; a JSONL log may hold them as `sample` records."


DIFFERENCES = "what differs is underlined, in rows with - and +"


def marked_words(one: Marked) -> str:
    """Name a sample."""
    kind = " validation" if one.place.validation else ""
    return f"step {one.place.step}{kind} · sample {one.at + 1:,}"


def beside_rows(
    both: tuple[Marked, Marked], found: Sequence[Sample | None], width: int
) -> TextRows:
    """Return two samples beside each other, words that differ marked: where they are from, their
    scores and lengths, and their prompts.
    """
    read = [*filter(None, found)]
    if len(read) < 2:
        return [[("not read yet, or gone", "warning")]]
    titles = []
    for one, sample in zip(both, read, strict=True):
        score = "no score" if sample.score is None else f"score {compact(sample.score)}"
        size = len(sample.response)
        cut_off = f", the first {COMPARED:,} compared" * (size > COMPARED)
        titles.append(
            [
                [(one_line(one.run), "accent")],
                [(marked_words(one), "strong")],
                [(f"{score} · {counted(size, 'character')}{cut_off}", "")],
                [(one_line(sample.prompt, 500), "prompt")],
            ]
        )
    texts = read[0].response[:COMPARED], read[1].response[:COMPARED]
    return change_rows(titles, texts, width)
