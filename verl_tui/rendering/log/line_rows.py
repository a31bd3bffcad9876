"""Lines of a log as rows: repeated ones folded with a count, records summarised, long ones cut."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

from verl_tui.indicators import INDICATORS, factor, resolve
from verl_tui.patterns import pattern
from verl_tui.rendering.log.line_kinds import LineKind, ParsedLine, split_line
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import pieces
from verl_tui.rendering.text.wrap import fit, spans
from verl_tui.sources.fields.jsonl import flatten, integer, number, objects
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.on_demand.log import LogLine
    from verl_tui.rendering.text.piece import Pieces
    from verl_tui.rendering.text.search import Search


_NUMBER = pattern(r"\b[0-9a-f]{8,}\b|\d+(?:[.,:]\d+)*")
"""Also the ids that Ray gives workers."""
_ALIKE = 800
"""Characters in which numbers may differ."""
_MOST = 400
"""Most screen rows of one line."""
_LONGEST = 8
"""Most characters of one cell."""
_SIGNS = {
    LineKind.ERROR: "✖",
    LineKind.WARNING: "▲",
    LineKind.MARK: "◆",
    LineKind.STEP: "●",
}
"""Signs of the kinds beside their colours."""


@dataclass(frozen=True, slots=True)
class LogRow:
    """A line, or several with the same content."""

    start: int
    """Start of its first line."""
    end: int
    """Start of the line after its last."""
    kind: LineKind
    tag: str
    text: str
    """If there are several lines, that of the last one."""
    count: int
    """Number of lines in it."""
    whole: str
    """The last line as it was printed."""


def rows(
    lines: Sequence[LogLine], *, fold: bool, apart: Callable[[str], bool] | None = None
) -> list[LogRow]:
    """Return the rows of some lines.

    Args:
        lines: Lines that follow each other.
        fold: Whether to fold repeated lines that differ only in numbers and in who printed them,
            and to summarise records.
        apart: Returns True for lines to show each by itself, as printed.
    """
    made: list[LogRow] = []
    before: str | None = None
    for line in lines:
        parts = split_line(line.text)
        if not fold:
            made.append(
                LogRow(line.start, line.end, parts.kind, "", line.text, 1, line.text)
            )
            continue
        alone = apart is not None and apart(line.text)
        if not alone and _ends_bar(made, parts):
            made[-1] = replace(made[-1], end=line.end)
            continue
        key = None if alone else _key(parts.kind, parts.tag, parts.text)
        tag, text = (parts.tag, parts.text) if alone else _summed_up(parts)
        row = LogRow(
            line.start, line.end, parts.kind, tag, text, parts.times, line.text
        )
        if key is not None and key == before:
            last = made[-1]
            made[-1] = LogRow(
                last.start,
                row.end,
                row.kind,
                row.tag,
                row.text,
                last.count + row.count,
                row.whole,
            )
        else:
            made.append(row)
        before = key
    return made


def _summed_up(line: ParsedLine) -> tuple[str, str]:
    """Return the tag and the text of a line; for a record, its summary."""
    record = record_summary(line.text)
    if record is None:
        return line.tag, line.text
    return line.tag or record.tag, record.text


def _ends_bar(above: Sequence[LogRow], line: ParsedLine) -> bool:
    """Return whether a line says nothing but who printed it, below a progress bar: Ray prints the
    line break behind each state of a worker's bar as a line of its own.
    """
    below = bool(above) and above[-1].kind is LineKind.PROGRESS
    return below and bool(line.tag) and not line.text.strip()


def _key(kind: LineKind, tag: str, text: str) -> str | None:
    """Return the key by which lines are folded; None for lines that are never folded."""
    if kind in (LineKind.STEP, LineKind.MARK):
        return None
    if kind is LineKind.PROGRESS:
        return f"{tag}\0{_NUMBER.sub('#', text.partition('%|')[0])}"
    short = text[:_ALIKE]
    alike = _NUMBER.sub("#", short)
    # Numbers alone are figures, records of JSONL are each their own.
    figures = text.startswith("{") or not any(sign.isalpha() for sign in alike)
    return f"{tag}\0{text if figures else alike + text[_ALIKE:]}"


class LogLayout(NamedTuple):
    """Options for the layout of rows."""

    width: int
    """Cells for the text of a row."""
    wrap: bool = False
    fold: bool = True
    tag: int = 12
    """Most cells of the actor's name."""
    apart: Callable[[str], bool] | None = None
    """Returns True for lines that are not folded."""


class ScreenRow(NamedTuple):
    """A row of the screen: a piece of a row of the log."""

    row: LogRow
    text: str
    head: int
    """Number of characters at the start for actor and repetitions."""
    first: bool
    """True for the first piece of its row."""


def screen_rows(row: LogRow, layout: LogLayout) -> Iterator[ScreenRow]:
    """Yield the rows of the screen that a row of the log takes."""
    tag = f"{_short(row.tag, layout.tag)} " if row.tag and layout.tag else ""
    head = f"{tag}×{row.count} " if row.count > 1 else tag
    text = head + row.text
    if not layout.wrap:
        yield ScreenRow(
            row,
            fit(text[: _LONGEST * layout.width], layout.width),
            min(len(head), layout.width),
            first=True,
        )
        return
    for nth, (first, last) in enumerate(spans(text, layout.width)):
        if nth == _MOST:
            yield ScreenRow(row, "…", 0, first=False)
            return
        head_left = max(0, len(head) - first)
        yield ScreenRow(row, text[first:last], head_left, first=nth == 0)


