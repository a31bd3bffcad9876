"""What a run's console says of its end, as its W&B log keeps it: each piece that was written to it.

The rest of it is not read: the history has the metrics, and W&B's `output.log` the lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verl_tui.records import EventKind
from verl_tui.sources.formats.console.bars import WHOLE_BAR
from verl_tui.sources.formats.console.errors import ErrorReader, may_fail
from verl_tui.sources.formats.console.prefixes import parted

if TYPE_CHECKING:
    from verl_tui.records import Event

_ENDS = {EventKind.TRACEBACK, EventKind.FATAL, EventKind.STOPPED}
_LONGEST = 2**16
"""Bytes of a line without an end that are kept."""


class KeptConsole:
    """Reads the pieces of one console."""

    def __init__(self) -> None:
        self.last: Event | None = None
        """Its last words on an end, None where further steps came after them."""
        self._is_new = False
        """True if no step came after them: that of the last step may, as it waits for more."""
        self._begin()

    def _begin(self) -> None:
        self._events = ErrorReader()
        self._line = b""

    def step(self) -> None:
        """Note that a step was logged: tracebacks before it ended nothing."""
        self.last = self.last if self._is_new else None
        self._is_new = False
        self._begin()

    def concerns(self, piece: bytes) -> bool:
        """Return whether a piece may say something of an end; a quick test, since most do not."""
        return bool(self._line) or self._events.is_open or may_fail(piece)

    def read(self, written: bytes, number: int) -> None:
        """Take a piece of the trainer's output.

        Args:
            written: What was written, of any length.
            number: The number of its record.
        """
        *lines, rest = (self._line + written.replace(b"\r", b"\n")).split(b"\n")
        self._line = rest[-_LONGEST:]
        for line in lines:
            _, prefix, part = parted(WHOLE_BAR.sub(b"", line), added=False)
            for event in self._events.read(prefix, part, number) if part else ():
                if event.kind in _ENDS and _is_own(event):
                    self.last = event._replace(actor="")
                    self._is_new = True


def _is_own(event: Event) -> bool:
    """Return whether the process that logs to W&B says why it ended, not only that it does."""
    other = event.actor and not event.actor.startswith("rank")
    return not other and not event.text.endswith("Traceback (most recent call last):")
