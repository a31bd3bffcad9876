"""Rows of the samples panel: a sample's prompt, response, ground truth and further fields.

Text without room is folded so that the ends of prompt and response and the ground truth stay in
sight. Widths are terminal cells.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_tui.rendering.samples import answers, margin, marks
from verl_tui.rendering.samples.prompt_end import last_rows, prompt_end
from verl_tui.rendering.samples.speaker_stretches import parse_both
from verl_tui.rendering.session.hint_keys import HINT_KEYS
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.printable import cut
from verl_tui.rendering.text.wrap import ELLIPSIS, spans, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from verl_tui.records import Sample
    from verl_tui.rendering.samples.speaker_stretches import Conversation
    from verl_tui.rendering.text.piece import Pieces

_LABELLED = 60
"""Width from which on labels have their own column, in cells."""
_LABELS = 10
_ROOMY = 20
"""Height from which on empty rows separate the parts."""
_LOW = 6
"""Height below which folded texts have no row that counts what is hidden."""
_TRUTH = 3
"""Most rows of the ground truth that the response leaves it."""
_MOST_ROWS = 5000
"""Most rows of one text."""


def body_rows(
    sample: Sample,
    width: int,
    height: int,
    *,
    unfolded: bool = False,
    key: str = HINT_KEYS["samples.unfold"],
) -> list[Pieces]:
    """Return prompt, response, ground truth and further fields.

    Args:
        sample: The sample to show.
        width: Cells of a row.
        height: Rows in sight; the fewer, the less of prompt and response is shown.
        unfolded: Show all of them.
        key: The key that unfolds.
    """
    if width < 1:
        return []
    note = _Note(key)
    asked, answered = (
        _Text(label, text, margin.typed(text, found.stretches, width), width, note)
        for label, text, found in _both(sample)
    )
    truth = list(_truth(sample, width))
    extras = _extras(sample.extras)
    fields = list(_part("extras", extras, "extras", width)) if extras else []
    response = list(answered.rows())
    if unfolded:
        prompt = list(asked.rows())
    else:
        gaps = 1 + bool(truth) + bool(fields) if height >= _ROOMY else 0
        room = height - min(len(truth), _TRUTH) - gaps
        if room - len(fields) > height // 2:
            room -= len(fields)
        prompt = list(asked.folded_prompt(height, room - len(response)))
        response = list(answered.folded(response, room - len(prompt)))
    rows: list[Pieces] = []
    for part in filter(None, (prompt, response, truth, fields)):
        if rows and height >= _ROOMY:
            rows.append([])
        rows += part
    return rows


def _both(sample: Sample) -> Iterator[tuple[str, str, Conversation]]:
    texts = sample.prompt.strip("\n"), sample.response.strip("\n")
    yield from zip(("prompt", "response"), texts, parse_both(*texts), strict=True)


def _truth(sample: Sample, width: int) -> Iterator[Pieces]:
    """Yield the ground truth, and how the answer compares with it."""
    if sample.ground_truth is None:
        return
    _, (_, _, answered) = _both(sample)
    compared = answers.judged(sample, answered.stretches)
    if compared is None:
        yield from _part("truth", sample.ground_truth, "truth", width)
        return
    truth = sample.ground_truth.strip("\n")
    labels = _labels(width)
    label = "truth".ljust(labels or len("truth "))
    room = width - len(label)
    row = answers.truth_row(truth, compared, room)
    if row is not None:
        yield [(label, "label"), *row]
        return
    yield from _part("truth", truth, "truth", width)
    yield cut([(" " * labels, ""), *answers.compared_words(compared, truth)], width)


class _Note(NamedTuple):
    """The way in which a folded text says how to unfold it."""

    key: str
    """The key that unfolds."""


class _Text:
    """A prompt or a response with its speakers, for one width."""

    def __init__(
        self, label: str, text: str, typed: margin.Typed, width: int, note: _Note
    ) -> None:
        self._label = label
        self._text = text
        self._typed = typed
        self._width = width
        self._folded = note
        self._cut_off = ELLIPSIS
        self._labels = _labels(width)

    def rows(self) -> Iterator[Pieces]:
        """Yield all rows; where labels have a column, kinds of text are named in it."""
        if not self._labels or not self._text.strip():
            yield from _part(self._label, self._text, self._label, self._width)
            return
        rows = self._rows_in(spans(self._text, self._width - self._labels))
        before: int | None = None
        for start, end in islice(rows, _MOST_ROWS):
            yield self._row(start, end, before)
            if end > start or before is None:
                before = start
        if next(rows, None) is not None:
            yield _not_shown(self._width)

    def folded_prompt(self, height: int, spare: int) -> Iterator[Pieces]:
        """Yield the end of a prompt: a few rows, more where the response leaves `spare` ones."""
        shown = max(3 if height >= 8 else 1, spare - 1)
        width = self._width - self._labels
        stop = prompt_end(self._text)
        rows = self._rows_in(spans(self._text[:stop], width))
        above = len(list(rows)) - shown
        if above < 2:  # one line is not hidden behind another
            yield from self.rows()
        elif height < _LOW and shown == 1:
            yield from self._end(stop, 1, marked=True)
        else:
            yield self._note(f"{above:,} lines above", self._label)
            yield from self._end(stop, shown)

    def folded(self, rows: Sequence[Pieces], room: int) -> Iterator[Pieces]:
        """Yield all rows of a response with the middle folded where they are more than `room`."""
        end = len(self._text)
        if len(rows) <= room:
            yield from rows
            return
        if room < 3:
            yield from self._end(end, max(1, room), marked=True)
            return
        if len(rows) <= _MOST_ROWS:
            hidden = f"{len(rows) - room + 1:,} lines"
        else:
            hidden = f"more than {_MOST_ROWS:,} lines"
        if room == 3:
            yield self._note(hidden, self._label)
            yield from self._end(end, 2)
            return
        yield rows[0]
        yield self._note(hidden, "")
        yield from self._end(end, room - 2, before=0)

    def _end(
        self, stop: int, count: int, *, marked: bool = False, before: int | None = None
    ) -> Iterator[Pieces]:
        """Yield the last rows before `stop`, on request with label and mark of what is above;
        `before` is where a row above them begins.
        """
        mark = f"{self._cut_off} " if marked else ""
        name = self._labels
        if not name and marked:
            name = len(self._label) + 1
        width = max(1, self._width - name - len(mark))
        rows = last_rows(self._text, stop, width, 2 * count)
        shown = list(self._rows_in(rows)) or rows
        for start, end in shown[-count:]:
            row = self._row(start, end, before, first=marked and before is None)
            if mark and before is None:
                row = [row[0], (mark, "dim"), *row[1:]]
            yield cut(row, self._width)
            before = start

    def _rows_in(self, rows: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield rows without the names of speakers that labels repeat; the first row of the text is
        labelled as a prompt or response, and keeps its own.
        """
        for start, end in rows:
            words = self._typed.worded(self._text, start, end) if start else start
            if words < end or words == start:
                yield words, end

    def _row(
        self, start: int, end: int, before: int | None, *, first: bool | None = None
    ) -> Pieces:
        """Return a row; the first one is labelled with the name of the text."""
        if first is None:
            first = before is None
        name = ""
        role = "label"
        if first:
            name = self._label
        elif self._typed.width:
            name, role = self._typed.label(start, end, before)
        if self._labels:
            name = name.ljust(self._labels)
        elif first:
            name = f"{name} "
        else:
            name = ""
        words = marks.pieces(self._text, start, end, self._typed.marks, self._label)
        return [(name, role), *words]

    def _note(self, words: str, label: str) -> Pieces:
        name = f"{label} " if label else ""
        if self._labels:
            name = label.ljust(self._labels)
        hidden = f"… {words}, {self._folded.key} unfolds"
        return cut([(name, "label"), (hidden, "dim")], self._width)


