"""The last lines of a log and the tracebacks in it, within a bounded number of bytes; on request
without the samples that a training prints between them, which may be private.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from verl_tui.means import gathered
from verl_tui.patterns import pattern
from verl_tui.sources.fields.jsonl import names
from verl_tui.sources.files import head, opened
from verl_tui.sources.formats.console.line_parts import has_bar
from verl_tui.text import safe, strip_ansi
from verl_tui.words import counted

END_BYTES = 512 * 1024
"""Bytes at the end of a log from which the last lines are taken."""
LINE_BYTES = 4000
"""Characters of one line that are kept."""
SEARCHED = 32 * 2**20
"""Bytes at the end in which tracebacks are searched."""
_KINDS = 5
"""Kinds of tracebacks kept from the front and from the back: the first is mostly the cause."""
_TRACEBACK_LINES = 200
_TRACEBACK_BYTES = 64 * 1024
_MARK = b"Traceback (most recent call last)"
_PREFIX = r"(?:\([^)\n]{1,120}\) |\[?rank\d+\]?: ?|\[\w+(?: \d*)?\] ?)"
"""`(TaskRunner pid=123) ` and `[rank0]: `, which distinguish the lines of several processes."""
_PREFIXED = pattern(f"^{_PREFIX}")
_CONTINUED = (b"During handling of the above", b"the direct cause of the following")
_NEAR = 200
"""Bytes before a traceback that may say that it belongs to the one above."""
_GOES_ON = ("During handling of the above", "The above exception was", "Traceback")
_VARIES = pattern(r"0x[0-9a-f]+|\d+", re.IGNORECASE)


class LogEnd(NamedTuple):
    """The part of a log that is kept."""

    lines: Sequence[str]
    """Its last ones."""
    note: str
    """Which part of it this is."""
    tracebacks: Sequence[str]
    """Each kind once, in their order."""
    versioned: str
    """Its beginning and its end, where versions are searched for."""


def read_end(path: Path, most: int) -> LogEnd:
    """Return the last lines of a log, and its tracebacks.

    Args:
        path: The file.
        most: Lines kept.

    Raises:
        OSError: The file cannot be read.
    """
    with opened(path) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - SEARCHED))
        back = file.read(SEARCHED)
    data = back[-END_BYTES:]
    if len(data) < size:
        data = data.partition(b"\n")[2] or data
    lines = list(_lines(data))
    kept = lines[-most:]
    all_kept = len(data) == size and len(kept) == len(lines)
    part = "all of it" if all_kept else "its end"
    searched = "all of it" if size == len(back) else f"its last {SEARCHED >> 20} MiB"
    note = (
        f"{counted(len(kept), 'line')}, {part}, of {size:,} bytes; tracebacks were searched in "
        f"{searched}"
    )
    versioned = head(path, END_BYTES) + b"\n" + data
    return LogEnd(
        kept, note, _kinds(_tracebacks(back)), versioned.decode("utf-8", "replace")
    )


def _lines(data: bytes) -> Iterator[str]:
    """Yield the lines in some bytes; of a progress bar that overwrote itself, only the last
    state.
    """
    for line in data.removesuffix(b"\n").split(b"\n"):
        states = [one for one in line.split(b"\r") if one.strip()] or [b""]
        for state in states:
            if state is states[-1] or not has_bar(state):
                text = strip_ansi(state[: 4 * LINE_BYTES]).decode("utf-8", "replace")
                yield safe(text, LINE_BYTES).replace("\n", " ").rstrip()


def _tracebacks(data: bytes) -> Iterator[str]:
    at = data.find(_MARK)
    while at >= 0:
        if not any(words in data[max(0, at - _NEAR) : at] for words in _CONTINUED):
            start = data.rfind(b"\n", 0, at) + 1
            yield "\n".join(_traceback(_lines(data[start : start + _TRACEBACK_BYTES])))
        at = data.find(_MARK, at + len(_MARK))


def _traceback(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines of the traceback that these begin with, those of its process alone."""
    prefix, ended = None, False
    for _, line in zip(range(_TRACEBACK_LINES), lines, strict=False):
        found = _PREFIXED.match(line)
        own = found[0] if found else ""
        prefix = own if prefix is None else prefix
        if own != prefix:
            continue
        said = line.removeprefix(prefix)
        goes_on = said.startswith(_GOES_ON) or not said[:1].strip()
        if ended and not goes_on:
            return
        yield line
        ended = not goes_on


