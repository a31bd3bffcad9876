"""Turning points on verl's console: starts, checkpoints, good ends, tracebacks and what killed the run.

What looks like a crash often is none: optional imports fail at the start, clean-up fails after a good end, raylets
report dead workers, models write `Traceback`. So a line only says what it is; whether it ended the run is decided by
what follows it (`verl_tui.runs.run`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from verl_tui.records import Event, EventKind
from verl_tui.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_TROUBLE = (
    rb"Error|Exception|Traceback|not finite|timed out|aborted|Watchdog|Interrupt|raysubmit_|worker died|slurmstepd"
    rb"|illegal memory|Killed|Exit|exception was the direct cause|another exception occurred"
)
_MAY_FAIL = re.compile(_TROUBLE)
_WORTH_A_LOOK = re.compile(
    _TROUBLE + rb"|validation metrics|global_step|checkpoint|Ray instance|from scratch|queue termination"
)
_MARKS: tuple[tuple[re.Pattern[bytes], EventKind], ...] = (
    (re.compile(rb"^[('\"]*Final validation metrics:"), EventKind.FINISHED),
    (re.compile(rb"^\[FullyAsyncTrainer\] Training stopped by queue termination signal"), EventKind.FINISHED),
    (re.compile(rb"^Job 'raysubmit_\w+' succeeded"), EventKind.FINISHED),
    (re.compile(rb"(?:Resuming from .+, s|^S)etting global step to (?P<step>\d{1,15})(?!\d)"), EventKind.RESUMED),
    (re.compile(rb"^Training from scratch|Started a local Ray instance"), EventKind.STARTED),
    (
        re.compile(
            rb"(?:local_global_step_folder|Saving checkpoint to):? +"
            rb"(?P<text>\S*global_step_(?P<step>\d{1,15})(?!\d)\S*)"
        ),
        EventKind.CHECKPOINT,
    ),
    (re.compile(rb"Saving model checkpoint to (?P<text>\S*checkpoint-(?P<step>\d{1,15})(?!\d))"), EventKind.CHECKPOINT),
    (
        re.compile(
            rb"grad_norm is not finite|Global reward scoring timed out|Unexpected error during scoring"
            rb"|All samples are aborted, returning|A worker died or was killed"
        ),
        EventKind.WARNING,
    ),
)
_LOGGING = re.compile(rb"^(?:INFO|WARNING|DEBUG):[\d :,.-]+:")
"""What Python's logging puts before a message; an ERROR line is the logger's word, not the driver's end."""
_GENERIC, _RAY, _CAUSE = 1, 2, 3
"""How much a fatal line says of the cause: that there was an error, that Ray reports one, which one."""
_FATAL: tuple[tuple[re.Pattern[bytes], int], ...] = (
    (re.compile(rb"^Error executing job with overrides"), _GENERIC),
    (re.compile(rb"^Job 'raysubmit_\w+' failed"), _GENERIC),
    (re.compile(rb"^\[ASYNC MAIN\] Component failed with error"), _GENERIC),
    (re.compile(rb"^slurmstepd: error:|^Killed\s*$"), _CAUSE),
    (re.compile(rb"^(?:torch\.|torch\.cuda\.)OutOfMemoryError: CUDA out of memory"), _CAUSE),
    (re.compile(rb"Watchdog caught collective operation timeout"), _CAUSE),
    (re.compile(rb"^ray\.exceptions\.RayTaskError"), _RAY),
    (re.compile(rb"^ray\.exceptions\.\w+"), _CAUSE),
)
_HARD = re.compile(rb"Watchdog caught collective operation timeout|CUDA error: an illegal memory access")
"""What takes a worker down for good; others hang, so nothing more may be printed."""
_EXCEPTION = re.compile(rb"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Died)\b(?::|\(|\s*$)")
_TRACEBACK = b"Traceback (most recent call last):"
_CHAINED = (b"The above exception was the direct cause", b"During handling of the above exception, another")
"""Between the tracebacks of a chain; its last exception is the one that was not caught."""


def may_fail(data: bytes) -> bool:
    """Tell whether some bytes may hold a line of trouble; most do not, and finding that out is quick."""
    return _MAY_FAIL.search(data) is not None


def told(part: bytes) -> EventKind | None:
    """Return what a line says by itself, whoever printed it and whatever came before; None for most.

    For whoever reads the log: whether it ended the run, an `EventReader` finds out.
    """
    if not _WORTH_A_LOOK.search(part):
        return None
    part = _LOGGING.sub(b"", part)
    if part.startswith((_TRACEBACK, *_CHAINED)) or _EXCEPTION.match(part):
        return EventKind.TRACEBACK
    if _HARD.search(part) or any(pattern.search(part) for pattern, _ in _FATAL):
        return EventKind.FATAL
    return next((kind for pattern, kind in _MARKS if pattern.search(part)), None)


class EventReader:
    """Reads the events of one console; remembers whether a traceback is open and how much of a cause is known."""

    def __init__(self) -> None:
        self._known = 0
        self._open: bytes | None = None
        """Actor whose traceback is being printed."""
        self._ignored: bytes | None = None
        """Actor that announced a traceback to be ignored."""
        self._chained = False
        """Whether the open traceback continues a chain."""

    def step(self) -> None:
        """A step was printed: whatever happened before did not end the run."""
        self._known = 0
        self._open = None

    def read(self, prefix: bytes, part: bytes, number: int) -> Iterator[Event]:
        """Yield what a line tells.

        Args:
            prefix: Names the Ray actor that printed it, empty for the driver.
            part: The line without the prefix.
            number: Its number.
        """
        if not _WORTH_A_LOOK.search(part):
            return
        part = _LOGGING.sub(b"", part)
        if part.startswith(b"Exception ignored in"):
            self._ignored = prefix
            return
        if part.startswith(_CHAINED):
            self._open, self._chained = prefix, True
            return
        if part.startswith(_TRACEBACK):
            if self._ignored == prefix:
                self._ignored = None
            else:
                self._open = prefix
                yield _event(EventKind.TRACEBACK, part, number)
            return
        for pattern, kind in _MARKS:
            if found := pattern.search(part):
                yield _event(kind, found.groupdict().get("text") or part, number, found.groupdict().get("step"))
                return
        yield from self._failure(prefix, part, number)

    def _failure(self, prefix: bytes, part: bytes, number: int) -> Iterator[Event]:
        if prefix and _HARD.search(part):
            yield _event(EventKind.TRACEBACK, part, number)
            return
        if not prefix:
            # What a worker reports may have been caught; the driver's own words are final.
            for pattern, told in _FATAL:
                if pattern.search(part):
                    if told > self._known:
                        self._known = told
                        yield _event(EventKind.FATAL, part, number)
                    return
        if _EXCEPTION.match(part) and self._open == prefix:
            self._open, chained, self._chained = None, self._chained, False
            if not prefix and self._known and (self._known < _CAUSE or chained):
                self._known = _CAUSE
                yield _event(EventKind.FATAL, part, number)
            else:
                yield _event(EventKind.TRACEBACK, part, number)


def _event(kind: EventKind, text: bytes, number: int, step: bytes | None = None) -> Event:
    return Event(kind, one_line(text[:2000].decode("utf-8", "replace"), 400), number, int(step) if step else None)
