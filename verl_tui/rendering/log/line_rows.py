"""Lines of a log: their kinds, the prefix before their text, searches; and as rows: repeated ones
folded with a count, records summarised, long ones cut.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

from verl_tui.indicators import INDICATORS, factor, resolve
from verl_tui.patterns import pattern
from verl_tui.records import EventKind
from verl_tui.rendering.text.numbers import compact
from verl_tui.rendering.text.piece import MarkedSpan, Pieces, fit, pieces, spans
from verl_tui.rendering.text.search import Search, needle
from verl_tui.sources.fields.jsonl import flatten, integer, numbers_in, objects
from verl_tui.sources.formats.console import errors as console_errors
from verl_tui.sources.formats.console.line_parts import parted, unrepeated
from verl_tui.sources.formats.console.step_lines import STEP
from verl_tui.text import one_line, safe, strip_ansi
from verl_tui.words import figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verl_tui.on_demand.log_blocks import LogLine

_LOOKED_AT = 400
"""Characters at the start of a line that decide its kind."""
_LEVEL = rb"(?:^|[\s\[\]|:(])(?:%s)(?=[\s\[\]|:)]|$)"
_ERROR = pattern(
    _LEVEL % rb"ERROR|CRITICAL|FATAL"
    + rb"|^[Ee]rror:|^Fatal Python error:|\*\*\* SIG\w+ received"
)
_WARNING = pattern(
    _LEVEL % rb"WARNING|WARN"
    + rb"|Warning: |warnings\.warn\(|worker died|memory pressure"
)
"""Python's logging and warnings; vLLM, SGLang and Ray write levels the same way."""
_QUOTED = pattern(r"\s*warnings\.warn\(")
"""The source line that Python prints after a warning."""
_LONGEST_TRACEBACK = 300
"""Most lines of a traceback."""
_AROUND = (
    "Traceback (most recent",
    "The above exception was",
    "During handling of the above",
)
"""Lines around the one that names an exception."""
_ALARMING = pattern(
    rb"ERROR|CRITICAL|FATAL|[Ee]rror:|WARN|Warning: |warnings\.warn\(|worker died"
    rb"|memory pressure|\*\*\* SIG"
)
_ACTOR = pattern(r"\(?([^\s()\[\]:=]+)")


class LineKind(Enum):
    """Kind of a line, which decides its colour and sign."""

    ERROR = "error"
    WARNING = "warning"
    MARK = "mark"
    """A milestone: start, checkpoint, end."""
    STEP = "step"
    PROGRESS = "progress"
    PLAIN = "plain"


_KINDS = {
    EventKind.FATAL: LineKind.ERROR,
    EventKind.TRACEBACK: LineKind.ERROR,
    EventKind.WARNING: LineKind.WARNING,
}
"""All other events are milestones."""


class ParsedLine(NamedTuple):
    """The parts of a line."""

    tag: str
    """Name of the actor that printed it, empty for the driver."""
    text: str
    """The line without actor and repetitions."""
    times: int
    """Number of times it was printed, according to Ray."""
    kind: LineKind


@lru_cache(4096)
def split_line(line: str) -> ParsedLine:
    """Split a line into its parts."""
    lead, prefix, data = parted(line.encode("utf-8", "replace"))
    tag = ""
    text = line
    if prefix:
        # Ray's prefix is ASCII but for an actor's name; it is cut from the text itself.
        before = lead.decode()
        name = prefix.decode("utf-8", "replace")
        text = before + line[len(before) + len(name) :]
        named = _ACTOR.search(name.strip())
        tag = (named.group(1) if named else "").removesuffix("=")
    times = 1
    if "[repeated " in text:
        known, times = unrepeated(text.encode("utf-8", "replace"))
        text = known.decode()
    return ParsedLine(tag, text, times, _kind(text, data))


def _kind(text: str, data: bytes) -> LineKind:
    if text.startswith("{") and not text.startswith("{'"):
        return LineKind.PLAIN  # a JSONL record, whose texts are quoted
    if "step:" in text and STEP.search(data):
        return LineKind.STEP
    data = data[:_LOOKED_AT]
    event = console_errors.line_kind(data)
    if event:
        return _KINDS.get(event, LineKind.MARK)
    if _ERROR.search(data):
        return LineKind.ERROR
    if _WARNING.search(data):
        return LineKind.WARNING
    return LineKind.PROGRESS if "%|" in text else LineKind.PLAIN


