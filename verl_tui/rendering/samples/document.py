"""A whole sample as rows of text: parts with headings, foldable, wrapped only as far as seen."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from verl_tui.means import clamp
from verl_tui.rendering.samples import answers, margin, marks
from verl_tui.rendering.samples.model_turns import turn_words
from verl_tui.rendering.samples.prompt_end import last_rows, prompt_end
from verl_tui.rendering.samples.speaker_stretches import parse_both
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.wrap import fit, spans
from verl_tui.words import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from verl_tui.records import Sample
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.rendering.text.search import Search

PARTS = ("prompt", "response", "truth", "fields")
"""Parts of a sample from top to bottom; number 1 is the prompt."""

_TITLES = {"truth": "ground truth"}
_ROOMY = 20
"""Height from which on empty rows separate the parts."""
_STEP = 256
"""Rows wrapped at a time."""
_MOST_ROWS = 20_000
"""Most rows of one part."""


class Hit(NamedTuple):
    """A search hit in a part of the sample."""

    part: int
    start: int
    end: int


class _DocumentRow(NamedTuple):
    """A row: a span of a part's text, or something else at that place."""

    part: int
    start: int
    end: int
    kind: str = ""
    """`heading`, `note`, `blank`, `turn` or `compared`; empty for text."""


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
        raw: bool = False,
    ) -> None:
        """Lay out a sample; nothing is wrapped yet.

        Args:
            sample: The sample to show.
            width: Cells of a row.
            height: Rows that can be seen at once.
            folded: Names of `PARTS` that are folded to a few rows.
            searches: Searches whose hits are marked in prompt and response.
            raw: Show the text without margin, turns and colours of kinds.
        """
        self.sample = sample
        self._width = max(1, width)
        self._height = height
        self._folded = frozenset(folded)
        self._searches = tuple(searches)
        texts = (sample.prompt, sample.response, sample.ground_truth, _fields(sample))
        self._parts = [
            (name, text.strip("\n"))
            for name, text in zip(PARTS, texts, strict=True)
            if text is not None
        ]
        self._parts = [
            (name, text) for name, text in self._parts if text or name in PARTS[:2]
        ]
        self._raw = raw
        self._marks: dict[int, list[marks.MarkedSpan]] = {}
        self._lines: list[_DocumentRow] = []
        self._more = self._lay_out()
        self.complete = False
        """True once all rows are known."""
        self.here: Hit | None = None
        """The hit that the user has gone to."""

    def __len__(self) -> int:
        return len(self._lines)

    def grow(self, rows: int) -> None:
        """Wrap more text until `rows` rows are known, or all of them."""
        missing = rows - len(self._lines)
        if missing > 0 and not self.complete:
            fresh = list(islice(self._more, max(missing, _STEP)))
            self._lines += fresh
            self.complete = len(fresh) < missing

    @cached_property
    def hits(self) -> list[Hit]:
        """All hits in prompt and response, in the order of the rows."""
        found: list[Hit] = []
        for at, (name, text) in enumerate(self._parts):
            if name in PARTS[:2]:
                spans = marks.hits(text, self._searches)
                found += [Hit(at, start, end) for start, end, _ in spans]
        return found

    def name_of(self, hit: Hit) -> str:
        """Return the part that a hit is in."""
        return self._parts[hit.part][0]

    def row_of(self, hit: Hit) -> int:
        """Return the row in which a hit begins."""
        while not self.complete and not self._reaches(hit):
            self.grow(len(self._lines) + _STEP)
        place = (hit.part, hit.start)
        behind = bisect_right(self._lines, place, key=lambda line: line[:2])
        return max(0, behind - 1)

    def _reaches(self, hit: Hit) -> bool:
        """Return whether the rows that are known go as far as a hit's end."""
        return bool(self._lines) and self._lines[-1][:2] >= (hit.part, hit.end)

    def part_at(self, row: int) -> str:
        """Return the part that a row belongs to."""
        if not self._lines:
            return PARTS[0]
        line = self._lines[clamp(row, 0, len(self._lines) - 1)]
        return self._parts[line.part][0]

    def row(self, at: int) -> Pieces:
        """Return a row that is known."""
        line = self._lines[at]
        if line.kind:
            return _cut(self._row_beside_text(line), self._width)
        beside = self._margin(at)
        if line.end <= line.start:
            return beside
        name, text = self._parts[line.part]
        if name == "truth" and self._truth_row:
            return self._truth_row
        found = self._marks_of(line.part)
        if self.here is not None and self.here.part == line.part:
            here = (self.here.start, self.here.end, "here")
            found = marks.over(found, [here])
        return [*beside, *marks.pieces(text, line.start, line.end, found, name)]

    def _row_beside_text(self, line: _DocumentRow) -> Pieces:
        """Return a row that is not of a text, however long."""
        match line.kind:
            case "heading":
                return self._heading(line.part)
            case "note":
                return [(self._note(line), "dim")]
            case "turn":
                return [(self._turn_row(line), "dim")]
            case "compared":
                return self._compared_row()
        return []

    def _note(self, line: _DocumentRow) -> str:
        if not self._parts[line.part][1].strip():
            return "(empty)"
        where = "above" if line.start < 0 else "more"
        return f"{'…'} {line.end:,} characters {where}"

    # -- speakers, thoughts, tools and answers -----------------------------------------------------

    @cached_property
    def _typed(self) -> dict[int, margin.Typed]:
        """Prompt and response with their speakers, by part; empty if the text is shown raw."""
        texts = [text for _, text in self._parts[:2]]
        if self._raw:
            return {}
        both = zip(texts, parse_both(*texts), strict=True)
        return {
            at: margin.typed(text, found.stretches, self._width)
            for at, (text, found) in enumerate(both)
        }

    @cached_property
    def _turns(self) -> dict[int, str]:
        """The line above each turn of the response."""
        typed = self._typed.get(1)
        if typed is None:
            return {}
        return turn_words(typed.stretches, self.sample.extras)

    @cached_property
    def _compared(self) -> answers.AnswerCheck | None:
        """The response's answer beside the ground truth."""
        typed = self._typed.get(1)
        if typed is None:
            return None
        return answers.judged(self.sample, typed.stretches)

    def _text_width(self, part: int) -> int:
        typed = self._typed.get(part)
        if typed is not None:
            return self._width - typed.width
        return self._width

    def _margin(self, at: int) -> Pieces:
        line = self._lines[at]
        typed = self._typed.get(self._lines[at].part)
        if typed is None:
            return []
        before = next(
            (above.start for above in self._above(at) if above.end > above.start), None
        )
        return typed.margin(line.start, line.end, before)

    def _above(self, at: int) -> Iterator[_DocumentRow]:
        """Yield the rows of the same text above a row, some only."""
        for above in range(at - 1, max(-1, at - 5), -1):
            if (
                self._lines[above].part != self._lines[at].part
                or self._lines[above].kind
            ):
                return
            yield self._lines[above]

    def _turn_row(self, line: _DocumentRow) -> str:
        words = f"{'─' * 2} {self._turns[self._typed[line.part].turn(line.start)]} "
        return words + "─" * max(0, min(self._width, 72) - len(words))

    @cached_property
    def _truth_row(self) -> Pieces | None:
        """The ground truth and how the answer compares with it, where one row holds both."""
        truth = dict(self._parts).get("truth")
        if truth is None or self._compared is None:
            return None
        return answers.truth_row(truth, self._compared, self._width)

    def _compared_row(self) -> Pieces:
        if self._compared is None:
            return []
        return answers.compared_words(self._compared, self.sample.ground_truth or "")

    # -- layout ------------------------------------------------------------------------------------

    def _lay_out(self) -> Iterator[_DocumentRow]:
        for at, (name, text) in enumerate(self._parts):
            if at and self._height >= _ROOMY:
                yield _DocumentRow(at, -3, -3, "blank")
            yield _DocumentRow(at, -2, -2, "heading")
            if not text.strip():
                yield _DocumentRow(at, 0, 0, "note")
            elif name in self._folded:
                yield from self._folded_lines(at, name, text)
            else:
                yield from self._text_lines(at, text)
            if name == "truth" and self._compared is not None and not self._truth_row:
                yield _DocumentRow(at, len(text) + 1, len(text) + 1, "compared")

    def _text_lines(self, at: int, text: str) -> Iterator[_DocumentRow]:
        rows = self._worded(at, spans(text, self._text_width(at)))
        turns = self._turns if at == 1 else {}
        end = 0
        before = None
        for start, end in islice(rows, _MOST_ROWS):
            turn = self._typed[at].turn(start) if turns else None
            if turn != before and turn in turns:
                yield _DocumentRow(at, start, start, "turn")
            before = turn
            yield _DocumentRow(at, start, end)
        if next(rows, None) is not None:
            yield _DocumentRow(at, len(text), len(text) - end, "note")

    def _worded(
        self, at: int, rows: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[int, int]]:
        """Yield rows without the names of speakers that labels repeat, unless the text was
        searched; all rows of a text without words.
        """
        typed = self._typed.get(at)
        text = self._parts[at][1]
        skips_names = typed is not None and not any(hit.part == at for hit in self.hits)
        for start, end in rows:
            words = (
                typed.worded(text, start, end)
                if typed is not None and skips_names
                else start
            )
            if words < end or words == start:
                yield words, end

    def _folded_lines(self, at: int, name: str, text: str) -> Iterator[_DocumentRow]:
        shown = 3 if self._height >= _ROOMY else 1
        width = self._text_width(at)
        if name != "prompt":
            rows = list(islice(self._worded(at, spans(text, width)), shown))
            yield from (_DocumentRow(at, start, end) for start, end in rows)
            hidden = len(text) - rows[-1][1]
            if hidden > 0:
                yield _DocumentRow(at, len(text), hidden, "note")
            return
        whole = last_rows(text, prompt_end(text), width, 2 * shown)
        rows = list(self._worded(at, whole)) or whole
        rows = rows[-shown:]
        above = rows[0][0]
        if above > 0:
            yield _DocumentRow(at, -1, above, "note")
        yield from (_DocumentRow(at, start, end) for start, end in rows)

    def _heading(self, at: int) -> Pieces:
        name, text = self._parts[at]
        title = f"{PARTS.index(name) + 1} {_TITLES.get(name, name)}"
        row: Pieces = [(f"{'▾▸'[name in self._folded]} {title}", "heading")]
        if name in PARTS[:2]:
            row.append((f"  {counted(len(text), 'character')}", "dim"))
        hits = sum(hit.part == at for hit in self.hits)
        if hits:
            row += [("  ", ""), (counted(hits, "hit"), marks.HIT)]
        repeated = self._repeated(at)
        if repeated:
            row.append((f"  {repeated / len(text):.0%} repeats itself", "warning"))
        return row

    def _repeated(self, at: int) -> int:
        """Return the number of characters in a part that are marked as repetition."""
        spans = self._marks_of(at)
        return sum(end - start for start, end, role in spans if role == marks.REPEATED)

    def _marks_of(self, at: int) -> list[marks.MarkedSpan]:
        if at not in self._marks:
            name, text = self._parts[at]
            found: list[marks.MarkedSpan] = []
            if at in self._typed:
                found = self._typed[at].marks
            elif name in PARTS[:2]:
                found = marks.special(text)
            if name == "truth" and self._compared is not None:
                found = answers.truth_marks(text, self._compared)
            if name == "response":
                found = marks.over(marks.repeated(text), found)
            hits = [
                (hit.start, hit.end, marks.HIT) for hit in self.hits if hit.part == at
            ]
            self._marks[at] = marks.over(found, hits)
        return self._marks[at]


def _fields(sample: Sample) -> str:
    """Return the further fields as text, numbers first."""
    numbers = [
        f"{name}  {compact(value)}"
        for name, value in sample.extras.items()
        if _is_number(value)
    ]
    words = [
        f"{name}  {value}"
        for name, value in sample.extras.items()
        if not _is_number(value)
    ]
    group = [f"group  {sample.group}"] if sample.group is not None else []
    return "\n".join(numbers + words + group)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cut(row: Pieces, width: int) -> Pieces:
    """Return a row without the pieces that do not fit, the first cut."""
    kept: Pieces = []
    for text, role in row:
        if cell_len(text) > width:
            return kept or [(fit(text, width), role)]
        kept.append((text, role))
        width -= cell_len(text)
    return kept
