"""Rows of the samples panel: a sample's score among its step's, its prompt, response and fields.

Widths are terminal cells.
"""

from __future__ import annotations

from collections import deque
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from verl_tui.rendering.samples import answers, margin, marks
from verl_tui.rendering.samples.document import prompt_end
from verl_tui.rendering.samples.stretches import parse_both
from verl_tui.rendering.text.numbers import compact, exact_step
from verl_tui.rendering.text.wrap import ellipsis, fit, spans, wrap
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from verl_tui.records import Sample, SampleFacts
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
    answers.DIFFERS,
    marks.TAG,
    marks.TOKEN_ROLE,
    *margin.ROLES,
)
"""Roles of the pieces of text."""
HERE = tuple(f"here-{role}" for role in ("good", "warning", "critical", "even"))
"""Roles of the shown sample's glyph."""

_LABELLED = 60
"""Width from which on labels have their own column, in cells."""
_LABELS = 10
_ONE_ROW = 100
"""Width from which on the header takes one row instead of two, in cells."""
_ROOMY = 20
"""Height from which on empty rows separate the parts."""
_MOST_ROWS = 5000
"""Most rows of one text."""
_VERL_WRITES = (
    "verl writes them with trainer.rollout_data_dir=DIR and trainer.validation_data_dir=DIR"
)
_OTHERS_WRITE = ", TRL and ms-swift with log_completions=True"


def header_height(width: int, height: int) -> int:
    """Return the number of rows that the header takes of a panel's `height`."""
    return 0 if height < 2 else 1 if width >= _ONE_ROW or height < 6 else 2


def header_rows(
    place: Place,
    index: int,
    listing: SampleListing,
    width: int,
    rows: int,
    *,
    count: int = 0,
    ascii_only: bool = False,
) -> list[Pieces]:
    """Describe the shown sample and the scores of its step.

    Args:
        place: The step shown.
        index: Index of the sample shown.
        listing: All samples of the step.
        width: Cells of a row.
        rows: Number of rows, see `header_height`.
        count: Number of samples, if fewer are known so far.
        ascii_only: Draw in ASCII.
    """
    if rows < 1 or width < 1:
        return []
    facts = _facts(
        place, index, listing, max(count, len(listing.facts)), width, ascii_only=ascii_only
    )
    if rows > 1:
        return [facts, _glyph_row(listing, index, width, ascii_only=ascii_only)]
    taken = _cells(facts)
    if width < _ONE_ROW or width - taken < 12:
        return [facts]
    strip = _glyph_row(listing, index, width - taken - 3, ascii_only=ascii_only)
    return [[*facts, (" " * (width - taken - _cells(strip)), ""), *strip]]


def _facts(
    place: Place, index: int, listing: SampleListing, count: int, width: int, *, ascii_only: bool
) -> Pieces:
    """Return the longest description of the sample that fits."""
    step, which = exact_step(place.step), f"{index + 1}/{count}"
    group, of_group = _group(index, listing)
    score, short_score, role = _score(index, listing, ascii_only=ascii_only)
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
        row = _joined(words, ascii_only=ascii_only)
        if _cells(row) <= width:
            return row
    return _cut(_joined([(step, "strong"), *short[1:3]], ascii_only=ascii_only), width)


def _group(index: int, listing: SampleListing) -> tuple[str, str]:
    """Return a sample's number among those of its group, and words on the group; empty for none."""
    mates = listing.mates(index)
    number = f"{mates.index(index) + 1}/{len(mates)}" if len(mates) > 1 else ""
    known = index < len(listing.facts)
    return number, listing.scores.group_words(listing.facts[index].group) if known else ""


def _score(index: int, listing: SampleListing, *, ascii_only: bool) -> tuple[str, str, str]:
    """Write a sample's score, long and short, with its role; empty while it is unknown."""
    if index >= len(listing.facts):
        return "", "", ""
    fact = listing.facts[index]
    score = fact.score
    glyph, role = listing.scores.mark(score, fact.group, ascii_only=ascii_only)
    if score is None:
        return "no score", f"{glyph} no score", role
    return f"{glyph} score {compact(score)}", f"{glyph} {compact(score)}", role