def _short(tag: str, cells: int) -> str:
    """Shorten an actor's name to its capitals, which still differ between actors."""
    if cell_len(tag) <= cells:
        return tag
    capitals = "".join(sign for sign in tag if sign.isupper() or sign.isdigit())
    return fit(capitals if 1 < len(capitals) <= cells else tag, cells)


def row_pieces(
    line: ScreenRow, number: int | None, cells: int, search: Search | None
) -> Pieces:
    """Return the pieces of a row.

    Args:
        line: The row.
        number: Number of the line, None where it is not known.
        cells: Cells for the number.
        search: What to mark.
    """
    kind = line.row.kind
    sign = _SIGNS.get(kind, " ") if line.first else " "
    shown = str(number) if number is not None and line.first else ""
    head, text = line.text[: line.head], line.text[line.head :]
    tag, times, count = head.rpartition("×") if line.row.count > 1 else (head, "", "")
    row = [
        (f"{sign} ", kind.value),
        (f"{shown:>{cells - 1}} " if cells else "", "number"),
        (tag, "tag"),
        (times + count, "count"),
    ]
    hits = list(search.hits(text)) if search is not None else []
    marks = [(start, end, "hit") for start, end in hits]
    return [*row, *pieces(text, 0, len(text), marks, kind.value)]


_STEPS = ("global_step", "step")
_ABOUT = {"scope", "timestamp", "time", "ts", "data"}
"""Fields without measurements; those inside `data` are shown."""
_JSON_RECORDS_MOST = 12
"""Most numbers and texts in a row."""
_STEP, _FIGURE = 5, 6
"""Smallest widths of step and numbers in cells, so that consecutive records form columns."""
_WORDS = 60
"""Most characters of a text."""


class RecordSummary(NamedTuple):
    """A record in one row."""

    tag: str
    """Kind of the record."""
    text: str


@lru_cache(4096)
def record_summary(line: str) -> RecordSummary | None:
    """Summarise a line of JSON, None for other lines and empty records."""
    if not line.startswith("{"):
        return None
    try:
        found = objects(line.encode("utf-8", "replace"))
    except ValueError:
        return None
    text = "  |  ".join(filter(None, map(_row, found)))
    if not text:
        return None
    return RecordSummary(one_line(str(found[0].get("scope") or ""), _WORDS), text)


def whole_line(line: str) -> str:
    """Return a whole line, JSON with a row for each field."""
    try:
        found = objects(line.encode("utf-8", "replace")) if line.startswith("{") else []
    except ValueError:
        found = []
    if found:
        return safe(
            "\n".join(
                json.dumps(record, indent=2, ensure_ascii=False) for record in found
            )
        )
    return line


def _row(record: dict[str, Any]) -> str:
    """Return the row of one record: its step, indicators, other figures, texts."""
    values = _values(record)
    found = {key: number(value) for key, value in values.items()}
    numbers = {key: value for key, value in found.items() if value is not None}
    labels = _indicators(str(record.get("scope") or ""), tuple(numbers))
    keys = list(dict.fromkeys([*labels, *numbers, *values]))
    words = _step_words(record)
    for key in keys[:_JSON_RECORDS_MOST]:
        label, times = labels.get(key, (one_line(key, _WORDS), 1.0))
        if key in numbers:
            words.append(f"{label} {compact(times * numbers[key]):<{_FIGURE}}")
        else:
            words.append(f"{label} {_quoted(values[key])}")
    if len(keys) > _JSON_RECORDS_MOST:
        words.append(f"+{len(keys) - _JSON_RECORDS_MOST}")
    return "  ".join(words).rstrip()


def _step_words(record: dict[str, Any]) -> list[str]:
    for name in _STEPS:
        step = integer(record.get(name))
        if step is not None:
            return [f"step {step:<{_STEP}}"]
    return []


def _values(record: dict[str, Any]) -> dict[str, Any]:
    """Return the measurements by name."""
    data = record.get("data")
    values = flatten(
        {key: value for key, value in record.items() if key not in (*_ABOUT, *_STEPS)}
    )
    return values | (flatten(data) if isinstance(data, dict) else {})


def _quoted(value: object) -> str:
    if isinstance(value, str):
        return f'"{one_line(value, _WORDS)}"'
    return one_line(str(value), _WORDS)


@lru_cache(256)
def _indicators(scope: str, keys: tuple[str, ...]) -> dict[str, tuple[str, float]]:
    """Return label and factor of the keys that are indicators, in the order to show."""
    # sources put the scope before them
    own = {f"{scope}/{key}" if scope else key: key for key in keys}
    found = resolve(own)
    return {
        own[found[id]]: (one.label, factor(id, found[id]))
        for id, one in INDICATORS.items()
        if id in found
    }
