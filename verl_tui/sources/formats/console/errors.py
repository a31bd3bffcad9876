"""Errors on a console, of all processes that print there: tracebacks, last words, lines of trouble.

A line that looks like a crash often is none: optional imports fail at the start, clean-up fails
after a normal end, raylets report dead workers. So a line only gives its kind: the lines behind it
decide whether it ended the run (`verl_tui.runs`), all of them together why
(`verl_tui.health.root_cause`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind
from verl_tui.sources.formats.console import events, tracebacks
from verl_tui.sources.formats.console.events import (
    any_of,
    form_of,
    shown,
    turning_point,
)
from verl_tui.sources.formats.console.prefixes import unrepeated
from verl_tui.sources.formats.console.tracebacks import Traceback, place
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_TROUBLE = events.TABLE["trouble"]
WORDS = (*_TROUBLE, *tracebacks.WORDS)
_MAY_FAIL, _MAY_TURN = any_of(_TROUBLE), any_of(events.WORDS)
_RELEVANT = any_of((*WORDS, *events.WORDS))

_STOPPED, _FATAL, _HARD = form_of("stopped"), form_of("fatal"), form_of("hard")
_RAY_BLOCK, _PRINTED_BY = form_of("remote"), form_of("printer")
_HEAD, _CHAIN, _EXCEPTION = map(form_of, ("head", "chain", "exception"))
_BY_ITSELF = {
    EventKind.TRACEBACK: (_HEAD, _CHAIN, _EXCEPTION),
    EventKind.FATAL: (_STOPPED, _HARD, _FATAL, _RAY_BLOCK),
}
_CLOCK = pattern(rb"\b(\d\d):(\d\d):(\d\d)\b")
_STAMPS = 120
"""First bytes of a line, among which its time is."""
_RANK = pattern(rb"\b[Rr]ank[ :=]{0,3}(\d{1,6})\b")
_IN_TABLE = pattern(rb"^\s*rank\s*: (\d{1,6}) \(local_rank")
"""A row of torchrun's table of failures; the row of the exit code follows."""
_EXIT_CODE = pattern(rb"^\s*exitcode\s*: (?!0\b)")

_MOST_PROCESSES = 64
"""Processes whose tracebacks are followed side by side."""


class _Process(NamedTuple):
    """Who printed a line, and what it says without all prefixes."""

    key: bytes
    name: str
    """`AgentLoopWorker`, `rank 3`; empty for the driver."""
    where: str
    text: bytes
    clock: int | None
    """Seconds of the day at which the line was printed."""

    @property
    def is_driver(self) -> bool:
        """True for what ends the run: a rank's excepthook, too, only sees what was not caught."""
        return not self.name or self.name.startswith("rank")


def may_fail(data: bytes) -> bool:
    """Return True if some bytes may hold a line of trouble; a quick test, since most do not."""
    return _MAY_FAIL.search(data) is not None


def line_kind(part: bytes) -> EventKind | None:
    """Return the kind of event that a line by itself states, None for most.

    For showing a log; an `ErrorReader` decides whether the line ended the run.
    """
    if not _RELEVANT.search(part):
        return None
    text = printed_by(part).text
    for kind, forms in _BY_ITSELF.items():
        if any(form.search(text) for form in forms):
            return kind
    event = turning_point(text, 0)
    return event.kind if event is not None else None


def printed_by(line: bytes, lead: bytes = b"") -> _Process:
    """Return who printed a line.

    Args:
        line: The line with what processes put before it.
        lead: What stands before all lines of the log.
    """
    at, name, where, key = 0, "", "", b""
    while (found := _PRINTED_BY.match(line, at)) is not None and found.end() > at:
        at = found.end()
        if found["pid"]:
            name = one_line((found["name"] or b"worker").decode("utf-8", "replace"), 60)
            where, key = place(found["pid"]), found[0]
        elif found["node"]:
            where = place(found["node"])
        elif found["rank"] and not name:
            name, key = f"rank {int(found['rank'])}", found["rank"]
    clock = next(filter(None, map(_CLOCK.search, (line[:_STAMPS], lead))), None)
    hours, minutes, seconds = map(int, clock.groups()) if clock else (0, 0, 0)
    day = hours * 3600 + minutes * 60 + seconds
    return _Process(key, name, where, line[at:], day if clock else None)