def _part(label: str, text: str, role: str, width: int) -> Iterator[Pieces]:
    """Yield the rows of a text, its label in a column of its own or before the first words."""
    labels = _labels(width)
    text = text.strip("\n")
    if not text or text.isspace():
        text = "(empty)"
        role = "dim"
    lines = wrap(text if labels else f"{label} {text}", width - labels)
    for line in islice(lines, _MOST_ROWS):
        if labels:
            yield [(label.ljust(labels), "label"), (line, role)]
        elif label and line.startswith(label):
            yield [(label, "label"), (line[len(label) :], role)]
        else:
            yield [(line, role)]
        label = ""  # it stands before the first row only
    if next(lines, None) is not None:
        yield _not_shown(width)


def _not_shown(width: int) -> Pieces:
    """Return the row below a text that is too long."""
    gap = " " * _labels(width)
    return cut([(gap, ""), ("the rest is not shown", "dim")], width)


def _extras(extras: Mapping[str, Any]) -> str:
    """Return numbers on one line, then each other value on a line of its own."""
    numbers = []
    lines = []
    for key, value in extras.items():
        if isinstance(value, bool):
            lines.append(f"{key}: {'true' if value else 'false'}")
        elif isinstance(value, int | float):
            numbers.append(f"{key} {compact(value)}")
        elif value is not None and str(value):
            lines.append(f"{key}: {value}")
    if numbers:
        lines.insert(0, " · ".join(numbers))
    return "\n".join(lines)


def _labels(width: int) -> int:
    return _LABELS if width >= _LABELLED else 0
