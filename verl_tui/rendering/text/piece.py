"""Pieces of text with roles, which widgets colour; a row is a list of them. Text from logs made
printable, cut, and wrapped into rows. Widths are terminal cells.

What is wrapped has passed `verl_tui.text.safe`: no control characters but the newline.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from os.path import commonprefix

from rich.cells import cell_len, get_character_cell_size, set_cell_size

from verl_tui.means import gathered
from verl_tui.patterns import pattern

Piece = tuple[str, str]
"""Text and its role, e.g. `("done", "good")`; an empty role is plain text."""
Pieces = list[Piece]
"""One row: its pieces from left to right."""
TextRows = list[Pieces]
"""Rows from top to bottom."""
MarkedSpan = tuple[int, int, str]
"""Start and end of what is marked in a text, and its role; several are ascending and disjoint."""


def text_of(row: Iterable[tuple[str, object]]) -> str:
    """Return the text of a row, without roles or styles."""
    return "".join([text for text, _ in row])


def cells_of(row: Iterable[Piece]) -> int:
    """Return the cells that a row takes."""
    return cell_len(text_of(row))


def joined(cells: Iterable[Piece]) -> Pieces:
    """Put neighbours of one role together."""
    return [
        ("".join([text for text, _ in group]), role)
        for role, group in groupby(cells, itemgetter(1))
    ]


def pieces(
    text: str, start: int, end: int, spans: Sequence[MarkedSpan], plain: str
) -> Pieces:
    """Return a part of a text as pieces with roles, `plain` without a mark."""
    row: Pieces = []
    at = max(0, bisect_right(spans, (start, len(text) + 1, "")) - 1)
    for first, last, role in spans[at:]:
        if first >= end:
            break
        if last > start:
            row.append((text[start:first], plain))
            row.append((text[max(first, start) : min(last, end)], role))
            start = last
    return [piece for piece in (*row, (text[start:end], plain)) if piece[0]]


# -- text in as many cells as there are ------------------------------------------------------------

ELLIPSIS = "…"
"""Stands for text cut off."""
_NUMBER = pattern(
    r"[(±≈~@]?[-+−]?\d[\d.,:/%]{0,30}(?:e[-+]?\d{1,4})?[),;:%]{0,4}(?!\S)"
)
"""A number, with what stands right beside it."""
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
    """Cells of the characters met so far: 0, 1 or 2."""

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
        unshowable = width == 1 and end - start == 1 and _SIZES[text[start]] > 1
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


def fit(text: str, width: int) -> str:
    """Return one line cut at its end to `width` cells."""
    if len(text) <= width and text.isascii():
        return text
    width = max(0, width)
    if cell_len(text) <= width:
        return text
    mark = ELLIPSIS[:width]
    return text[: _end(text, width - len(mark))] + mark


def _end(text: str, width: int) -> int:
    """Return where a text is cut to a width: before a number rather than in it, as half of one is
    another.
    """
    end = _reach(text, 0, width)
    start = text.rfind(" ", 0, end) + 1
    found = _NUMBER.match(text, start)
    return start if found and found.end() > end else end


def fit_words(text: str, cells: int) -> str:
    """Return a text cut after a word of it, inside one where that would leave less than half."""
    short = fit(text, cells)
    if short in (text, ""):
        return short
    words = f"{short[: short.rfind(' ')].rstrip(' ,;:(')}{ELLIPSIS}"
    return words if 2 * cell_len(words) >= cells else short


def fitting(forms: Iterable[str], width: int) -> str:
    """Return the first of several texts that takes at most `width` cells, empty if none does."""
    return next((text for text in forms if cell_len(text) <= width), "")


def fit_left(text: str, width: int) -> str:
    """Return one line cut at its beginning to `width` cells, since a path's end says most."""
    width = max(0, width)
    if cell_len(text) <= width:
        return text
    mark = ELLIPSIS[:width]
    room = width - len(mark)
    start = len(text)
    while start > 0 and (size := _SIZES[text[start - 1]]) <= room:
        room -= size
        start -= 1
    while start < len(text) and not _SIZES[text[start]]:
        start += 1  # combining marks have lost their base
    return mark + text[start:].lstrip()


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


# -- text from logs --------------------------------------------------------------------------------

_LONGEST = 4096
"""Most characters of a text that are used."""


def printable(text: str) -> str:
    """Return text on one line, what cannot be printed replaced."""
    text = " ".join(text[:_LONGEST].split())
    if not text.isprintable():
        text = "".join(c if c.isprintable() else "?" for c in text)
    return text


