"""Lines of a run's log, read at the place that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl_tui.given_files import NothingError, UsageError, why
from verl_tui.on_demand.log_blocks import (
    BLOCK,
    LogFile,
    LogLine,
    SearchJob,
    read_block,
    search_next,
)
from verl_tui.rendering.log.line_rows import StepLine, TextQuery
from verl_tui.rendering.log.target import LogTarget, texts
from verl_tui.sources.files import CHUNK, opened
from verl_tui.text import one_line

if TYPE_CHECKING:
    from verl_tui.answers.run_reading import Reading
    from verl_tui.plain_data import Data
    from verl_tui.rendering.text.search import Search
    from verl_tui.runs.run import Run
    from verl_tui.secrets import Mask

SHOWN = 1000
"""Characters of a line, unless all are asked for."""


def log_of(
    reading: Reading,
    count: int,
    at: LogTarget,
    *,
    grep: Search | None = None,
    full: bool = False,
    mask: Mask | None = None,
) -> Data:
    """Return lines of the run's log.

    Args:
        reading: The run; only where its files are and how it ended is needed.
        count: Most lines.
        at: The place that they are around; the last ones are given where it says nothing.
        grep: They are the last that match it.
        full: Whether lines are given in full, up to the 16 KiB that are read of one.
        mask: Hides what is not for others, None to hide nothing.

    Raises:
        NothingError: It has no log as text, it cannot be read, or the step is still to come.
        UsageError: The log has no such line.
    """
    path = _path(reading, at)
    try:
        with opened(path) as raw:
            file = LogFile(raw.fileno())
            if not grep:
                lines, mark, before = _around(file, reading, path, count, at)
            else:
                lines, mark, before = _matching(file, grep, count)
            size = file.size
    except OSError as error:
        raise NothingError(f"{one_line(str(path))}: {why(error)}") from error
    answer: Data = {
        **reading.named,
        "path": str(path),
        "size": size,
        "more_before": before,
        "more_after": mark is not None and bool(lines) and lines[-1].end < size,
        "gave_up": grep is not None and grep.given_up,
    }
    shown = [line.text for line in lines]
    if mask:
        shown, answer = mask.lines(shown), mask.data(answer)
    described = [
        _described(line.start, text, None if full else SHOWN, mark)
        for line, text in zip(lines, shown, strict=True)
    ]
    return {**answer, "lines": described}


def _described(start: int, text: str, most: int | None, mark: int | None) -> Data:
    described: dict[str, Any] = {"byte": start, "text": text[:most]}
    if len(described["text"]) < len(text):
        described["length"] = len(text)
    return described | ({"mark": True} if start == mark else {})


def _path(reading: Reading, at: LogTarget) -> Path:
    """Return the log that is meant: the one with the place, or the first that can be read."""
    known = [log.path for log in texts(reading.run) if log.format != "settings"]
    path = at.path or next(iter(known), None)
    if path is None:
        raise NothingError(f"{one_line(reading.run.name)} has no log as text")
    return Path(path)


_Found = tuple["list[LogLine]", "int | None", bool]
"""Lines, the start of the one looked for, and whether there are more before them."""


def _around(
    file: LogFile, reading: Reading, path: Path, count: int, at: LogTarget
) -> _Found:
    start = None
    if at.step is not None:
        start = _last_match(file, StepLine(at.step), file.size)
        if start is None:
            raise _no_step(reading.run, path, at.step)
    elif at.line is not None:
        start = _line_start(file, at.line, reading.starts.get(str(path), 0))
    if start is None:
        found = _beside(file, file.size, count, -1)
    else:
        before = _beside(file, start, count // 2, -1)
        after = _beside(file, start, count - len(before), 1)
        found = _beside(file, start, count - len(after), -1) + after
    return found, start, bool(found) and found[0].start > 0


def _no_step(run: Run, path: Path, step: int) -> UsageError:
    """Return the error that a log has no line of a step, which may be still to come."""
    reached, last = run.step or 0, run.total_steps
    if reached < step <= (last or step):
        of = f"{reached} of {last}" if last else f"{reached}"
        return NothingError(f"{one_line(run.name)} has reached step {of} so far")
    return UsageError(f"{one_line(str(path))} has no line of step {step}")


def _matching(file: LogFile, search: Search, count: int) -> _Found:
    """Return the last lines that match."""
    found: list[LogLine] = []
    origin: int | None = file.size
    while len(found) <= count and origin is not None:
        origin = _last_match(file, TextQuery(search), origin)
        found += () if origin is None else _beside(file, origin, 1, 1)
    return found[:count][::-1], None, len(found) > count


def _last_match(file: LogFile, query: StepLine | TextQuery, origin: int) -> int | None:
    search = SearchJob(query, origin, -1, origin)
    while not search.done and file.size:
        search_next(file, search)
    return search.found


def _beside(file: LogFile, at: int, count: int, way: int) -> list[LogLine]:
    """Return the next lines from a position on (1), or the last that begin before it (-1)."""
    found: list[LogLine] = []
    number = (at if way > 0 else at - 1) // BLOCK
    while 0 <= number * BLOCK < file.size and len(found) < count:
        block = read_block(file, number)
        lines = [one for one in block.lines if (one.start >= at) is (way > 0)]
        found = found + lines if way > 0 else lines + found
        number = block.after if way > 0 else block.before
    return found[:count] if way > 0 else found[max(0, len(found) - count) :]


def _line_start(file: LogFile, number: int, base: int) -> int:
    """Return the start of a line by its number, from 1, counted from a position on."""
    at = base
    lacking = number - 1
    while lacking > 0 and (data := file.read(at, CHUNK)):
        rows = data.split(b"\n", lacking)
        lacking -= len(rows) - 1
        at += len(data) - (0 if lacking else len(rows[-1]))
    return min(at, max(0, file.size - 1))


def log_lines(found: Data) -> Iterator[str]:
    """Yield the answer as lines of text; the line looked for begins with `>`."""
    marked = any(line.get("mark") for line in found["lines"])
    for line in found["lines"]:
        sign = ("> " if line.get("mark") else "  ") * marked
        more = line.get("length", 0) - len(line["text"])
        yield f"{sign}{line['text']}" + f"… [{more:,} more]" * (more > 0)
