"""Kinds of log lines (error, warning, step, ...), the prefix before their text, and searches."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import EventKind
from verl_tui.rendering.text.search import Search, needle
from verl_tui.sources.formats.console import errors as console_errors
from verl_tui.sources.formats.console.line_parts import parted, unrepeated
from verl_tui.sources.formats.console.step_lines import STEP
from verl_tui.text import strip_ansi

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_LONGEST = 300
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
        known, times = unrepeated(text.encode())
        text = known.decode()
    return ParsedLine(tag, text, times, _kind(text, data))


def _kind(text: str, data: bytes) -> LineKind:
    if text.startswith("{") and not text.startswith("{'"):
        return LineKind.PLAIN  # a JSONL record, whose texts are quoted
    if "step:" in text and STEP.search(data):
        return LineKind.STEP
    data = data[:_LOOKED_AT]
    event = console_errors.line_kind(data)
    if event is not None:
        return _KINDS.get(event, LineKind.MARK)
    if _ALARMING.search(data):
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
        # Only ASCII letters change case in bytes as they do in text.
        cased = search.folds and any(
            not sign.isascii() and sign.lower() != sign.upper() for sign in word
        )
        self._word = b"" if cased else word.encode("utf-8", "replace")

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
    *before, own = [line for line in lines if line.start <= end][-_LONGEST:]
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
