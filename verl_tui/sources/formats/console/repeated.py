"""Ray's note behind a line that many processes printed: `[repeated 7x across cluster]`."""

from __future__ import annotations

from typing import AnyStr

from verl_tui.patterns import pattern

_NOTE = r"\[repeated (\d+)x across cluster\]"
_IN_TEXT = pattern(_NOTE)
_IN_BYTES = pattern(_NOTE.encode())
_MOST_DIGITS = 9


def unrepeated(line: AnyStr) -> tuple[AnyStr, int]:
    """Return a line without the note, and how often the note says that it was printed."""
    found = _IN_TEXT.search(line) if isinstance(line, str) else _IN_BYTES.search(line)
    if found is None:
        return line, 1
    return line[: found.start()].rstrip(), max(1, int(found[1][:_MOST_DIGITS]))