@lru_cache(1024)
def middle(text: str, cells: int) -> str:
    """Return text cut in the middle to `cells` cells, since names often differ at their ends."""
    return _middle(printable(text), cells)


def _middle(text: str, cells: int) -> str:
    if cell_len(text) <= cells:
        return text
    if cells < 5:
        return fit(text, cells)
    head = set_cell_size(text, cells // 2).rstrip()
    return head + fit_left(text, cells - cell_len(head))


@lru_cache(1024)
def wrapped(text: str, cells: int) -> tuple[str, ...]:
    """Return text as one paragraph in lines of at most `cells` cells."""
    text = printable(text)
    return tuple(wrap(text, cells)) if text else ()


def paragraph(text: str, role: str, cells: int, before: Piece = ("", "")) -> TextRows:
    """Return text in one role, as rows of at most `cells` cells, `before` in front of the first
    one, and blanks in front of the others.
    """
    mark, mark_role = before
    rows: TextRows = []
    for line in wrapped(text, cells - cell_len(mark)):
        row = [(line, role)]
        rows.append([(mark, mark_role), *row] if mark else row)
        mark = " " * cell_len(mark)
    return rows


def cut(pieces: Pieces, cells: int) -> Pieces:
    """Return a row cut to `cells` cells, with an ellipsis at its end if text is lost."""
    if cells_of(pieces) <= cells:
        return pieces
    left = fit(text_of(pieces).rstrip(), cells)
    row: Pieces = []
    for text, role in pieces:
        row += [(left[: len(text)], role)] * bool(left)
        left = left[len(text) :]
    return row


def size_text(count: int) -> str:
    """Return a size as `812 B`, `4.1 kB`, `12 MB`."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size >= 999.5:
            size, unit = size / 1000, larger
    digits = 1 if unit != "B" and size < 9.95 else 0
    return f"{size:,.{digits}f} {unit}"


def natural(name: str) -> tuple[object, ...]:
    """Return a sort key for natural order: `layer2` before `layer10`, case ignored."""
    parts = _DIGITS.split(name.lower())
    pairs = zip(parts[::2], [*parts[1::2], ""], strict=True)
    order = [(part, len(digits), digits) for part, digits in pairs]
    return *order, name


# -- names in little room that still differ: what they all share is cut first ----------------------


_DIGITS = pattern(r"(\d+)")
_PLACED = pattern(r"([^(]+) \(([^()]+)\)")
"""A run's name with what tells it from others of the name."""


@lru_cache(16)
def told_apart(names: tuple[str, ...]) -> Mapping[str, str]:
    """Return the names of runs: of several with one name only what tells them apart."""
    found = {name: _PLACED.fullmatch(name) for name in names}
    parts = Counter(part for one in found.values() if one for part in one.groups())
    return {
        name: one[2] if one and parts[one[1]] > 1 == parts[one[2]] else name
        for name, one in found.items()
    }


@lru_cache(16)
def short_run_names(names: tuple[str, ...], cells: int) -> Mapping[str, str]:
    """Return each of the names of runs in at most so many cells."""
    own = told_apart(names)
    short = short_names(tuple(own.values()), cells)
    return {name: short[own[name]] for name in names}


@lru_cache(16)
def short_names(names: tuple[str, ...], cells: int) -> Mapping[str, str]:
    """Return each of several names in at most so many cells: cut in the parts that all share,
    and where two would look alike then, in those that these share.
    """
    found = _shortened(names, cells)
    alike = gathered((text, name) for name, text in found.items())
    for group in alike.values():
        found |= _shortened(group, cells) if group[1:] else {}
    return found


def _shortened(names: Sequence[str], cells: int) -> dict[str, str]:
    """Return names cut first in what all share at their beginning and end."""
    head = tail = 0
    if len(set(names)) > 1:
        head = len(commonprefix(names))  # noqa: RUF071 - of letters is what is wanted
        tail = len(commonprefix([name[head:][::-1] for name in names]))  # noqa: RUF071
    short = {}
    for whole in names:
        name = whole
        own, end = name[head : len(name) - tail], name[len(name) - tail :]
        room = cells - cell_len(own)
        if cell_len(name) > cells and own and room >= bool(head) + bool(end):
            # Each side may use the room that the other leaves.
            half = max(room - room // 2, room - cell_len(end))
            before = min(cell_len(name[:head]), half)
            name = _part(name[:head], before) + own + _part(end, room - before)
        short[whole] = middle(name, cells)
    return short


def _part(text: str, cells: int) -> str:
    """Cut the middle out of a part of a name, or all of it if little room is left."""
    return _middle(text, cells) if cells >= 5 or cell_len(text) <= cells else ELLIPSIS
