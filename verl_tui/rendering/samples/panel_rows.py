"""Lays a sample out as rows of text: what it scored among its step's samples, its prompt, response
and the rest.

Pure functions, no Textual. Widths are terminal cells; a row is a list of pieces, each a text and
its role.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from rich.cells import cell_len

from verl_tui.rendering.samples.document import asked
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.wrap import ellipsis, fit, wrap
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from verl_tui.records import Sample
    from verl_tui.rendering.samples.listing import SampleListing
    from verl_tui.rendering.text.piece import Piece, Pieces
    from verl_tui.runs.run import Run
    from verl_tui.runs.samples import Place

ROLES = (
    "strong",
    "label",
    "dim",
    "prompt",
    "response",
    "truth",
    "extras",
    "good",
    "warning",
    "critical",
    "even",
)
"""What a piece is for; the score's roles come again as `here-good` and so on, for the sample that
is shown.
"""
HERE = tuple(f"here-{role}" for role in ("good", "warning", "critical", "even"))


_LABELLED = 60
"""Cells from which on labels have a column of their own."""
_LABELS = 10
_ONE_ROW = 100
"""Cells from which on the header's two rows become one."""
_ROOMY = 20
"""Rows from which on empty rows set the parts apart."""
_MOST_ROWS = 5000
"""Rows of one text: more is no reading."""
_VERL_WRITES = (
    "verl writes them with trainer.rollout_data_dir=DIR and trainer.validation_data_dir=DIR"
)
_OTHERS_WRITE = ", TRL and ms-swift with log_completions=True"


def header_height(width: int, height: int) -> int:
    """Return the rows the header takes of a panel's `height`."""
    return 0 if height < 2 else 1 if width >= _ONE_ROW or height < 6 else 2


def header_rows(
    place: Place,
    index: int,
    listing: SampleListing,
    width: int,
    rows: int,
    *,
    count: int = 0,
    ascii: bool = False,
) -> list[Pieces]:
    """Say which sample is shown and how the step's samples scored.

    Args:
        place: The step shown.
        index: Which of its samples is shown.
        listing: What is known of all of them.
        width: Cells of a row.
        rows: Rows wanted, see `header_height`.
        count: How many they are, where less is known of them so far.
        ascii: Draw in ASCII.
    """
    if rows < 1 or width < 1:
        return []
    facts = _facts(place, index, listing, max(count, len(listing.facts)), width, ascii=ascii)
    if rows > 1:
        return [facts, _glyph_row(listing, index, width, ascii=ascii)]
    taken = _cells(facts)
    if width < _ONE_ROW or width - taken < 12:
        return [facts]
    strip = _glyph_row(listing, index, width - taken - 3, ascii=ascii)
    return [[*facts, (" " * (width - taken - _cells(strip)), ""), *strip]]


def _facts(
    place: Place, index: int, listing: SampleListing, count: int, width: int, *, ascii: bool
) -> Pieces:
    """Return the richest account of the sample that fits."""
    step, which = exact_step(place.step), f"{index + 1}/{count}"
    mates = listing.mates(index)
    group = f"{mates.index(index) + 1}/{len(mates)}" if len(mates) > 1 else ""
    score, role = "", ""
    glyph = ""
    if index < len(listing.facts):
        known = listing.facts[index].score
        score = compact(known) if known is not None else "no score"
        glyph, role = listing.scores.mark(known, ascii=ascii)
    mean = f"step mean {compact(listing.scores.mean)}" if listing.scores.scored > 1 else ""
    long = [
        (f"step {step}", "strong"),
        (f"sample {which}", ""),
        (f"{glyph} score {score}" if score not in ("", "no score") else score, role),
        (group and f"{group} in its group", ""),
        ("validation" if place.validation else "", "label"),
        (mean, "dim"),
    ]
    short = [
        (f"step {step}", "strong"),
        (which, ""),
        (f"{glyph} {score}" if score else "", role),
        (group and f"group {group}", ""),
        ("val" if place.validation else "", "label"),
    ]
    for words in (long, long[:5], short, short[:3]):
        row = _joined(words, ascii=ascii)
        if _cells(row) <= width:
            return row
    return _cut(_joined([(step, "strong"), *short[1:3]], ascii=ascii), width)


