"""Rows of the samples panel above a sample: its score among its step's; or why there is none.

Widths are terminal cells.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.piece import cells_of
from verl_tui.rendering.text.wrap import ELLIPSIS, fit, wrap
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from verl_tui.on_demand.samples import SamplePage
    from verl_tui.records import SampleFacts
    from verl_tui.rendering.samples.listing import SampleListing
    from verl_tui.rendering.session.snapshot import View
    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.run import Run
    from verl_tui.runs.samples import Place, Samples


_ONE_ROW = 100
"""Width from which on the header takes one row instead of two, in cells."""
_VERL_WRITES = (
    "verl writes them with trainer.rollout_data_dir=DIR "
    "and trainer.validation_data_dir=DIR"
)
_OTHERS_WRITE = ", TRL and ms-swift with log_completions=True"


def header_height(width: int, height: int) -> int:
    """Return the number of rows that the header takes of a panel's `height`."""
    if height < 2:
        return 0
    return 1 if width >= _ONE_ROW or height < 6 else 2


def header_rows(
    place: Place,
    index: int,
    listing: SampleListing,
    width: int,
    rows: int,
    *,
    count: int = 0,
) -> list[Pieces]:
    """Describe the shown sample and the scores of its step.

    Args:
        place: The step shown.
        index: Index of the sample shown.
        listing: All samples of the step.
        width: Cells of a row.
        rows: Number of rows, see `header_height`.
        count: Number of samples, if fewer are known so far.
    """
    if rows < 1 or width < 1:
        return []
    count = max(count, len(listing.facts))
    facts = _facts(place, index, listing, count, width)
    if rows > 1:
        return [facts, _glyph_row(listing, index, width)]
    taken = cells_of(facts)
    if width < _ONE_ROW or width - taken < 12:
        return [facts]
    strip = _glyph_row(listing, index, width - taken - 3)
    gap = " " * (width - taken - cells_of(strip))
    return [[*facts, (gap, ""), *strip]]


def _facts(
    place: Place, index: int, listing: SampleListing, count: int, width: int
) -> Pieces:
    """Return the longest description of the sample that fits."""
    step = exact_step(place.step)
    which = f"{index + 1}/{count}"
    group, of_group = _group(index, listing)
    score, short_score, role = _score(index, listing)
    scores = listing.scores
    long = [
        (f"step {step}", "strong"),
        (f"sample {which}", ""),
        (score, role),
        (group and f"{group} in its group", ""),
        (of_group, "dim"),
        ("validation" if place.validation else "", "label"),
        (f"step mean {compact(scores.mean)}" if scores.scored > 1 else "", "dim"),
    ]
    short = [
        (f"step {step}", "strong"),
        (which, ""),
        (short_score, role),
        (group and f"group {group}", ""),
        (of_group, "dim"),
        ("val" if place.validation else "", "label"),
    ]
    for words in (long, long[:6], short, short[:4], short[:3]):
        row = _joined(words)
        if cells_of(row) <= width:
            return row
    shortest = [(step, "strong"), *short[1:3]]
    return _cut(_joined(shortest), width)


def _group(index: int, listing: SampleListing) -> tuple[str, str]:
    """Return a sample's number among those of its group, and words on the group; empty for none."""
    mates = listing.mates(index)
    number = f"{mates.index(index) + 1}/{len(mates)}" if len(mates) > 1 else ""
    known = index < len(listing.facts)
    return number, listing.scores.group_words(
        listing.facts[index].group
    ) if known else ""


def _score(index: int, listing: SampleListing) -> tuple[str, str, str]:
    """Write a sample's score, long and short, with its role; empty while it is unknown."""
    if index >= len(listing.facts):
        return "", "", ""
    fact = listing.facts[index]
    score = fact.score
    glyph, role = listing.scores.mark(score, fact.group)
    if score is None:
        return "no score", f"{glyph} no score", role
    return f"{glyph} score {compact(score)}", f"{glyph} {compact(score)}", role


def _glyph_row(listing: SampleListing, index: int, width: int) -> Pieces:
    """Return a glyph per score around the shown sample in brackets, with gaps between groups if
    they fit.
    """
    facts = listing.facts
    brackets = 2 if index < len(facts) else 0
    first, last = _around(index, len(facts), width - brackets)
    gaps = _group_starts(facts) if last - first == len(facts) else set()
    if len(facts) + len(gaps) + brackets > width:
        gaps = set()
    mark = (ELLIPSIS, "dim")
    row: Pieces = [mark] if first > 0 else []
    for at in range(first, last):
        if at in gaps:
            row.append((" ", ""))
        row.extend(_glyph(listing, at, shown=at == index))
    if last < len(facts):
        row.append(mark)
    return _cut(row, width)


def group_strip(listing: SampleListing, index: int) -> Pieces:
    """Return a glyph per sample of the same prompt, the one at `index` in brackets."""
    row: Pieces = []
    for at in listing.mates(index):
        row += _glyph(listing, at, shown=at == index)
    return row