def _kinds(tracebacks: Iterable[str]) -> list[str]:
    """Return each kind of traceback once with its count; of many kinds, the first and the last."""
    kinds = gathered((_VARIES.sub("#", one), one) for one in tracebacks)
    texts = [
        f"{same[0]}\n[{len(same):,} of this kind]" if len(same) > 1 else same[0]
        for same in kinds.values()
    ]
    left = len(texts) - 2 * _KINDS
    if left > 0:
        texts[_KINDS:-_KINDS] = [f"[{counted(left, 'further kind')} left out]"]
    return texts


LEFT_OUT = "[a sample was left out]"
_FIELD = pattern(
    rf"^(?P<prefix>{_PREFIX}?)\[(?P<name>prompt|response|ground_truth|score)\](?: |$)"
)
_NEXT_STEP = pattern(rf"^{_PREFIX}?step:\d+ - ")
_LONGEST = 2000
"""Lines after which a sample that did not end is given up, as where logs are read."""
_TABLE = pattern(r"^╭─+ Step \d+ ─+╮")
_LONG_TEXT = 60
"""Characters of a text in JSON that may be a sample's."""
_FIELDS = {
    field
    for role in ("prompt", "response", "truth", "conversation")
    for field in names(role)
}
"""Fields of samples in lines of JSON."""
_OWN_FIELDS = ("message", "error", "traceback", "exception", "exc_info", "stack")
"""Fields in which programs write about themselves."""


def without_samples(lines: Sequence[str]) -> list[str]:
    """Return lines of a log with each sample replaced by a line that says so: the blocks of verl's
    reward managers, TRL's tables of completions, and long texts in lines of JSON. Samples that a
    training prints in another way stay.
    """
    printed = _without_blocks(_without_tables(lines[_cut_off(lines) :]))
    return list(map(_json_without, printed))


def _cut_off(lines: Sequence[str]) -> int:
    """Return how many of the first lines belong to a sample that began before them."""
    for at, line in enumerate(lines[:_LONGEST]):
        if _NEXT_STEP.match(line):
            return 0
        if found := _FIELD.match(line):
            return 0 if found["name"] == "prompt" else at
    return 0


def _without_tables(lines: Iterable[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        inside = inside and line[:1] in ("│", "├", "╰")
        if not inside:
            inside = _TABLE.match(line) is not None
            yield LEFT_OUT if inside else line


def _without_blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines without those from a prompt to its score, of one process."""
    of: str | None = None
    """The prefix of the open sample's process, None outside of one."""
    count = 0
    for line in lines:
        count += 1
        if field := _FIELD.match(line):
            yield from () if of is not None else (LEFT_OUT,)
            of, count = None if field["name"] == "score" else field["prefix"], 0
            continue
        if _NEXT_STEP.match(line) or count > _LONGEST:
            of = None
        if of is None or not line.startswith(of):
            yield line


def _json_without(line: str) -> str:
    """Return a line of JSON without the texts of samples, any other line as it is."""
    if not line.startswith("{"):
        return line
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return LEFT_OUT if len(line) > _LONG_TEXT and '": "' in line else line
    return json.dumps(_without_texts(record, ""), ensure_ascii=False)


def _without_texts(value: Any, name: str) -> Any:
    if name.lower() in _FIELDS and isinstance(value, str | list):
        return LEFT_OUT
    if isinstance(value, dict):
        return {key: _without_texts(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_texts(one, name) for one in value]
    is_long = isinstance(value, str) and len(value) > _LONG_TEXT
    return LEFT_OUT if is_long and name.lower() not in _OWN_FIELDS else value