def _glyph_row(listing: SampleListing, index: int, width: int, *, ascii_only: bool) -> Pieces:
    """Return a glyph per score around the shown sample in brackets, with gaps between groups if
    they fit.
    """
    facts = listing.facts
    brackets = 2 if index < len(facts) else 0
    first, last = _around(index, len(facts), width - brackets)
    gaps = _group_starts(facts) if last - first == len(facts) else set()
    if len(facts) + len(gaps) + brackets > width:
        gaps = set()
    mark = (ellipsis(ascii_only=ascii_only), "dim")
    row: Pieces = [mark] if first > 0 else []
    for at in range(first, last):
        if at in gaps:
            row.append((" ", ""))
        row.extend(_glyph(listing, at, shown=at == index, ascii_only=ascii_only))
    if last < len(facts):
        row.append(mark)
    return _cut(row, width)


def group_strip(listing: SampleListing, index: int, *, ascii_only: bool) -> Pieces:
    """Return a glyph per sample of the same prompt, the one at `index` in brackets."""
    return [
        piece
        for at in listing.mates(index)
        for piece in _glyph(listing, at, shown=at == index, ascii_only=ascii_only)
    ]


def _glyph(listing: SampleListing, at: int, *, shown: bool, ascii_only: bool) -> Pieces:
    fact = listing.facts[at]
    glyph, role = listing.scores.mark(fact.score, fact.group, ascii_only=ascii_only)
    return [("[", "strong"), (glyph, f"here-{role}"), ("]", "strong")] if shown else [(glyph, role)]