class TextQuery:
    """Matches lines by a text, with or without the name of the actor."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.words = f"/{search.expression}/"
        word = needle(search.expression)
        # only ASCII letters change case in bytes as they do in text
        alike = not search.folds or word.isascii() or word.lower() == word.upper()
        self._word = word.encode("utf-8", "replace") if alike else b""

    def worth(self, data: bytes) -> bool:
        """Return True if bytes may contain it, except for words with invisible characters."""
        if not self._word:
            return True
        data = strip_ansi(data)
        return self._word in (data.lower() if self.search.folds else data)

    def found(self, line: str) -> bool:
        """Return True if a line contains it."""
        return self.search.search(line) or self.search.search(split_line(line).text)


class Alarms:
    """Matches errors, or warnings."""

    def __init__(self, kind: LineKind = LineKind.ERROR) -> None:
        """Prepare the condition.

        Args:
            kind: `LineKind.ERROR` or `LineKind.WARNING`.
        """
        self._kind = kind
        self.words = kind.value

    def worth(self, data: bytes) -> bool:
        """Return True if bytes may contain one."""
        return console_errors.may_fail(data) or _ALARMING.search(data) is not None

    def found(self, line: str) -> bool:
        """Return True for a line of the kind, of a traceback or a warning only the main line."""
        parts = split_line(line)
        continues = parts.text.startswith(_AROUND) or _QUOTED.match(parts.text)
        return parts.kind is self._kind and not continues


def traceback_start(lines: Sequence[LogLine], end: int) -> int:
    """Return where the traceback begins whose exception is named by the line at a start; that line
    where none ends there.

    Args:
        lines: That line and those before it; others printed among them are passed over.
        end: Its start.
    """
    *before, own = [line for line in lines if line.start <= end][-_LONGEST_TRACEBACK:]
    tag = split_line(own.text).tag
    for line in reversed(before):
        one = split_line(line.text)
        if _AROUND[0] in one.text and one.tag == tag:
            return line.start
        inside = one.kind in (LineKind.ERROR, LineKind.PROGRESS) or one.text.startswith(
            "ray::"
        )
        if one.tag == tag and one.text[:1].strip() and not inside:
            break
    return end


class StepLine:
    """Matches the line of a step in a console log, or its record in a JSONL file."""

    def __init__(self, step: int) -> None:
        self._pattern = re.compile(rf'(?<![\w:])step:{step} - |"step": ?{step}\b')
        self._spellings = [
            text.encode()
            for text in (f"step:{step} - ", f'"step": {step}', f'"step":{step}')
        ]
        self.words = f"line of step {step}"

    def worth(self, data: bytes) -> bool:
        """Return True if bytes may contain it."""
        return any(spelling in data for spelling in self._spellings)

    def found(self, line: str) -> bool:
        """Return True for the line of the step."""
        return self._pattern.search(line) is not None


# -- lines as rows ---------------------------------------------------------------------------------

_NUMBER = pattern(r"\b[0-9a-f]{8,}\b|\d+(?:[.,:]\d+)*")
"""Also the ids that Ray gives workers."""
_ALIKE = 800
"""Characters in which numbers may differ."""
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
    tag: str
    text: str
    """If there are several lines, that of the last one."""
    times: int
    """Number of lines in it."""
    kind: LineKind
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
        elif not apart or not apart(line.text):
            if _ends_bar(made, parts):
                made[-1] = made[-1]._replace(end=line.end)
                continue
            key = _key(parts)
            record = record_summary(parts.text)
            if record:
                parts = parts._replace(tag=parts.tag or record.tag, text=record.text)
        row = LogRow(line.start, line.end, *parts, line.text)
        if key and key == before:
            last = made.pop()
            row = row._replace(start=last.start, times=last.times + row.times)
        made.append(row)
        before = key
    return made


def _ends_bar(above: Sequence[LogRow], line: ParsedLine) -> bool:
    """Return whether a line says nothing but who printed it, below a progress bar: Ray prints the
    line break after each state of a worker's bar as a line of its own.
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
    """The text of the whole row, with its actor and repetitions at the start."""
    start: int
    """Where this piece of it begins, and ends."""
    end: int
    head: Sequence[MarkedSpan]
    """Where actor and repetitions stand."""


def screen_rows(row: LogRow, layout: LogLayout) -> Iterator[ScreenRow]:
    """Yield the rows of the screen that a row of the log takes."""
    tag = f"{_short(row.tag, layout.tag)} " if row.tag else ""
    count = f"×{row.times} " if row.times > 1 else ""
    text = tag + count + row.text
    head = [(0, len(tag), "tag"), (len(tag), len(tag + count), "count")]
    if not layout.wrap:
        text = fit(text[: _LONGEST * layout.width], layout.width)
        yield ScreenRow(row, text, 0, len(text), head)
        return
    for span in spans(text, layout.width):
        yield ScreenRow(row, text, *span, head)


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
    row, text, start, end, head = line
    kind, first = row.kind, start == 0
    begin = max(start, head[-1][1])
    found = search.hits(text[begin:end]) if search else ()
    hits = [(begin + one, begin + last, "hit") for one, last in found]
    shown = str(number) if number is not None and first else ""
    return [
        (f"{_SIGNS.get(kind, ' ') if first else ' '} ", kind.value),
        (f"{shown:>{cells - 1}} " if cells else "", "number"),
        *pieces(text, start, end, [*head, *hits], kind.value),
    ]


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
    numbers = numbers_in(values)
    labels = _indicators(str(record.get("scope") or ""), tuple(numbers))
    keys = list(dict.fromkeys([*labels, *numbers, *values]))
    words = _step_words(record)
    for key in keys[:_JSON_RECORDS_MOST]:
        label, times, unit = labels.get(key, (one_line(key, _WORDS), 1.0, ""))
        said = _quoted(values[key])
        if key in numbers:
            said = f"{figure(times * numbers[key], unit, compact):<{_FIGURE}}"
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
def _indicators(scope: str, keys: tuple[str, ...]) -> dict[str, tuple[str, float, str]]:
    """Return label, factor and unit of the keys that are indicators, in the order to show."""
    # sources put the scope before them
    own = {f"{scope}/{key}" if scope else key: key for key in keys}
    found = resolve(own)
    return {
        own[found[id]]: (one.label, factor(id, found[id]), one.unit)
        for id, one in INDICATORS.items()
        if id in found
    }
