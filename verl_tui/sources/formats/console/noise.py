"""Lines without any information: most of a console, and mostly the same but for their digits; and
trouble that is reported again and again.
"""

from __future__ import annotations

from operator import itemgetter

from verl_tui.records import Event, EventKind, Pulse
from verl_tui.sources.formats.console import (
    blocks,
    errors,
    line_parts,
    samples,
    settings,
    step_lines,
)
from verl_tui.sources.formats.console.line_parts import any_of
from verl_tui.text import strip_ansi

_WORDS = (
    *line_parts.WORDS,
    *settings.WORDS,
    *line_parts.STATED,
    *line_parts.BAR_WORDS,
    *samples.WORDS,
    *blocks.WORDS,
    step_lines.BEGIN,
    "\r",
)
_TELLING = any_of((*errors.WORDS, *_WORDS))
"""Found in every line that states something."""
_MORE_THAN_TROUBLE = any_of((*_WORDS, "ank"))
_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)
"""No relevant word has a digit in it."""
_LONGEST = 400
"""Longer lines, in bytes, are not remembered."""
_MOST = 2000
"""Lines that are remembered."""
_UNDATED = -1


class Noise:
    """Recognises lines that change nothing while no reader waits for more; remembers those it has
    seen, without their digits. Counts lines of trouble like ones since the last step, which state
    nothing else: there may be hundreds of thousands.
    """

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}
        """Lines without their digits -> where their time stands, `_UNDATED` without one."""
        self._trouble: set[bytes] = set()
        self._counted: dict[bytes, tuple[bytes, int, int]] = {}
        """The newest line of each kind that no event has told of so far, its number, and how many
        there are.
        """

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
            place = seen.get(line.translate(_ALIKE))
            if place is None or (place >= 0 and not line.startswith(time, place)):
                break
            at = end + 1
        return at

    def passes(self, line: bytes, number: int) -> bool:
        """Return whether a line has no word that a reader looks for; count trouble like one before,
        which needs no reading either.
        """
        if len(line) > _LONGEST:
            return False
        alike = line.translate(_ALIKE)
        if alike in self._seen:
            return True
        if alike in self._trouble:
            _, _, times = self._counted.get(alike, (b"", 0, 0))
            self._counted[alike] = line, number, times + 1
            return True
        text = strip_ansi(line)
        stamp = line_parts.stamp_in(text)
        if _TELLING.search(text) or (stamp and line_parts.counters_behind(stamp)):
            return False
        if len(self._seen) >= _MOST:
            self._seen.clear()
        self._seen[alike] = line.find(stamp[0]) if stamp else _UNDATED
        return True

    def step(self) -> None:
        """Note that a step was printed: the next line of each kind is read as a whole again."""
        self._trouble.clear()

    def counted(self) -> list[tuple[bytes, int, int]]:
        """Return what has been counted since the last call, the newest last."""
        if not self._counted:
            return []
        found = sorted(self._counted.values(), key=itemgetter(1))
        self._counted.clear()
        return found

    def note(self, line: bytes, *records: object) -> None:
        """Note what a line stated that changed nothing else, while no reader waits for more."""
        said = [one for one in records if not isinstance(one, Pulse) or one.counters]
        if len(said) != 1 or len(self._trouble) >= _MOST:
            return
        (found,) = said
        is_trouble = isinstance(found, Event) and found.kind is EventKind.WARNING
        if is_trouble and not _MORE_THAN_TROUBLE.search(strip_ansi(line)):
            self._trouble.add(line.translate(_ALIKE))
