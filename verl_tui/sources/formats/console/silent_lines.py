"""Lines without any information: most of a console, and mostly the same but for their digits."""

from __future__ import annotations

from verl_tui.patterns import pattern
from verl_tui.sources.formats.console import (
    engine_addresses,
    errors,
    events,
    intervals,
    printed_tables,
    progress_lines,
    sample_blocks,
    settings_reader,
    step_lines,
)
from verl_tui.sources.formats.console.word_search import any_of
from verl_tui.text import strip_ansi

_TELLING = any_of(
    (
        *errors.WORDS,
        *events.WORDS,
        *settings_reader.WORDS,
        *intervals.WORDS,
        *engine_addresses.WORDS,
        *progress_lines.WORDS,
        *sample_blocks.WORDS,
        sample_blocks.BEGIN,
        *printed_tables.BEGINNINGS,
        step_lines.BEGIN,
        "\r",
    )
)
_DATE = pattern(rb"-\d\d-\d\d[ T]\d\d:")
_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)
"""No relevant word has a digit in it."""
_LONGEST = 400
"""Bytes of a line from which on it is looked at anew."""
_MOST = 2000
"""Lines that are remembered."""


class Noise:
    """Recognises lines that change nothing while no reader waits for more; remembers those it has
    seen, without their digits.
    """

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def has(self, line: bytes) -> bool:
        """Return True for a line that contains no word that any reader looks for, and no date."""
        if len(line) > _LONGEST:
            return False
        alike = line.translate(_ALIKE)
        if alike in self._seen:
            return True
        text = strip_ansi(line)
        if _TELLING.search(text) or _DATE.search(text):
            return False
        if len(self._seen) >= _MOST:
            self._seen.clear()
        self._seen.add(alike)
        return True
