"""Text wrapped into rows by terminal cells, lazily.

Expects text that has passed `verl_tui.text.safe`: no control characters but the newline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, get_character_cell_size

if TYPE_CHECKING:
    from collections.abc import Iterator

ELLIPSIS = "…"
"""Stands for text cut off."""
_UNSHOWABLE = "�"
"""Stands for a wide character where not even one fits."""
_MOST_MARKS = 8
"""Most characters of a cell, as real text has no more combining marks."""
_WIDENING = "\ufe0f"
"""Asks for an emoji's wide picture, as some terminals do it: counted as one cell to be safe."""
_FIRST_MARK = "\u0300"
"""Code point below which every character takes one cell."""
_FIRST_WIDE = "\u1100"
"""Code point below which no character takes two cells."""


class _Sizes(dict[str, int]):
    """Cells of the characters met so far."""

    def __missing__(self, character: str) -> int:
        size = self[character] = get_character_cell_size(character)
        return size


_SIZES = _Sizes({_WIDENING: 1})


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield rows of at most `width` cells.

    Breaks at spaces and beside wide characters where it can, inside words where it must. The
    newlines and the one space at each break are left out, everything else is kept. An empty line
    yields an empty row.

    Args:
        text: Safe text of any length.
        width: Cells that a row may take; without any there are no rows.
    """
    for start, end in spans(text, width):
        unshowable = width == 1 and end - start == 1 and cells(text[start]) > 1
        yield _UNSHOWABLE if unshowable else text[start:end]


def spans(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each row that `wrap` makes."""
    if width < 1:
        return
    start = 0
    while start >= 0:
        end = text.find("\n", start)
        line = text[start:] if end < 0 else text[start:end]
        for first, last in _line_spans(line, width):
            yield start + first, start + last
        start = end + 1 if end >= 0 else -1


def fit(text: str, width: int, mark: str = ELLIPSIS) -> str:
    """Return one line cut at its end to `width` cells."""
    if len(text) <= width and text.isascii():
        return text
    width = max(0, width)
    if cell_len(text) <= width:
        return text
    mark = mark[:width]
    return text[: _reach(text, 0, width - len(mark))] + mark


def fit_left(text: str, width: int) -> str:
    """Return one line cut at its beginning to `width` cells, since a path's end says most."""
    width = max(0, width)
    if cell_len(text) <= width:
        return text
    mark = ELLIPSIS[:width]
    room = width - len(mark)
    start = len(text)
    while start > 0 and (size := cells(text[start - 1])) <= room:
        room -= size
        start -= 1
    while start < len(text) and not cells(text[start]):
        start += 1  # combining marks have lost their base
    return mark + text[start:]


def cells(character: str) -> int:
    """Return the width of a character: 0, 1 or 2 cells."""
    return _SIZES[character]


def _line_spans(line: str, width: int) -> Iterator[tuple[int, int]]:
    if len(line) <= width and line.isascii():
        yield 0, len(line)
        return
    start = 0
    while start < len(line):
        end = _reach(line, start, width)
        if end == start:
            yield start, start + 1
            start += 1
        elif end == len(line):
            yield start, end
            return
        else:
            row_end, next_start = _break(line, start, end)
            yield start, row_end
            start = next_start


def _reach(line: str, start: int, width: int) -> int:
    """Return the end of the longest piece from `start` that takes at most `width` cells."""
    # In most text a character is a cell. One more character tells whether a mark follows the last.
    piece = line[start : start + width + 1]
    if piece.isascii() or max(piece) < _FIRST_MARK:
        return min(start + width, len(line))
    used = 0
    sizes = _SIZES
    last = min(len(line), start + _MOST_MARKS * max(1, width))
    for at in range(start, last):
        used += sizes[line[at]]
        if used > width:
            return at
    return last


def _break(line: str, start: int, end: int) -> tuple[int, int]:
    """Return the end of the row and the start of the next, given how far the row can reach."""
    if line[end] == " ":
        return end, end + 1
    space = line.rfind(" ", start, end)
    piece = line[start : end + 1]
    if not piece.isascii() and max(piece) >= _FIRST_WIDE:
        for at in range(end, max(space, start), -1):
            if _SIZES[line[at - 1]] == 2 or _SIZES[line[at]] == 2:
                return at, at
    if space > start and not line[start:space].isspace():
        return space, space + 1
    return end, end
