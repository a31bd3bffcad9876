"""Errors on a console, of all processes that print there: tracebacks, last words, lines of trouble.

A line that looks like a crash often is none: optional imports fail at the start, clean-up fails
after a normal end, raylets report dead workers. So a line only gives its kind: the lines behind it
decide whether it ended the run (`verl_tui.runs`), all of them together why
(`verl_tui.health.root_cause`).

A traceback lists calls from the outermost inwards. The first one whose name says what the trainer
does tells most of the phase in which the run failed: what generates within a validation fails in
the validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from verl_tui.patterns import pattern
from verl_tui.records import Event, EventKind, Phase
from verl_tui.sources.formats.console import line_parts
from verl_tui.sources.formats.console.line_parts import (
    any_of,
    form_of,
    seconds_in,
    shown,
    unrepeated,
)
from verl_tui.text import decoded, one_line
from verl_tui.toml_tables import toml_table

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

_TROUBLE = line_parts.TABLE["trouble"]
WORDS = (*_TROUBLE, 'File "', "ray::", "_wg.", "rollout_manager.")
"""Every line of trouble contains one of these, and every one that names a call."""
_MAY_FAIL = any_of(_TROUBLE)
_RELEVANT = any_of((*WORDS, *line_parts.WORDS))

_STOPPED, _FATAL, _HARD = form_of("stopped"), form_of("fatal"), form_of("hard")
_RAY_BLOCK, _PRINTED_BY = form_of("remote"), form_of("printer")
_HEAD, _CHAIN, _EXCEPTION = form_of("head"), form_of("chain"), form_of("exception")
_UNUSUAL = form_of("unusual")
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
_FRAME = pattern(
    rb'^\s*File "(?P<path>[^"]{1,400})", line (?P<line>\d{1,9}), in (?P<name>\w+|<module>)'
)
_OF_OTHERS = pattern(rb"[/-]packages/|/lib/python\d|<")
"""Files that users did not write."""
_CALLS = pattern(
    rb"\bray::(?P<actor>\w{1,60}\b\.)?"
    rb"(?:(?:actor_rollout_ref|actor_rollout|rollout|actor|critic|ref)_)?"
    rb"(?P<remote>\w+)\((?:\) \((?P<place>pid=\d+(?:, ip=[\d.]+)?))?"
    rb"|^\s[^#\"']*?(?:_wg|rollout_manager)\.(?P<group>\w+)\("
)
"""Ray's name for a call of another process, where verl puts the worker's roles before the function;
and verl's call of a group of workers, as the source line below a frame has it.
"""
_INSTALLED = b"site-packages"
"""Parts of a path above this are the user's folders, not the library."""
_MOST_PROCESSES = 64
"""Processes whose tracebacks are followed side by side."""


class _Process(NamedTuple):
    """Who printed a line, and what it says without all prefixes."""

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
    event = line_parts.turning_point(text)
    return event.kind if event else None


def printed_by(line: bytes, lead: bytes = b"") -> _Process:
    """Return who printed a line.

    Args:
        line: The line with what processes put before it.
        lead: What stands before all lines of the log.
    """
    at, name, where = 0, "", ""
    while (found := _PRINTED_BY.match(line, at)) and found.end() > at:
        at = found.end()
        if found["pid"]:
            name = one_line(decoded(found["name"] or b"worker"), 60)
            where = _place(found["pid"])
        elif found["node"]:
            where = _place(found["node"])
        elif found["rank"] and not name:
            name = f"rank {int(found['rank'])}"
    clock = _CLOCK.search(line, 0, _STAMPS) or _CLOCK.search(lead)
    return _Process(name, where, line[at:], seconds_in(clock))


def _place(data: bytes) -> str:
    """Return Ray's words for a process: `pid 52003 on 10.0.0.9`."""
    words = data.replace(b"pid=", b"pid ").replace(b",", b"").replace(b"ip=", b"on ")
    return one_line(decoded(words), 60)