def _around(index: int, count: int, width: int) -> tuple[int, int]:
    """Return the range of indices around one that fits, with room for an ellipsis at both ends."""
    if count <= width:
        return 0, count
    room = max(1, width - 2)
    first = max(0, min(index - room // 2, count - room))
    return first, first + room


def _group_starts(facts: Sequence[SampleFacts]) -> set[int]:
    """Return the indices at which a further group starts, none if all groups have one sample."""
    starts = {at for at in range(1, len(facts)) if facts[at].group != facts[at - 1].group}
    return starts if len(starts) < len(facts) - 1 else set()


def body_rows(
    sample: Sample, width: int, height: int, *, unfolded: bool = False, ascii_only: bool = False
) -> list[Pieces]:
    """Return prompt, response, ground truth and further fields.

    Args:
        sample: The sample to show.
        width: Cells of a row.
        height: Rows in sight; the fewer, the less of the prompt is shown.
        unfolded: Show the whole prompt.
        ascii_only: Draw in ASCII.
    """
    if width < 1:
        return []
    prompt, response = sample.prompt.strip("\n"), sample.response.strip("\n")
    asked, answered = parse_both(prompt, response)
    parts: list[Iterator[Pieces]] = [
        _prompt(sample.prompt, width, height, unfolded=unfolded, ascii_only=ascii_only),
        _typed_part("response", response, margin.typed(response, answered.stretches, width), width),
    ]
    if unfolded:
        parts[0] = _typed_part(
            "prompt", prompt, margin.typed(prompt, asked.stretches, width), width
        )
    if sample.ground_truth is not None:
        compared = answers.judged(sample, answered.stretches)
        below = _compared(compared, width) if compared is not None else ()
        parts.append(chain(_part("truth", sample.ground_truth, "truth", width), below))
    if extras := _extras(sample.extras, ascii_only=ascii_only):
        parts.append(_part("extras", extras, "extras", width))
    rows: list[Pieces] = []
    for part in parts:
        if rows and height >= _ROOMY:
            rows.append([])
        rows.extend(part)
    return rows


def _prompt(
    text: str, width: int, height: int, *, unfolded: bool, ascii_only: bool
) -> Iterator[Pieces]:
    labels = _labels(width)
    text = text.strip("\n")
    shown = 3 if height >= 8 else 1
    above = -shown
    tail: deque[str] = deque(maxlen=shown)
    if not unfolded:
        for line in wrap(text[: prompt_end(text)], width - labels):
            tail.append(line)
            above += 1
    if above < 2:  # one line is not hidden behind another
        yield from _part("prompt", text, "prompt", width)
        return
    label = "prompt".ljust(labels) if labels else "prompt "
    note = f"{'...' if ascii_only else '…'} {above:,} lines above, u unfolds"
    yield _cut([(label, "label"), (note, "dim")], width)
    for line in tail:
        yield [(" " * labels, ""), (line, "prompt")]


def _part(label: str, text: str, role: str, width: int) -> Iterator[Pieces]:
    """Yield the rows of a text, its label in a column of its own or before the first words."""
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


def _typed_part(label: str, text: str, typed: margin.Typed, width: int) -> Iterator[Pieces]:
    """Yield the rows of a text; where labels have a column, kinds of text are named in it."""
    labels = _labels(width)
    if not labels or not text.strip():
        yield from _part(label, text, label, width)
        return
    rows = spans(text, width - labels)
    before: int | None = 0
    for at, (start, end) in enumerate(islice(rows, _MOST_ROWS)):
        beside = typed.label(start, end, before) if typed.width else ("", "label")
        name, role = beside if at else (label, "label")
        before = start if end > start else before
        yield [
            (name.ljust(labels), role),
            *marks.pieces(text, start, end, typed.marks, label),
        ]
    if next(rows, None) is not None:
        yield _cut([(" " * labels, ""), ("the rest is not shown", "dim")], width)


def _compared(compared: answers.Comparison, width: int) -> Iterator[Pieces]:
    """Yield the row of the answer below the ground truth."""
    label, *rest = answers.compared_row(compared)
    name = label[0].strip()
    yield _cut([(name.ljust(max(_labels(width), len(name) + 1)), "label"), *rest], width)


def _extras(extras: Mapping[str, Any], *, ascii_only: bool) -> str:
    """Return numbers on one line, then each other value on a line of its own."""
    numbers, lines = [], []
    for key, value in extras.items():
        if isinstance(value, bool):
            lines.append(f"{key}: {'true' if value else 'false'}")
        elif isinstance(value, int | float):
            numbers.append(f"{key} {compact(value)}")
        elif value is not None and str(value):
            lines.append(f"{key}: {value}")
    return "\n".join(([_dot(ascii_only=ascii_only).join(numbers)] if numbers else []) + lines)


def _dot(*, ascii_only: bool) -> str:
    return " | " if ascii_only else " · "


def empty_rows(run: Run | None, width: int, *, loading: bool = False) -> list[Pieces]:
    """Say why there is no sample, and where samples come from."""
    if run is None:
        sentences = ["No run yet."]
    elif loading:
        sentences = ["No samples yet, still reading."]
    else:
        sentences = ["No samples yet.", _where_samples_are(run)]
    return [[(line, "dim")] for sentence in sentences for line in wrap(sentence, width)]


def no_samples(run: Run | None, width: int, *, loading: bool = False) -> list[Pieces]:
    """Say in one row that there is no sample, and how to get some."""
    if run is None or loading:
        return [[("Samples: none yet", "dim")]]
    return [[(fit(f"Samples: none yet. {_where_samples_are(run)}", width), "dim")]]


def _where_samples_are(run: Run) -> str:
    """Say where a run writes its samples, or how to have it write some."""
    settings = (run.settings.get(f"trainer.{kind}_data_dir") for kind in ("rollout", "validation"))
    folders = [one_line(folder, 300) for folder in settings if isinstance(folder, str) and folder]
    if folders:
        return (
            f"This run writes them to {' and '.join(folders)}: name that directory too to see them "
            "here."
        )
    others = "" if run.dialect == "verl" else _OTHERS_WRITE
    return f"{_VERL_WRITES}{others}; a JSONL log may hold them as `sample` records."


def _labels(width: int) -> int:
    return _LABELS if width >= _LABELLED else 0


def _joined(words: Sequence[Piece], *, ascii_only: bool) -> Pieces:
    row: Pieces = []
    for text, role in words:
        if text:
            row.extend([(_dot(ascii_only=ascii_only), "dim")] if row else [])
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