class ErrorReader:
    """Reads the errors of one console; remembers the newest traceback of each process."""

    def __init__(self) -> None:
        self._tracebacks: dict[bytes, Traceback] = {}
        self._died = False
        """True behind an exception of the driver until a step: signals only follow from it."""
        self._row = b""
        """The rank of the last row of torchrun's table."""
        self.framed = False
        """True while frames are printed: any line behind them may name the exception."""

    @property
    def is_open(self) -> bool:
        """True while a traceback is printed."""
        return any(one.is_open for one in self._tracebacks.values())

    def step(self) -> None:
        """Note that a step was printed: nothing before it ended the run."""
        self._died = self.framed = False
        self._tracebacks.clear()

    def read(
        self, prefix: bytes, part: bytes, number: int, lead: bytes = b""
    ) -> Iterator[Event]:
        """Yield the events that a line states.

        Args:
            prefix: Names the Ray actor that printed it, empty for the driver.
            part: The line without the prefix.
            number: Its number.
            lead: What stands before all lines of the log: a time, most often.
        """
        if not (_RELEVANT.search(part) or self.framed):
            return
        by = printed_by(prefix + part, lead)
        traceback = self._tracebacks.get(by.key) or Traceback()
        traceback.look_at(by.text)
        event = self._event(by, traceback, number)
        if event is not None:
            died = self._died
            yield event
            self._died = died  # a step that waited for the event came before it
        self._keep(by.key, traceback)

    def _event(self, by: _Process, traceback: Traceback, number: int) -> Event | None:
        event = turning_point(by.text, number) if _MAY_TURN.search(by.text) else None
        if event is not None:
            return event
        if _HEAD.search(by.text) and (by.name or not _RAY_BLOCK.match(by.text)):
            # A worker's is reported by its last line: there may be hundreds.
            counts = traceback.opened() and not by.name
            head = Event(EventKind.TRACEBACK, shown(by.text), number)
            return head if counts else None
        if traceback.takes(by.text):
            return None
        return self._failure(by, traceback, number)

    def _keep(self, key: bytes, traceback: Traceback) -> None:
        """Keep the newest traceback of a process for its next line."""
        if traceback.is_empty:
            self._tracebacks.pop(key, None)
        else:
            if len(self._tracebacks) >= _MOST_PROCESSES:
                self._tracebacks.pop(next(iter(self._tracebacks)))
            self._tracebacks[key] = traceback
        if self.framed != traceback.is_framed:
            self.framed = any(one.is_framed for one in self._tracebacks.values())

    def _failure(self, by: _Process, traceback: Traceback, number: int) -> Event | None:
        raises = traceback.raises(by.text)
        kind = _failure_kind(by, raises=raises)
        if kind is not EventKind.STOPPED and _RAY_BLOCK.match(by.text):
            traceback.opened()
            traceback.takes(by.text)
            kind = None if by.name else EventKind.FATAL
        if kind is EventKind.WARNING:
            return self._warning(by, number)
        if kind is None:
            return None
        event = _failure_event(kind, by, traceback, number)
        if kind is EventKind.STOPPED:
            is_new = not self._died
            self._died = True
            traceback.is_open = traceback.is_framed = False
            return event if is_new else None
        if kind is EventKind.TRACEBACK and raises:
            self._died |= by.is_driver
            traceback.ends()
        return event

    def _warning(self, by: _Process, number: int) -> Event:
        """Return the event of a line that only reports trouble."""
        found = _IN_TABLE.match(by.text)
        if _EXIT_CODE.match(by.text) and self._row:
            by = by._replace(text=b"rank " + self._row + b": " + by.text.strip())
        self._row = found[1] if found is not None else self._row
        return _failure_event(EventKind.WARNING, by, Traceback(), number)


def _failure_event(
    kind: EventKind, by: _Process, traceback: Traceback, number: int
) -> Event:
    text, count = unrepeated(by.text)
    found = _RANK.search(by.name.encode() + b" " + text)
    return Event(
        kind,
        shown(text),
        number,
        actor=by.name,
        where=by.where or traceback.where,
        rank=int(found[1]) if found is not None else None,
        raised=kind is not EventKind.WARNING,
        phase=traceback.phase if traceback.is_open else None,
        frame=traceback.frame if traceback.is_open else "",
        chained=traceback.chained,
        times=count,
        clock=by.clock,
    )


def _failure_kind(by: _Process, *, raises: bool) -> EventKind | None:
    """Return the kind of event of a line that may tell a failure, None for none."""
    if by.is_driver and _STOPPED.search(by.text):
        return EventKind.STOPPED
    if not by.name and _FATAL.search(by.text):
        return EventKind.FATAL
    if raises or (by.name and _HARD.search(by.text)):
        return EventKind.TRACEBACK
    return EventKind.WARNING if _MAY_FAIL.search(by.text) else None
