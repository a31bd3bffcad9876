"""Lines of a log as rows: repeated ones folded with a count, records summarised, long ones cut."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

from verl_tui.indicators import INDICATORS, factor, resolve
from verl_tui.patterns import pattern
from verl_tui.rendering.log.line_kinds import LineKind, ParsedLine, split_line
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import Pieces, fit, pieces, spans
from verl_tui.sources.fields.jsonl import flatten, integer, number, objects
from verl_tui.text import one_line, safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.on_demand.log_blocks import LogLine
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


class LogRow(NamedTuple):
    """A line, or several with the same content."""

    start: int
    """Start of its first line."""
    end: int
    """Start of the line after its last."""
    kind: LineKind
    tag: str
    text: str
    """If there are several lines, that of the last one."""
    times: int
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
        key = None
        if not fold:
            parts = ParsedLine("", line.text, 1, parts.kind)
        elif apart is None or not apart(line.text):
            if _ends_bar(made, parts):
                made[-1] = made[-1]._replace(end=line.end)
                continue
            key = _key(parts)
            record = record_summary(parts.text)
            if record is not None:
                parts = parts._replace(tag=parts.tag or record.tag, text=record.text)
        row = LogRow(
            line.start,
            line.end,
            parts.kind,
            parts.tag,
            parts.text,
            parts.times,
            line.text,
        )
        if key is not None and key == before:
            last = made.pop()
            row = row._replace(start=last.start, times=last.times + row.times)
        made.append(row)
        before = key
    return made


def _ends_bar(above: Sequence[LogRow], line: ParsedLine) -> bool:
    """Return whether a line says nothing but who printed it, below a progress bar: Ray prints the
    line break behind each state of a worker's bar as a line of its own.
    """
    below = bool(above) and above[-1].kind is LineKind.PROGRESS
    return below and bool(line.tag) and not line.text.strip()


def _key(line: ParsedLine) -> str | None:
    """Return the key by which lines are folded; None for lines that are never folded."""
    tag, text, _, kind = line
    if kind in (LineKind.STEP, LineKind.MARK):
        return None
    if kind is LineKind.PROGRESS:
        return f"{tag}\0{_NUMBER.sub('#', text.partition('%|')[0])}"
    alike = _NUMBER.sub("#", text[:_ALIKE])
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
    head = f"{tag}×{row.times} " if row.times > 1 else tag
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
    tag, times, count = head.rpartition("×") if line.row.times > 1 else (head, "", "")
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


def _records(line: str) -> list[dict[str, Any]]:
    """Return the records of a line of JSON, none of other lines."""
    try:
        return objects(line.encode("utf-8", "replace")) if line.startswith("{") else []
    except ValueError:
        return []


@lru_cache(4096)
def record_summary(line: str) -> RecordSummary | None:
    """Summarise a line of JSON, None for other lines and empty records."""
    found = _records(line)
    text = "  |  ".join(filter(None, map(_row, found)))
    if not text:
        return None
    return RecordSummary(one_line(str(found[0].get("scope") or ""), _WORDS), text)


def whole_line(line: str) -> str:
    """Return a whole line, JSON with a row for each field."""
    found = (json.dumps(one, indent=2, ensure_ascii=False) for one in _records(line))
    return safe("\n".join(found)) or line


def _row(record: dict[str, Any]) -> str:
    """Return the row of one record: its step, indicators, other figures, texts."""
    data = record.get("data")
    own = {key: record[key] for key in record if key not in (*_ABOUT, *_STEPS)}
    values = flatten(own) | (flatten(data) if isinstance(data, dict) else {})
    found = {key: number(value) for key, value in values.items()}
    numbers = {key: value for key, value in found.items() if value is not None}
    labels = _indicators(str(record.get("scope") or ""), tuple(numbers))
    keys = list(dict.fromkeys([*labels, *numbers, *values]))
    words = _step_words(record)
    for key in keys[:_JSON_RECORDS_MOST]:
        label, times = labels.get(key, (one_line(key, _WORDS), 1.0))
        said = _quoted(values[key])
        if key in numbers:
            said = f"{compact(times * numbers[key]):<{_FIGURE}}"
        words.append(f"{label} {said}")
    more = len(keys) - _JSON_RECORDS_MOST
    return "  ".join([*words, *[f"+{more}"] * (more > 0)]).rstrip()


def _step_words(record: dict[str, Any]) -> list[str]:
    steps = [integer(record.get(name)) for name in _STEPS]
    return [f"step {step:<{_STEP}}" for step in steps if step is not None][:1]


def _quoted(value: object) -> str:
    said = one_line(str(value), _WORDS)
    return f'"{said}"' if isinstance(value, str) else said


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
