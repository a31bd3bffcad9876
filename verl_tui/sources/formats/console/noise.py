"""Lines without any information: most of a console, and mostly the same but for their digits; and
trouble that is reported again and again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from verl_tui.records import Event, EventKind, Pulse
from verl_tui.sources.formats.console import (
    bars,
    blocks,
    engines,
    errors,
    events,
    printed_tables,
    samples,
    settings,
    stated,
    step_lines,
    timestamps,
)
from verl_tui.sources.formats.console.word_search import any_of
from verl_tui.text import strip_ansi

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS = (
    *events.WORDS,
    *settings.WORDS,
    *stated.WORDS,
    *engines.WORDS,
    *bars.WORDS,
    *samples.WORDS,
)
_ELSE = (
    samples.BEGIN,
    *printed_tables.BEGINNINGS,
    *blocks.WORDS,
    step_lines.BEGIN,
    "\r",
)
MAY_SAY = any_of((*errors.WORDS, *_WORDS))
"""Found in every line that states something in words."""
TELLING = any_of((*errors.WORDS, *_WORDS, *_ELSE))
"""Found in every line that states something."""
_MORE_THAN_TROUBLE = any_of((*_WORDS, *_ELSE, "ank"))
_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)
"""No relevant word has a digit in it."""
_LONGEST = 400
"""Bytes of a line from which on it is looked at anew."""
_MOST = 2000
"""Lines that are remembered."""
_UNDATED = -1


class Counted(NamedTuple):
    """Lines of one kind that no event has told of so far."""

    times: int
    newest: bytes
    number: int
    """That of the newest."""


class Noise:
    """Recognises lines that change nothing while no reader waits for more; remembers those it has
    seen, without their digits. Counts lines of trouble like ones since the last step, which state
    nothing else: there may be hundreds of thousands.
    """

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}
        """Lines without their digits -> where their time stands, `_UNDATED` without one."""
        self._trouble: set[bytes] = set()
        self._counted: dict[bytes, Counted] = {}

    def end(self, text: bytes, at: int, time: bytes) -> int:
        """Return where the first line begins, from a place on, that is unlike those it has seen, or
        has another time; the end of the text where there is none.

        Args:
            text: Complete lines.
            at: Where a line begins.
            time: As lines with a date have it.
        """
        seen = self._seen
        time = time or b"\n"
        while (end := text.find(b"\n", at)) >= 0:
            line = text[at:end]
            place = seen.get(line.translate(_ALIKE)) if end - at <= _LONGEST else None
            if place is None or (place >= 0 and not line.startswith(time, place)):
                break
            at = end + 1
        return at

    def says_nothing(self, line: bytes) -> bool:
        """Return whether a line has no word that a reader looks for."""
        if len(line) > _LONGEST:
            return False
        alike = line.translate(_ALIKE)
        if alike in self._seen:
            return True
        text = strip_ansi(line)
        if TELLING.search(text) or timestamps.has_counters(text):
            return False
        if len(self._seen) >= _MOST:
            self._seen.clear()
        stamp = timestamps.stamp_in(line)
        self._seen[alike] = _UNDATED if stamp is None else stamp.start()
        return True

    def step(self) -> None:
        """Note that a step was printed: the next line of each kind is read as a whole again."""
        self._trouble.clear()

    def counts(self, line: bytes, number: int) -> bool:
        """Count a line of trouble like one before; return False for others."""
        alike = line.translate(_ALIKE) if self._trouble else b""
        if alike not in self._trouble:
            return False
        times = self._counted[alike].times if alike in self._counted else 0
        self._counted[alike] = Counted(times + 1, line, number)
        return True

    def counted(self) -> Sequence[Counted]:
        """Return what has been counted since the last call, the newest last."""
        found = sorted(self._counted.values(), key=lambda one: one.number)
        self._counted.clear()
        return found

    def note(self, line: bytes, records: Sequence[object]) -> None:
        """Note what a line stated that changed nothing else, while no reader waits for more."""
        said = [one for one in records if not isinstance(one, Pulse) or one.counters]
        if len(said) != 1 or len(line) > _LONGEST or len(self._trouble) >= _MOST:
            return
        (found,) = said
        if not isinstance(found, Event) or found.kind is not EventKind.WARNING:
            return
        if not _MORE_THAN_TROUBLE.search(strip_ansi(line)):
            self._trouble.add(line.translate(_ALIKE))
