"""A whole sample as rows of text: labelled parts, foldable, wrapped only as far as seen.

The samples screen puts a heading above each part; the panel, which has little room, writes its name
into the margin beside the first row, or its first letter.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.means import clamp
from verl_tui.rendering.samples.answers import Answer, find_answers, truth_text
from verl_tui.rendering.samples.speakers import (
    REPEATED,
    TextChunk,
    over,
    parse_both,
    repeated,
    special,
    turn_words,
)
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import (
    ELLIPSIS,
    MarkedSpan,
    Pieces,
    cut,
    pieces,
    spans,
)
from verl_tui.repetition import disjoint
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from verl_tui.records import Sample
    from verl_tui.rendering.text.search import Search

PARTS = ("prompt", "response", "truth", "fields")
"""Parts of a sample from top to bottom; number 1 is the prompt."""
_TITLES = {"truth": "ground truth"}
_LABELLED, _RULED = 60, 24
"""Widths from which there are labels, and a rule beside the text, in cells."""
_LABELS = {"thought": "think"}
_ROOMY = 20
"""Height from which empty rows separate the parts."""
_STEP = 256
"""Rows wrapped at a time."""
_TRUTH = 3
"""Rows of the ground truth that folding keeps in sight."""
_MOST_ROWS = 20_000
"""Most rows of one part."""


class Hit(NamedTuple):
    """A search hit in a part of the sample."""

    part: int
    start: int
    end: int


class _Row(NamedTuple):
    """A row: a span of a part's text, or words at that place."""

    part: int
    start: int
    end: int
    label: str = ""
    role: str = "dim"
    """Role of the label."""
    words: str = ""
    """Words in place of the text."""
    kind: str = "text"
    """`text`, `words`, `heading` or `blank`."""


class _Text(NamedTuple):
    """The text of a part."""

    name: str
    text: str
    size: int = 1
    """Characters that were logged."""
    marks: Sequence[MarkedSpan] = ()
    chunks: Sequence[TextChunk] = ()
    """Who speaks where; none if that is not shown."""
    answers: Sequence[int] = ()
    """Where final answers begin."""
    labels: frozenset[str] = frozenset()
    """Roles that are named beside its rows; none if all of it is text of one speaker."""
    turns: Mapping[int, str] = {}
    """The lines above turns."""

    def labelled(self, row: _Row, chunk: TextChunk, before: str) -> _Row:
        """Return a row of a chunk with its label, unless the row before it had the same."""
        role = chunk.role
        label = role if role != before and row.start < row.end else ""
        at = bisect_right(self.answers, row.start - 1)
        if at < len(self.answers) and self.answers[at] < row.end:
            label = role = "answer"
        label = _LABELS.get(label, label) if label in self.labels else ""
        return row._replace(label=label, role=role)

    @property
    def stop(self) -> int:
        """The end of a text; of a prompt without what only opens the model's turn."""
        for chunk in reversed(self.chunks if self.name == "prompt" else ()):
            if chunk.speaker != "assistant" and not chunk.token:
                return len(self.text[: chunk.end].rstrip())
        return len(self.text)


