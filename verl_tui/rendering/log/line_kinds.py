"""What a line of a console is: an error, a warning, a step; and what stands before its text."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import EventKind
from verl_tui.rendering.text.search import needle
from verl_tui.sources.formats.console import decoder as console
from verl_tui.sources.formats.console import events as console_events
from verl_tui.sources.formats.console.step_lines import STEP
from verl_tui.text import strip_ansi

if TYPE_CHECKING:
    from verl_tui.rendering.text.search import Search

_LOOKED_AT = 400
"""Characters in which a line says what it is; what comes later is what it tells."""
_LEVEL = rb"(?:^|[\s\[\]|:(])(?:%s)(?=[\s\[\]|:)]|$)"
_ERROR = re.compile(
    _LEVEL % rb"ERROR|CRITICAL|FATAL" + rb"|^[Ee]rror:|^Fatal Python error:|\*\*\* SIG\w+ received"
)
_WARNING = re.compile(_LEVEL % rb"WARNING|WARN" + rb"|\w*Warning: |warnings\.warn\(")
"""What Python's logging and warnings write; vLLM, SGLang and Ray write levels the same way."""
_QUOTED = re.compile(r"\s*warnings\.warn\(")
"""The line of source that Python's warnings print behind their own."""
_AROUND = ("Traceback (most recent", "The above exception was", "During handling of the above")
"""What stands around the line that names an exception, and says nothing without it."""
_ALARMING = re.compile(
    rb"ERROR|CRITICAL|FATAL|[Ee]rror:|WARN|Warning: |warnings\.warn\(|\*\*\* SIG"
)
_REPEATED = re.compile(r"\s*\[repeated (\d+)x across cluster\].*$")
_ACTOR = re.compile(r"\(?([^\s()\[\]:=]+)")


class LineKind(Enum):
    """What a line is, for its colour and its sign."""

    ERROR = "error"
    WARNING = "warning"
    MARK = "mark"
    """A turning point: start, checkpoint, end."""
    STEP = "step"
    PROGRESS = "progress"
    PLAIN = "plain"


_KINDS = {
    EventKind.FATAL: LineKind.ERROR,
    EventKind.TRACEBACK: LineKind.ERROR,
    EventKind.WARNING: LineKind.WARNING,
}
"""All other events are turning points."""


class LineParts(NamedTuple):
    """A line taken apart."""

    tag: str
    """Who printed it, in a word; empty for the driver."""
    text: str
    """The line without who printed it and how often."""
    times: int
    """How often it was printed, as Ray says."""
    kind: LineKind


@lru_cache(4096)
def split_line(line: str) -> LineParts:
    """Return what a line consists of."""
    data = line.encode("utf-8", "replace")
    found = console.PREFIX.match(data)
    tag, text = "", line
    if found is not None:
        # Ray's prefix is ASCII but for an actor's name; the match is cut from the text itself.
        prefix = found.group().decode("utf-8", "replace")
        text = line[len(prefix) :]
        named = _ACTOR.search(prefix.strip())
        tag = (named.group(1) if named else "").removesuffix("=")
        data = data[found.end() :]
    times = 1
    if "[repeated " in text and (said := _REPEATED.search(text)):
        times, text = max(1, int(said.group(1)[:9])), text[: said.start()]
    return LineParts(tag, text, times, _kind(text, data))


def _kind(text: str, data: bytes) -> LineKind:
    if text.startswith("{") and not text.startswith("{'"):
        return LineKind.PLAIN  # a record of a JSONL file: what it quotes is not said by the log
    if "step:" in text and STEP.search(data):
        return LineKind.STEP
    data = data[:_LOOKED_AT]
    event = console_events.line_kind(data)
    if event is not None:
        return _KINDS.get(event, LineKind.MARK)
    if _ALARMING.search(data):
        if _ERROR.search(data):
            return LineKind.ERROR
        if _WARNING.search(data):
            return LineKind.WARNING
    return LineKind.PROGRESS if "%|" in text else LineKind.PLAIN


class TextQuery:
    """Asks for a text, in the line as it was printed or without who printed it."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.words = f"/{search.expression}/"
        word = needle(search.expression)
        # Of letters only those of ASCII change their case as bytes do.
        cased = search.folds and any(
            not sign.isascii() and sign.lower() != sign.upper() for sign in word
        )
        self._word = b"" if cased else word.encode("utf-8", "replace")

    def worth(self, data: bytes) -> bool:
        """Tell whether some bytes may hold it; a word with invisible signs in it may be missed."""
        if not self._word:
            return True
        data = strip_ansi(data)
        return self._word in (data.lower() if self.search.folds else data)

    def found(self, line: str) -> bool:
        """Tell whether a line has it."""
        return self.search.search(line) or self.search.search(split_line(line).text)


class Alarms:
    """Asks for errors, or for warnings."""

    def __init__(self, kind: LineKind = LineKind.ERROR) -> None:
        """Ask.

        Args:
            kind: `Kind.ERROR` or `Kind.WARNING`.
        """
        self._kind = kind
        self.words = kind.value

    def worth(self, data: bytes) -> bool:
        """Tell whether some bytes may hold one."""
        return console_events.may_fail(data) or _ALARMING.search(data) is not None

    def found(self, line: str) -> bool:
        """Tell whether a line is one; of a traceback the exception, of a warning not the source
        below.
        """
        parts = split_line(line)
        return parts.kind is self._kind and not _continues(parts.text)


def _continues(text: str) -> bool:
    """Tell whether a line belongs to an error or a warning that another line names."""
    return text.startswith(_AROUND) or _QUOTED.match(text) is not None


class StepLine:
    """Asks for what a log printed at a step: the console's line, or the record of a JSONL file."""

    def __init__(self, step: int) -> None:
        self._pattern = re.compile(rf'(?<![\w:])step:{step} - |"step": ?{step}\b')
        self._spellings = [
            text.encode() for text in (f"step:{step} - ", f'"step": {step}', f'"step":{step}')
        ]
        self.words = f"line of step {step}"

    def worth(self, data: bytes) -> bool:
        """Tell whether some bytes may hold it."""
        return any(spelling in data for spelling in self._spellings)

    def found(self, line: str) -> bool:
        """Tell whether a line is it."""
        return self._pattern.search(line) is not None