@dataclass
class _Traceback:
    """The traceback that a process prints, and the calls that it names."""

    is_open: bool = False
    is_framed: bool = False
    """True while frames are printed: the line after them may name the exception."""
    is_ignored: bool = False
    """True if the next one is of an exception that Python ignores."""
    chained: str = ""
    """How the exception follows from the one before it; empty if it does not."""
    where: str = ""
    """The process in which Ray says that it was raised."""
    phase: Phase | None = None
    """The phase of the run, None if no function shows it."""
    is_certain: bool = False
    """False while an inner call may tell more."""
    frame: str = ""
    """The innermost call outside installed packages: `score() in reward.py:31`."""
    last: bytes = b""
    """The line of source that was printed last."""

    def leaves_frames(self, text: bytes) -> bool:
        """Note where a line stands; return whether it is right behind frames."""
        is_within = self.is_open and text[:1].isspace()
        was_framed = self.is_framed
        if is_within:
            self.last = text.strip(b" ^~") or self.last
        is_frame = was_framed or text.lstrip().startswith(b'File "')
        self.is_framed = is_within and is_frame
        return was_framed and not is_within

    def raises(self, text: bytes, *, is_behind: bool) -> bool:
        """Return whether a line names the exception."""
        if is_behind and _UNUSUAL.match(text):
            return True
        return self.is_open and _EXCEPTION.match(text) is not None

    def open(self) -> bool:
        """Note the head of a traceback; return whether it counts."""
        self.is_open, self.is_ignored = not self.is_ignored, False
        if self.is_open and not self.chained:
            self.phase, self.is_certain, self.frame = None, False, ""
        return self.is_open

    def absorbs(self, text: bytes) -> bool:
        """Take a line that belongs to a traceback, if it says nothing by itself."""
        if found := _CHAIN.match(text):
            self.chained = found.lastgroup or ""
        elif text.startswith(b"Exception ignored in"):
            self.is_ignored = True
        elif self.is_open:
            self._note(text)
            return self.is_framed and text[:1].isspace()
        else:
            return False
        return True

    def _note(self, text: bytes) -> None:
        """Note the calls that a line names."""
        if frame := _FRAME.match(text):
            self._note_call(frame["path"].rpartition(_INSTALLED)[2], frame["name"])
            if not _OF_OTHERS.search(frame["path"]):
                named = _call(frame["path"], frame["name"])
                named = named.removeprefix("<module>() in ")
                self.frame = f"{named}:{int(frame['line'])}"
        for call in _CALLS.finditer(text):
            self._note_call(b"", call["remote"] or call["group"])
            if call["place"]:
                name = call["actor"] or call["remote"]
                self.where = _place(name.rstrip(b".") + b" " + call["place"])

    def _note_call(self, path: bytes, name: bytes) -> None:
        """Note a call, by its file, where it is known, and its function."""
        for words, functions, files, outer in () if self.is_certain else _phases():
            if functions.fullmatch(name) and files.search(path):
                self.phase = Phase(words, _call(path, name))
                self.is_certain = not outer
                return


@cache
def _phases() -> list[tuple[str, re.Pattern[bytes], re.Pattern[bytes], bool]]:
    """Return the phases by the forms of their functions and files; True for those that call
    functions of other phases, which tell more.
    """
    table = toml_table(__file__, "phases.toml")
    found = []
    for one in table["phase"]:
        files = one.get("files", "").replace("{trainers}", table["trainers"])
        forms = pattern(one["functions"].encode()), pattern(files.encode())
        found.append((one["words"], *forms, one.get("outer", False)))
    return found


def _call(path: bytes, name: bytes) -> str:
    """Name a function and its file, without folders."""
    file = path.rpartition(b"/")[2]
    where = b"%s() in %s" % (name, file) if file else b"%s()" % name
    return one_line(decoded(where), 80)