class Document:
    """One sample laid out for one width."""

    def __init__(
        self,
        sample: Sample,
        width: int,
        height: int,
        *,
        folded: Collection[str] = (),
        searches: Sequence[Search] = (),
        here: int | None = None,
        raw: bool = False,
        unfolds: str | None = None,
    ) -> None:
        """Lay out a sample; nothing is wrapped yet.

        Args:
            sample: The sample to show.
            width: Cells of a row.
            height: Rows that can be seen at once.
            folded: Names of `PARTS` that are folded to a few rows.
            searches: Searches whose hits are marked in prompt and response.
            here: Number of the hit that the user has gone to.
            raw: Show the text without margin, turns and colours of kinds.
            unfolds: In the panel, the key that unfolds; None on the screen.
        """
        self._roomy = height >= _ROOMY
        self._folded = folded
        self._unfolds = unfolds
        self._parts = _parts(sample, raw=raw, grouped=unfolds is None)
        self.hits: list[Hit] = []
        """All hits in prompt and response, in the order of the rows."""
        for at, part in enumerate(self._parts[:2] if searches else ()):
            found = _merged_hits(part.text, searches)
            self.hits += [Hit(at, *hit) for hit in found]
            marks = over(part.marks, [(*hit, "hit") for hit in found])
            self._parts[at] = part._replace(marks=marks)
        if here is not None and self.hits:
            at, start, end = self.hits[here % len(self.hits)]
            marks = over(self._parts[at].marks, [(start, end, "here")])
            self._parts[at] = self._parts[at]._replace(marks=marks)
        self._set_margin(max(1, width))
        self._most = dict.fromkeys(folded, 4 if self._roomy else 2)
        """Rows that folded parts may take."""
        if unfolds is not None and folded:
            self._most = self._fitting(height)
        self._rows: list[_Row] = []
        self._more = self._lay_out()
        self.complete = False
        """True once all rows are known."""

    def _set_margin(self, width: int) -> None:
        labels = {_LABELS.get(role, role) for one in self._parts for role in one.labels}
        named = self._unfolds is not None
        if named:
            labels |= {one.name for one in self._parts}
        wide = bool(labels) and width >= _LABELLED
        self._labels = max(map(len, labels)) if wide else int(named and width >= _RULED)
        """Cells of a label, 0 without labels."""
        self._rule = " " * wide + "│ " * (bool(labels) and width >= _RULED)
        """What stands between label and text."""
        self._cells = width
        self._width = max(1, width - self._labels - len(self._rule))
        """Cells of the text."""

    def __len__(self) -> int:
        return len(self._rows)

    def grow(self, rows: int) -> None:
        """Wrap more text until `rows` rows are known, or all of them."""
        missing = rows - len(self._rows)
        if missing > 0 and not self.complete:
            fresh = list(islice(self._more, max(missing, _STEP)))
            self._rows += fresh
            self.complete = len(fresh) < missing

    @property
    def hides(self) -> bool:
        """True if a part is folded to fewer rows than it has."""
        self.grow(_STEP)
        return any(row.words.startswith(ELLIPSIS) for row in self._rows)

    def part_at(self, row: int) -> str:
        """Return the part that a row belongs to."""
        if not self._rows:
            return PARTS[0]
        return self._parts[self._rows[clamp(row, 0, len(self._rows) - 1)].part].name

    def part_of(self, hit: Hit) -> str:
        """Return the part that a hit is in."""
        return self._parts[hit.part].name

    def row_of(self, hit: Hit) -> int:
        """Return the row in which a hit begins."""
        end = (hit.part, hit.end)
        while not self.complete and (not self._rows or self._rows[-1][:2] < end):
            self.grow(len(self._rows) + _STEP)
        return max(0, bisect_right(self._rows, hit[:2], key=lambda row: row[:2]) - 1)

    def row(self, at: int) -> Pieces:
        """Return a row that is known."""
        row = self._rows[at]
        part = self._parts[row.part]
        if row.kind == "blank":
            return []
        if row.kind == "heading":
            return self._heading(row.part)
        before = self._rows[at - 1] if at else None
        named = before is not None and before[0::3][:2] == row[0::3][:2]
        name = "" if named else row.label[: self._labels]
        label = f"{name:>{self._labels}}{self._rule}"
        margin: Pieces = [(label, row.role)] if label else []
        if row.kind == "words":
            return cut([*margin, (row.words, "dim")], self._cells)
        return [*margin, *pieces(part.text, row.start, row.end, part.marks, part.name)]

    def _heading(self, at: int) -> Pieces:
        part = self._parts[at]
        title = f"{PARTS.index(part.name) + 1} {_TITLES.get(part.name, part.name)}"
        row: Pieces = [(f"{'▾▸'[part.name in self._folded]} {title}", "heading")]
        if part.name in PARTS[:2]:
            row.append((f"  {counted(part.size, 'character')}", "dim"))
        hits = sum(hit.part == at for hit in self.hits)
        if hits:
            row += [("  ", ""), (counted(hits, "hit"), "hit")]
        again = sum(end - start for start, end, role in part.marks if role == REPEATED)
        if again:
            row.append((f"  {again / part.size:.0%} repeats itself", "warning"))
        return cut(row, self._cells)

    # -- layout ------------------------------------------------------------------------------------

    def _fitting(self, height: int) -> dict[str, int]:
        """Return the rows that prompt and response may take for the end of both, and the ground
        truth, to stay in sight.
        """
        rows = {
            part.name: len(list(islice(self._text_rows(at), height + 1)))
            for at, part in enumerate(self._parts)
        }
        room = height - min(_TRUTH, rows.get("truth", 0))
        room -= (len(rows) - 1) * self._roomy
        spare = max(3 if height >= 8 else 1, room - rows["response"])
        prompt = min(spare, rows["prompt"])
        return {"prompt": prompt, "response": max(1, room - prompt)}

    def _lay_out(self) -> Iterator[_Row]:
        for at, part in enumerate(self._parts):
            if at and self._roomy:
                yield _Row(at, -2, -2, kind="blank")
            if self._unfolds is None:
                yield _Row(at, -1, -1, kind="heading")
            if part.name in self._most:
                yield from self._folded_rows(at, self._most[part.name])
                continue
            rows = self._text_rows(at)
            end = 0
            for row in islice(rows, _MOST_ROWS):
                yield row
                end = row.end
            if next(rows, None) is not None:
                yield self._note(at, len(part.text), len(part.text) - end)

    def _folded_rows(self, at: int, most: int) -> Iterator[_Row]:
        """Yield so many rows: all where they fit, else how much is hidden and the end; in a single
        row the end alone.
        """
        part = self._parts[at]
        first = list(islice(self._text_rows(at), most + 1))
        if len(first) <= most:
            yield from first
            return
        ends = last_rows(part.text, part.stop, self._width, 2 * most)
        rows = [row for row in self._labelled(at, ends) if row.kind == "text"]
        rows = rows or [_Row(at, *ends[-1])]
        if most == 1:
            end = f"{ELLIPSIS} {part.text[rows[-1].start : rows[-1].end]}"
            yield self._named(rows[-1]._replace(words=end, kind="words"))
            return
        last = rows[1 - most :]
        yield self._named(self._note(at, last[0].start, last[0].start, self._unfolds))
        yield from last

    def _note(self, at: int, place: int, hidden: int, key: str | None = None) -> _Row:
        words = f"{ELLIPSIS} {hidden:,} characters{f', {key} unfolds' if key else ''}"
        return _Row(at, place, place, words=words, kind="words")

    def _named(self, row: _Row) -> _Row:
        """Label the first row of a part with its name, where no heading does."""
        if self._unfolds is None:
            return row
        return row._replace(label=self._parts[row.part].name, role="label")

    def _text_rows(self, at: int) -> Iterator[_Row]:
        """Yield all rows of a part."""
        rows = self._labelled(at, spans(self._parts[at].text, self._width))
        yield from map(self._named, islice(rows, 1))
        yield from rows

    def _labelled(self, at: int, rows: Iterable[tuple[int, int]]) -> Iterator[_Row]:
        """Yield rows with labels where another speaks or in another way, and lines above turns.
        Tokens that only name who the label names are left out, unless the text was searched.
        """
        part = self._parts[at]
        before, turn = "", -1
        for start, end in rows:
            row = _Row(at, start, end)
            behind = bisect_right(part.chunks, start, key=lambda one: one.start)
            if not behind:
                yield row
                continue
            chunk = part.chunks[behind - 1]
            if self._labels and not self.hits and _names_speaker(part.text, chunk, end):
                continue
            if chunk.turn != turn and chunk.turn in part.turns:
                words = f"── {part.turns[chunk.turn]} ──"
                yield _Row(at, start, start, words=words, kind="words")
            turn = chunk.turn
            yield part.labelled(row, chunk, before)
            before = chunk.role if start < end else before


