"""The console format: which files are one, and their readers."""

from __future__ import annotations

from pathlib import Path

from verl_tui.patterns import pattern
from verl_tui.records import EventKind
from verl_tui.sources.files import is_binary
from verl_tui.sources.formats.console import blocks, kept, unknown
from verl_tui.sources.formats.console.decoder import ConsoleDecoder
from verl_tui.sources.formats.console.dicts import hinted
from verl_tui.sources.formats.console.errors import line_kind
from verl_tui.sources.formats.console.line_parts import TABLE, any_of, form_of, words_of
from verl_tui.sources.formats.console.step_lines import STEP, SURE
from verl_tui.sources.formats.lines import LineReader
from verl_tui.text import strip_ansi

name = "console"
rank = 3
anchor = True

_TELLING = 1024
"""Bytes that tell text from other data; behind them a model may have written any."""
_KNOWN = any_of(TABLE["marks"])
_ENOUGH = 3
"""Records that make a text a console whatever its name; documents quote one."""

_BAR = pattern(
    rb"(?:^|[\r\n])(?P<name>[^\r\n|%]{0,80}?)(?:[: ]\s{0,40})?"
    rb"\d{1,3}%(?:\|[^|\r\n]{0,1000}\|| +(?=\d{1,15}/\d{1,15} \[\d\d:))"
    rb"\s*\d{1,15}/\d{1,15} \["
    rb"|(?:^|[\r\n])[^\S\r\n]*\d{1,15}/\d{1,15} \[\d\d:\d\d<"
)
"""tqdm's bar, with or without a name, or only its numbers if there were too few columns."""
_OF_TRAINING = pattern(
    rb"(?i)\s*(?:[\[(][^\])]*[\])]+:?\s*)*"
    rb"(?:(?:training|train|epochs?|steps?|iter|iterations?|rollout)\b.*)?$"
)
"""Names of a training's bar; Hugging Face's is nameless. Others show loading or data."""
_BEGINS, _MAY_BEGIN = form_of("", "first"), any_of(words_of("first"))
_FAILURES = (EventKind.TRACEBACK, EventKind.FATAL)
_ENDS = 16 * 1024
"""Last bytes of a log, in which a program says why it ended."""
_TRAINS = pattern(TABLE["trains"].encode())
"""Words that show that a failed program was a training."""


def matches(path: Path, head: bytes) -> bool:
    """Return whether the beginning of a text file looks like a training's console."""
    text = kept.as_printed(head) or head
    known = _KNOWN.search(head) or hinted(text) or _has_blocks(text)
    return bool(known) and not is_binary(head[:_TELLING])


def is_sure(head: bytes) -> bool:
    """Return whether a text holds so many records that it is a console, whatever it is called."""
    text = kept.as_printed(head) or head
    records = [
        line.count(b" - ") >= SURE if STEP.search(line) else hinted(line)
        for line in text.split(b"\n")
    ]
    return sum(records) >= _ENOUGH or _has_blocks(text)


def _has_blocks(text: bytes) -> bool:
    return blocks.finds(text) or unknown.form_in(text) is not None


# -- signs of a training without a step ------------------------------------------------------------
# Some of them may be in the log of any program, so a file with nothing else is a run only if no
# better log is beside it, see `verl_tui.sources.discovery.grouping`.


def begins(text: bytes) -> bool:
    """Return True if a text contains the first lines of a training."""
    may_begin = _MAY_BEGIN.search(text) is not None
    return may_begin and _BEGINS.search(strip_ansi(text)) is not None


def shows_bar(text: bytes) -> bool:
    """Return True if a text contains a training's progress bar."""
    if b" [" not in text or b"<" not in text:
        return False
    found = _BAR.finditer(strip_ansi(text))
    return any(_OF_TRAINING.match(one["name"] or b"") for one in found)


def failed(text: bytes, named: str = "") -> bool:
    """Return True if a text ends with the reason for a training program's failure.

    Args:
        text: The log, to its end.
        named: Name of the log, which may show that it is a training's.
    """
    end = text[-_ENDS:]
    fails = any(line_kind(strip_ansi(line)) in _FAILURES for line in end.splitlines())
    trains = (named.encode("utf-8", "replace"), text) if fails else ()
    return any(map(_TRAINS.search, trains))


def reader(path: Path) -> LineReader:
    """Return a reader for one file."""
    return LineReader(ConsoleDecoder())