class ErrorReader:
    """Reads the errors of one console; remembers the newest traceback of each process."""

    def __init__(self) -> None:
        self._tracebacks: dict[tuple[str, str], _Traceback] = {}
        """By the name and the place of the process."""
        self._died = False
        """True behind an exception of the driver until a step: signals only follow from it."""
        self._row = b""
        """The rank of the last row of torchrun's table."""
        self.framed = False
        """True while frames are printed: any line after them may name the exception."""

    @property
    def is_open(self) -> bool:
        """True while a traceback is printed."""
        return any(one.is_open for one in self._tracebacks.values())

    def step(self) -> None:
        """Note that a step was printed: nothing before it ended the run."""
        self._died = self.framed = False
        self._tracebacks.clear()

    def read(self, line: bytes, number: int, lead: bytes = b"") -> Iterator[Event]:
        """Yield the event that a line states.

        Args:
            line: The line, behind the name of the Ray actor that printed it.
            number: Its number.
            lead: What stands before all lines of the log: a time, most often.
        """
        if not (self.framed or _RELEVANT.search(line)):
            return
        by = printed_by(line, lead)
        process = by.name, by.where
        traceback = self._tracebacks.pop(process, None) or _Traceback()
        if event := self._event(by, traceback):
            died = self._died
            yield event._replace(line=number)
            self._died = died  # a step that waited for the event came before it
        if traceback != _Traceback():
            self._tracebacks[process] = traceback
        if len(self._tracebacks) > _MOST_PROCESSES:
            self._tracebacks.pop(next(iter(self._tracebacks)))
        self.framed = any(one.is_framed for one in self._tracebacks.values())

    def _event(self, by: _Process, traceback: _Traceback) -> Event | None:
        text = by.text
        is_behind = traceback.leaves_frames(text)
        if event := line_parts.turning_point(text):
            return event
        if _HEAD.search(text) and (by.name or not _RAY_BLOCK.match(text)):
            # A worker's is reported by its last line: there may be hundreds.
            counts = traceback.open() and not by.name
            return Event(EventKind.TRACEBACK, shown(text), 0) if counts else None
        if traceback.absorbs(text):
            return None
        return self._failure(by, traceback, is_behind=is_behind)

    def _failure(
        self, by: _Process, traceback: _Traceback, *, is_behind: bool
    ) -> Event | None:
        """Return the event of a line that may tell a failure; note what it means for later ones."""
        raises = traceback.raises(by.text, is_behind=is_behind)
        kind = _failure_kind(by, raises=raises)
        if kind is not EventKind.STOPPED and _RAY_BLOCK.match(by.text):
            traceback.open()
            traceback.absorbs(by.text)
            kind = None if by.name else EventKind.FATAL
        if kind is None:
            return None
        if kind is EventKind.WARNING:
            return _failure_event(kind, self._in_table(by), _Traceback())
        event = _failure_event(kind, by, traceback)
        died = self._died
        named = EventKind.TRACEBACK if raises else EventKind.STOPPED
        if kind in (EventKind.STOPPED, named):
            self._died |= by.is_driver
            traceback.is_open = traceback.is_framed = False
            traceback.chained = ""
        return None if died and kind is EventKind.STOPPED else event

    def _in_table(self, by: _Process) -> _Process:
        """Return a line that only reports trouble; in torchrun's table with the rank of its row."""
        found = _IN_TABLE.match(by.text)
        if _EXIT_CODE.match(by.text) and self._row:
            by = by._replace(text=b"rank " + self._row + b": " + by.text.strip())
        self._row = found[1] if found else self._row
        return by


def _failure_kind(by: _Process, *, raises: bool) -> EventKind | None:
    """Return the kind of event of a line that may tell a failure, None for none."""
    if by.is_driver and _STOPPED.search(by.text):
        return EventKind.STOPPED
    if not by.name and _FATAL.search(by.text):
        return EventKind.FATAL
    if raises or (by.name and _HARD.search(by.text)):
        return EventKind.TRACEBACK
    return EventKind.WARNING if _MAY_FAIL.search(by.text) else None


def _failure_event(kind: EventKind, by: _Process, traceback: _Traceback) -> Event:
    text, count = unrepeated(by.text)
    if traceback.last and text.endswith(b"AssertionError"):  # without a message
        text += b" (%b)" % traceback.last
    found = _RANK.search(by.name.encode() + b" " + text)
    return Event(
        kind,
        shown(text),
        0,
        actor=by.name,
        where=by.where or traceback.where,
        rank=int(found[1]) if found else None,
        raised=kind is not EventKind.WARNING,
        phase=traceback.phase if traceback.is_open else None,
        frame=traceback.frame if traceback.is_open else "",
        chained=traceback.chained,
        times=count,
        clock=by.clock,
    )