def last_rows(text: str, end: int, width: int, rows: int) -> list[tuple[int, int]]:
    """Return the last rows of the text before `end`, wrapping only its last lines."""
    found: list[tuple[int, int]] = []
    while len(found) < rows and end >= 0:
        start = text.rfind("\n", 0, end) + 1
        line = spans(text[start:end], width)
        found[:0] = [(start + first, start + last) for first, last in line]
        end = start - 1
    return found[-rows:]


def _merged_hits(text: str, searches: Iterable[Search]) -> list[tuple[int, int]]:
    """Return every hit, overlapping ones merged."""
    return disjoint(hit for search in searches for hit in search.hits(text))


def _names_speaker(text: str, one: TextChunk, end: int) -> bool:
    """Return whether a row that ends somewhere has nothing but the word that the label has."""
    said = text[one.start : one.end].lower()
    names = one.token and one.kind == "text" and one.speaker in said
    return names and not text[one.end : end].strip()


# -- parts -----------------------------------------------------------------------------------------


def _parts(sample: Sample, *, raw: bool, grouped: bool) -> list[_Text]:
    asked, answered = _said(sample.prompt.strip("\n"), sample.response.strip("\n"), raw)
    truth: tuple[str, Sequence[MarkedSpan]] = (sample.ground_truth or "", ())
    turns: Mapping[int, str] = {}
    if not raw:
        turns = turn_words(answered.chunks, sample.extras)
        truth = truth_text(sample, answered.chunks)
    parts = [
        asked._replace(size=len(sample.prompt)),  # as the list counts them
        answered._replace(size=len(sample.response), turns=turns),
        _Text("truth", truth[0].strip("\n"), marks=truth[1]),
        _Text("fields", _fields(sample, grouped=grouped)),
    ]
    return [one for one in parts if one.text]