def _glyph_row(listing: SampleListing, index: int, width: int, *, ascii: bool) -> Pieces:
    """Return the step's glyphs, as many around the shown one as fit, groups set apart where there
    is room.
    """
    facts = listing.facts
    first, last = 0, len(facts)
    if last > width:
        room = max(1, width - 2)
        first = max(0, min(index - room // 2, last - room))
        last = first + room
    shown = facts[first:last]
    starts = {i for i in range(1, len(shown)) if shown[i].group != shown[i - 1].group}
    apart = starts if len(shown) == len(facts) and len(facts) + len(starts) <= width else set()
    if len(starts) == len(shown) - 1:
        apart = set()
    cut = ellipsis(ascii_only=ascii)
    row: Pieces = [(cut, "dim")] if first > 0 else []
    for i, fact in enumerate(shown):
        glyph, role = listing.scores.mark(fact.score, ascii=ascii)
        if i in apart:
            row.append((" ", ""))
        row.append((glyph, f"here-{role}" if first + i == index else role))
    if last < len(facts):
        row.append((cut, "dim"))
    return _cut(row, width)


def body_rows(
    sample: Sample, width: int, height: int, *, unfolded: bool = False, ascii: bool = False
) -> list[Pieces]:
    """Return prompt, response, ground truth and further fields.

    Args:
        sample: What to show.
        width: Cells of a row.
        height: Rows that can be seen at once: where they are few, less of the prompt is shown.
        unfolded: Show the whole prompt.
        ascii: Draw in ASCII.
    """
    if width < 1:
        return []
    parts = [
        _prompt(sample.prompt, width, height, unfolded=unfolded, ascii=ascii),
        _part("response", sample.response, "response", width),
    ]
    if sample.ground_truth is not None:
        parts.append(_part("truth", sample.ground_truth, "truth", width))
    extras = _extras(sample, ascii=ascii)
    if extras:
        parts.append(_part("extras", extras, "extras", width))
    rows: list[Pieces] = []
    for part in parts:
        if rows and height >= _ROOMY:
            rows.append([])
        rows.extend(part)
    return rows


def _prompt(text: str, width: int, height: int, *, unfolded: bool, ascii: bool) -> Iterator[Pieces]:
    labels = _labels(width)
    text = text.strip("\n")
    shown = 3 if height >= 8 else 1
    above = -shown
    tail: deque[str] = deque(maxlen=shown)
    if not unfolded:
        for line in wrap(text[: asked(text)], width - labels):
            tail.append(line)
            above += 1
    if above < 2:  # one line is not hidden behind another
        yield from _part("prompt", text, "prompt", width)
        return
    label = "prompt".ljust(labels) if labels else "prompt "
    note = f"{'...' if ascii else '…'} {above:,} lines above, u unfolds"
    yield _cut([(label, "label"), (note, "dim")], width)
    for line in tail:
        yield [(" " * labels, ""), (line, "prompt")]


def _part(label: str, text: str, role: str, width: int) -> Iterator[Pieces]:
    """Yield the rows of one text with its label: in a column of its own, or before the first
    words.
    """
    labels = _labels(width)
    text = text.strip("\n")
    if not text or text.isspace():
        text, role = "(empty)", "dim"
    lines = wrap(text if labels else f"{label} {text}", width - labels)
    for at, line in enumerate(islice(lines, _MOST_ROWS)):
        if labels:
            yield [((label if at == 0 else "").ljust(labels), "label"), (line, role)]
        elif at == 0 and line.startswith(label):
            yield [(label, "label"), (line[len(label) :], role)]
        else:
            yield [(line, role)]
    if next(lines, None) is not None:
        yield _cut([(" " * labels, ""), ("the rest is not shown", "dim")], width)


def _extras(sample: Sample, *, ascii: bool) -> str:
    numbers = [
        f"{key} {compact(value)}"
        for key, value in sample.extras.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    lines = [(" | " if ascii else " · ").join(numbers)] if numbers else []
    for key, value in sample.extras.items():
        if isinstance(value, bool):
            lines.append(f"{key}: {'true' if value else 'false'}")
        elif value is not None and not isinstance(value, int | float) and str(value) != "":
            lines.append(f"{key}: {value}")
    return "\n".join(lines)


def empty_rows(run: Run | None, width: int, *, loading: bool = False) -> list[Pieces]:
    """Say why there is no sample, and where samples come from."""
    if run is None:
        sentences = ["No run yet."]
    elif loading:
        sentences = ["No samples yet, still reading."]
    else:
        folders = [
            run.settings.get(f"trainer.{kind}_data_dir") for kind in ("rollout", "validation")
        ]
        named = [one_line(folder, 300) for folder in folders if isinstance(folder, str) and folder]
        sentences = ["No samples yet."]
        if named:
            sentences.append(
                f"This run writes them to {' and '.join(named)}: name that directory too to see "
                "them here."
            )
        else:
            others = "" if run.dialect == "verl" else _OTHERS_WRITE
            sentences.append(
                f"{_VERL_WRITES}{others}; a JSONL log may hold them as `sample` records."
            )
    return [[(line, "dim")] for sentence in sentences for line in wrap(sentence, width)]


def _labels(width: int) -> int:
    return _LABELS if width >= _LABELLED else 0


def _joined(words: Sequence[Piece], *, ascii: bool) -> Pieces:
    row: Pieces = []
    for text, role in words:
        if text:
            row.extend([(" | " if ascii else " · ", "dim")] if row else [])
            row.append((text, role))
    return row


def _cells(row: Pieces) -> int:
    return sum(cell_len(text) for text, _ in row)


def _cut(row: Pieces, width: int) -> Pieces:
    """Return the row cut at its end to `width` cells."""
    if _cells(row) <= width:
        return row
    cut: Pieces = []
    for text, role in row:
        if cell_len(text) >= width:
            return [*cut, (fit(text, width), role)]
        cut.append((text, role))
        width -= cell_len(text)
    return cut