def _glyph(listing: SampleListing, at: int, *, shown: bool) -> Pieces:
    fact = listing.facts[at]
    glyph, role = listing.scores.mark(fact.score, fact.group)
    if shown:
        return [("[", "strong"), (glyph, f"here-{role}"), ("]", "strong")]
    return [(glyph, role)]


def _around(index: int, count: int, width: int) -> tuple[int, int]:
    """Return the range of indices around one that fits, with room for an ellipsis at both ends."""
    if count <= width:
        return 0, count
    room = max(1, width - 2)
    first = max(0, min(index - room // 2, count - room))
    return first, first + room


def _group_starts(facts: Sequence[SampleFacts]) -> set[int]:
    """Return the indices at which a further group starts, none if all groups have one sample."""
    pairs = enumerate(pairwise(facts), 1)
    starts = {at for at, (before, fact) in pairs if fact.group != before.group}
    if len(starts) < len(facts) - 1:
        return starts
    return set()


def caption(
    place: Place, samples: Samples, keys: Mapping[str, str], *, following: bool
) -> str:
    """Return the words below a sample: which step it is of, and the keys that lead to others.

    Args:
        place: The step, and whether it is of validations.
        samples: All samples of the run.
        keys: Names of actions -> their keys.
        following: Whether the newest step is followed.
    """
    words = ["following"]
    if not following:
        steps = [
            other.step
            for other in samples.places
            if other.validation is place.validation
        ]
        words = [*_step_of(place.step, steps), f"{keys['samples.follow']} follows"]
    if samples.dropped:
        words.insert(0, f"{samples.dropped:,} older samples dropped")
    return " · ".join((*words, f"{keys['samples.open']} opens"))


def _step_of(step: int, steps: Sequence[int]) -> list[str]:
    """Return the step, and its number among those with samples where that differs."""
    at = steps.index(step) + 1
    count = len(steps)
    if (at, count) == (step, steps[-1]):
        return [f"step {at} of {count}"]
    return [f"step {step}", f"{at} of {count} with samples"]


def empty_rows(run: Run | None, width: int, *, loading: bool = False) -> list[Pieces]:
    """Say why there is no sample, and where samples come from."""
    if run is None:
        sentences = ["No run yet."]
    elif loading:
        sentences = ["No samples yet, still reading."]
    else:
        sentences = ["No samples yet.", _where_samples_are(run)]
    rows: list[Pieces] = []
    for sentence in sentences:
        rows += [[(line, "dim")] for line in wrap(sentence, width)]
    return rows


def no_samples(
    run: Run | None, width: int, *, opens: str, loading: bool = False
) -> list[Pieces]:
    """Say in one row that there is no sample, and how to get some; in little room, which key opens
    the screen that says so.
    """
    if run is None or loading:
        return [[("Samples: none yet", "dim")]]
    none = "none yet" if run.step is None and run.outcome is None else "none"
    ways = (
        f"Samples: {none}. {_where_samples_are(run)}",
        f"Samples: {none} ({opens}: how to have them written)",
        f"Samples: {none}",
    )
    return [
        [
            (
                next(
                    (way for way in ways if cell_len(way) <= width),
                    fit(ways[-1], width),
                ),
                "dim",
            )
        ]
    ]


def rows_instead(
    view: View, page: SamplePage | None, width: int, *, short: bool
) -> list[Pieces]:
    """Return the rows of the panel while there is no sample to show.

    Args:
        view: The state to show.
        page: The step whose samples are being read, None where the run has no samples.
        width: Cells of a row.
        short: Whether there is one row for all.
    """
    if page is not None:
        reading = "reading …"
        return [[(page.problem or reading, "dim")]]
    if short:
        opens = view.keys["panel.samples"]
        return no_samples(view.run, width, opens=opens, loading=view.loading)
    return empty_rows(view.run, width, loading=view.loading)


def _where_samples_are(run: Run) -> str:
    """Say where a run writes its samples, or how to have it write some."""
    settings = (
        run.settings.get(f"trainer.{kind}_data_dir")
        for kind in ("rollout", "validation")
    )
    folders = [
        one_line(folder, 300)
        for folder in settings
        if isinstance(folder, str) and folder
    ]
    if folders:
        where = "that directory" if len(folders) == 1 else "those directories"
        named = " and ".join(folders)
        return f"This run writes them to {named}: name {where} too to see them here."
    others = "" if run.dialect == "verl" else _OTHERS_WRITE
    return f"{_VERL_WRITES}{others}; a JSONL log may hold them as `sample` records."


def _joined(words: Sequence[Piece]) -> Pieces:
    row: Pieces = []
    for text, role in words:
        if text:
            row.extend([(" · ", "dim")] if row else [])
            row.append((text, role))
    return row


def _cut(row: Pieces, width: int) -> Pieces:
    """Return the row cut at its end to `width` cells."""
    if cells_of(row) <= width:
        return row
    cut: Pieces = []
    for text, role in row:
        if cell_len(text) >= width:
            return [*cut, (fit(text, width), role)]
        cut.append((text, role))
        width -= cell_len(text)
    return cut