@lru_cache(maxsize=8)  # the same sample is laid out anew for another size or fold
def _said(prompt: str, response: str, raw: bool) -> tuple[_Text, _Text]:
    """Return prompt and response with all that is marked in them."""
    asked, answered = ((), ()) if raw else parse_both(prompt, response)
    return _text("prompt", prompt, asked), _text("response", response, answered)


def _text(name: str, text: str, chunks: Sequence[TextChunk]) -> _Text:
    if not text.strip():
        return _Text(name, "(empty)", 0, [(0, 7, "dim")])
    answers = find_answers(text, chunks)
    roles = [(one.start, one.end, one.role) for one in chunks if not one.token]
    labels = {role for start, end, role in roles if text[start:end].strip()}
    labels.update(["answer"] * bool(answers))
    if len(labels) < 2 and labels <= {"system", "user", "assistant"}:
        labels, roles = set(), []
    found = over(over(roles, special(text)), _outermost(answers))
    if name == "response":
        found = over(repeated(text), found)
    starts = [answer.start for answer in answers]
    return _Text(name, text, len(text), found, chunks, starts, frozenset(labels))


def _outermost(answers: Iterable[Answer]) -> list[MarkedSpan]:
    """Return answers that lie in no other."""
    found: list[MarkedSpan] = []
    for answer in answers:
        if not found or answer.start >= found[-1][1]:
            found.append((answer.start, answer.end, "answer"))
    return found


def _fields(sample: Sample, *, grouped: bool) -> str:
    """Return the further fields as text, numbers on one line."""
    numbers: list[str] = []
    lines: list[str] = []
    for name, value in sample.extras.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            numbers.append(f"{name} {compact(value)}")
        elif value is not None:
            lines.append(f"{name}: {value}")
    if grouped and sample.group is not None:
        numbers.append(f"group {sample.group}")
    return "\n".join((" · ".join(numbers), *lines)).strip("\n")
